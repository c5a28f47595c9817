"""Samples in the wrong reservoir are counted, all of them and no others."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from worlds import a, b, feed, small_tame

from tame import Batch
from tame.bench.assignment import misplaced
from tame.errors import InputError
from tame.streams.burst import Burst
from tame.streams.permute import Permute
from tame.streams.relabel import Relabel

BLENDED = Permute(segments=2, lengths=(12,), batch=8, blend=6)


@dataclass
class Kept:
    """A learner that keeps these samples, by expert."""

    memory: dict[int, tuple[Any, Any]]

    @property
    def expert_ids(self):
        return tuple(self.memory)

    def remembered(self, expert: int):
        return self.memory[expert]


def divided(stream: Any, share: Any):
    """Return a learner whose expert 0 keeps what `share` says of a batch, 1 the rest."""
    parts: dict[int, list[Any]] = {0: [], 1: []}
    for step, (x, y) in enumerate(stream.batches()):
        mine = torch.tensor(share(step))
        for expert, rows in ((0, mine), (1, ~mine)):
            parts[expert].append((x[rows], y[rows]))
    return Kept({one: tuple(map(torch.cat, zip(*two, strict=True))) for one, two in parts.items()})


def test_each_owner_its_own_is_right():
    stream = BLENDED.open(seed=0)
    owners = stream.truth().owners
    mixed = [step for step in range(len(stream)) if len(set(owners(step))) == 2]
    assert len(mixed) > 3
    learner = divided(stream, lambda step: [owner == 0 for owner in owners(step)])
    assert misplaced(learner, stream, {0: 0, 1: 1}) == {"kept": 192, "misplaced": 0}
    assert misplaced(learner, stream, {0: 1, 1: 0}) == {"kept": 192, "misplaced": 192}


def test_a_late_cut_leaves_what_came_before_it():
    stream = BLENDED.open(seed=0)
    truth = stream.truth()
    learner = divided(stream, lambda step: [step < 15] * 8)
    late = sum(truth.composition(step).get(1, 0) for step in range(15))
    early = sum(truth.composition(step).get(0, 0) for step in range(15, 24))
    assert late > 8
    assert misplaced(learner, stream, {0: 0, 1: 1})["misplaced"] == late + early


def test_the_same_image_by_another_label_is_another_sample():
    stream = Relabel(segments=2, lengths=(4,), batch=8).open(seed=0)
    learner = divided(stream, lambda step: [step < 4] * 8)
    assert misplaced(learner, stream, {0: 0, 1: 1})["misplaced"] == 0
    assert misplaced(learner, stream, {0: 1, 1: 0})["misplaced"] == 64


def test_what_a_burst_spoiled_is_nobodys():
    stream = Permute(
        segments=1, lengths=(20,), batch=8, burst=Burst(every=10, batches=2, kind="labels")
    ).open(seed=0)
    spoiled = sum(end - begin for begin, end in stream.truth().bursts)
    learner = divided(stream, lambda _: [True] * 8)
    found = misplaced(learner, stream, {0: 0, 1: 0})
    assert 0 < found["misplaced"] <= 8 * spoiled


def test_what_cannot_be_said_is_not_said():
    stream = BLENDED.open(seed=0)
    assert misplaced(object(), stream, {}) is None
    foreign = Kept({0: (torch.full((1, 1, 28, 28), 7, dtype=torch.uint8), torch.tensor([3]))})
    assert misplaced(foreign, stream, {0: 0}) is None


def test_a_learner_says_what_its_experts_remember():
    learner = small_tame()
    with pytest.raises(InputError, match="no expert 0"):
        learner.remembered(0)
    stream = [Batch(batch.x, batch.y + 5) for batch in a(20)]
    feed(learner, stream)
    x, y = learner.remembered(0)
    assert len(x) == len(y) > 8
    known = {
        (row.numpy().tobytes(), label)
        for one in stream
        for row, label in zip(one.x, one.y.tolist(), strict=True)
    }
    assert {
        (row.numpy().tobytes(), label) for row, label in zip(x, y.tolist(), strict=True)
    } <= known
    feed(learner, b(5))
    with pytest.raises(InputError, match="no expert 9"):
        learner.remembered(9)
