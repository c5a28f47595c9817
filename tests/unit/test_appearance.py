"""Samples that look unlike others are told by the means of their labels, and by nothing else."""

import numpy as np
import pytest
import torch
from test_careful import careful

from tame import Batch
from tame.core import looks as module
from tame.core.appearance import LARGEST, TOGETHER, Samples, newest, thinned, unlike, whole
from tame.core.doubt import Doubt
from tame.core.looks import looks_foreign
from tame.core.mark import Mark
from tame.core.prune import Magnitude
from tame.core.waiting import Waiting
from tame.types import Reading, Verdict

NUMBERS = 20


def drawn(count: int, seed: int, moved: float = 0.0, share: float = 0.5) -> Samples:
    """Return samples of two labels, the second in so large a share, each moved in one number."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(count) < share).astype(np.int64)
    rows = rng.normal(size=(count, NUMBERS)) * np.linspace(0.1, 10.0, NUMBERS)
    rows[:, 3] += 5.0 * labels
    rows[:, 7] += moved * np.where(labels, -1.0, 1.0)
    return Samples(rows, labels)


def waiting(count: int, seed: int, numbers: int = NUMBERS) -> Waiting:
    x = torch.randn(count, numbers, generator=torch.Generator().manual_seed(seed))
    return Waiting(seed, x, torch.arange(count) % 2, 0)


USUAL = drawn(1000, 1)


def test_means_of_labels_that_moved_are_seen():
    found = [unlike(drawn(32, seed, moved=12.0), USUAL) for seed in range(2, 102)]
    assert sum(found) == 100  # against each other: the mean of all samples stays where it was


def test_samples_of_the_same_kind_are_rarely_strange():
    assert sum(unlike(drawn(32, seed), USUAL) for seed in range(2, 502)) <= 1


def test_how_many_there_are_of_each_label_does_not_matter():
    found = [unlike(drawn(32, seed, share=0.95), USUAL) for seed in range(2, 102)]
    assert sum(found) <= 1


def test_one_odd_sample_of_a_rare_label_is_not_strange():
    new = drawn(32, 2, share=0.0)
    labels = np.where(np.arange(32) == 5, 1, new.labels)
    rows = np.where(labels[:, None] == 1, new.rows + 3.0 * USUAL.rows.std(0), new.rows)
    assert not unlike(Samples(rows, labels), USUAL)
    assert unlike(Samples(rows, np.ones(32, dtype=np.int64)), USUAL)


def test_labels_nobody_has_seen_say_nothing():
    new = drawn(32, 2, moved=50.0)
    assert unlike(new, USUAL)
    assert not unlike(Samples(new.rows, new.labels + 2), USUAL)


def test_too_few_usual_samples_say_nothing():
    new = drawn(32, 2, moved=50.0)
    assert not unlike(new, drawn(9 * 32, 3))
    assert unlike(new, drawn(12 * 32, 3))


def test_numbers_that_never_vary_are_no_trouble():
    labels = np.arange(640) % 2
    still = Samples(np.full((640, 3), 7.0), labels)
    assert not unlike(Samples(still.rows[:32], labels[:32]), still)
    assert unlike(Samples(still.rows[:32] + 1.0, labels[:32]), still)


def test_numbers_far_from_zero_are_no_trouble():
    far = 1e7
    usual = Samples(USUAL.rows + far, USUAL.labels)
    near, moved = drawn(32, 2), drawn(32, 2, moved=12.0)
    assert not unlike(Samples(near.rows + far, near.labels), usual)
    assert unlike(Samples(moved.rows + far, moved.labels), usual)


def test_what_the_order_of_samples_brings_is_usual():
    """Batches of a slow wave lie further apart than samples drawn at random would."""
    rng, labels = np.random.default_rng(0), np.zeros(32 * 40, dtype=np.int64)
    wave = 3.0 * np.sin(np.arange(len(labels)) / 60.0)[:, None]
    rows = rng.normal(size=(len(labels), NUMBERS)) + wave
    last, before = (Samples(rows[k], labels[k]) for k in (slice(-32, None), slice(None, -32)))
    shuffled = Samples(rng.permutation(before.rows), before.labels)
    assert unlike(last, shuffled)
    assert not unlike(last, before)


def test_small_batches_are_judged_together():
    small = [waiting(8, seed) for seed in range(10)]
    assert newest(small) * 8 == TOGETHER
    assert newest(small[:3]) == newest([]) == 0
    assert newest([waiting(32, seed) for seed in range(3)]) == 1
    assert newest([waiting(32, 0), waiting(20, 1)]) == 2


def test_of_large_batches_and_samples_not_everything_is_looked_at():
    found = thinned([waiting(1000, 0, numbers=3), waiting(TOGETHER, 1, numbers=3)])
    assert TOGETHER < len(found) <= 2 * TOGETHER
    large = waiting(4, 0, numbers=3 * LARGEST - 1)
    assert thinned([large]).rows.shape == whole(large.raw, large.slots).rows.shape == (4, LARGEST)


def half_known(count: int, seed: int, moved: float):
    """Return batches of two labels; where they are moved, the way to tell them is less clear."""
    draws = torch.Generator().manual_seed(seed)
    for _ in range(count):
        y = torch.randint(0, 2, (32,), generator=draws)
        x = torch.randn(32, 8, generator=draws)
        x[:, 0] += (2 * y - 1) * (3.0 if not moved else 1.0)
        x[:, 1] += moved
        yield Batch(x, y)


@pytest.mark.parametrize("seed", range(3))
def test_a_world_that_looks_strange_and_is_half_known_is_suspected_at_once(
    seed: int, monkeypatch: pytest.MonkeyPatch
):
    stream = [*half_known(60, seed, 0.0), *half_known(1, seed + 50, 2.0)]

    def last() -> str:
        learner = careful(seed)
        return [learner.observe(batch).change for batch in stream][-1]

    assert last() == "suspected"
    monkeypatch.setattr(module, "unlike", lambda *_: False)
    assert last() == "none"


@pytest.fixture(scope="module")
def two_worlds():
    """Return a learner that knows two worlds of the same labels, the second being active."""
    learner = careful(0, pruner=Magnitude(memory=400))
    for batch in [*half_known(80, 0, 0.0), *half_known(80, 1, 4.0)]:
        learner.observe(batch)
    assert learner.expert_ids == (0, 1)
    return learner


def test_what_an_inactive_expert_never_learned_looks_foreign_to_it(two_worlds):
    scene = two_worlds._scene(two_worlds._pool)
    slots = two_worlds._intake.labels.slots

    def foreign(number: int, moved: float) -> bool:
        held = [Waiting(0, x, slots(y), -1) for x, y in half_known(2, 9, moved)]
        return looks_foreign(scene, held, number)

    assert [foreign(0, 0.0), foreign(0, 4.0)] == [False, True]
    assert [foreign(0, -4.0), foreign(1, -4.0)] == [True, True]


def test_an_expert_that_learned_nothing_yet_finds_nothing_foreign():
    learner = careful(0)
    learner.observe(next(half_known(1, 0, 0.0)))
    scene = learner._scene(learner._pool)
    assert not looks_foreign(scene, [waiting(32, 1, numbers=8)], 0)


def test_who_finds_it_foreign_is_not_taken_back_though_it_knows_it():
    doubt = Doubt(0, Verdict(shift=True, statistic=9.0, threshold=7.0))
    mark = Mark(0.05, 0.02, 0.69, 0.0)
    for number, loss in ((0, 2.0), (1, 0.05), (2, 0.06)):
        doubt.readings[number] = [Reading(loss)] * 2
        doubt._marks[number] = mark
    doubt.held = [waiting(32, 0), waiting(32, 1)]
    assert doubt.returned(2, lambda _: False, late=False) == 1
    assert doubt.returned(2, lambda number: number == 1, late=False) == 2
    assert doubt.returned(2, lambda _: True, late=True) is None


def test_strange_looks_alone_are_no_suspicion():
    learner = careful(0)
    for batch in half_known(60, 0, 0.0):
        learner.observe(batch)
    for batch in half_known(5, 1, 0.0):
        moved = batch.x.clone()
        moved[:, 1] += 0.8  # a number the labels do not hang on, by less than its spread
        assert learner.observe(Batch(moved, batch.y)).change == "none"
