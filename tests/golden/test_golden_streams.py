"""What the learner does on streams whose truth is known, step by step."""

from typing import Any

import pytest
import torch
from worlds import a, changes, feed, small_tame

from tame import Batch, Training

SEEDS = range(5)
TURNS = {"a": 0, "b": 1, "c": 2}


def part(name: str, seed: int, batches: int = 60):
    """Return batches of a world; in each the same inputs have other labels."""
    return [Batch(batch.x, (batch.y + TURNS[name]) % 4) for batch in a(batches, seed=seed)]


def stream(order: str, seed: int):
    """Return sixty batches of each world named, never the same batch twice."""
    parts = [part(name, 1000 * seed + place) for place, name in enumerate(order)]
    return [batch for batches in parts for batch in batches]


def accuracy(learner: Any, batches: int, when: Any = "ever"):
    right = [learner.predict(batch.x, when) == batch.y for batch in batches]
    return float(torch.cat(right).float().mean())


@pytest.mark.parametrize("seed", SEEDS)
def test_a_b_a_is_two_experts(seed: int):
    learner = small_tame(seed)
    seen = feed(learner, stream("aba", seed))
    assert changes(seen) == [(60, "recruited", 1), (120, "switched", 0)]
    assert [one.since for one in seen if one.change != "none"] == [60, 120]
    assert [one.expert for one in seen] == [0] * 60 + [1] * 60 + [0] * 60


def test_the_batch_that_recruits_or_recalls_enters_the_chosen_experts_baseline():
    learner = small_tame()
    feed(learner, stream("ab", 0)[:61])
    first, second = learner._pool.experts
    assert [len(one.detector.state_dict()["losses"]) for one in (first, second)] == [30, 1]
    feed(learner, stream("ab", 0)[61:])
    seen = first.detector.state_dict()["seen"]
    feed(learner, part("a", 50, 1))
    assert first.detector.state_dict()["seen"] == seen + 1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_b_c_b_is_three_experts(seed: int):
    learner = small_tame(seed)
    expected = [(60, "recruited", 1), (120, "recruited", 2), (180, "switched", 1)]
    assert changes(feed(learner, stream("abcb", seed))) == expected
    assert learner.expert_ids == (0, 1, 2)


@pytest.mark.parametrize("seed", SEEDS)
def test_returns_are_recognised_with_consolidations_in_between(seed: int):
    learner = small_tame(seed)
    seen = []
    for place, name in enumerate("abcba"):
        seen += feed(learner, part(name, 1000 * seed + place))
        learner.consolidate()
    expected = [
        (60, "recruited", 1),
        (120, "recruited", 2),
        (180, "switched", 1),
        (240, "switched", 0),
    ]
    assert changes(seen) == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_stationary_stream_is_one_expert(seed: int):
    learner = small_tame(seed)
    assert changes(feed(learner, a(600, seed=seed))) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_shift_soon_after_a_recruit(seed: int):
    """A young expert cannot be surprised: it takes the new world in, and ids go on counting."""
    learner = small_tame(seed)
    parts = [part("a", seed), part("b", 20, 10), part("c", 21, 100), part("a", 22, 30)]
    seen = [one for batches in parts for one in feed(learner, batches)]
    found = changes(seen)
    assert found[0] == (60, "recruited", 1)
    assert not any(60 < step < 80 for step, _, _ in found)  # its first twenty readings
    recruits = [expert for _, change, expert in found if change == "recruited"]
    assert recruits == list(range(1, len(recruits) + 1))
    assert list(learner.expert_ids) == [0, *recruits]
    assert found[-1] == (170, "switched", 0)
    assert accuracy(learner, part("a", 77, 5), "now") > 0.95


@pytest.mark.parametrize("seed", SEEDS)
def test_new_label_alone_is_no_alarm(seed: int):
    """One sample in thirty-two has a label never seen; the rest are ordinary."""
    stream = a(120, seed=seed)
    pairs = [
        Batch(torch.cat([one.x, two.x]), torch.cat([one.y, two.y]))
        for one, two in zip(stream[::2], stream[1::2], strict=True)
    ]
    learner = small_tame(seed)
    feed(learner, pairs)
    for number, batch in enumerate(a(20, seed=seed + 50)):
        x, y = torch.cat([batch.x, batch.x]), torch.cat([batch.y, batch.y])
        y[3] = 1000 + number
        seen = learner.observe(Batch(x, y))
        assert seen.change == "none"
        assert seen.expert == 0
    assert len(learner._intake.labels) == 24


@pytest.mark.parametrize("seed", SEEDS)
def test_same_input_new_meaning_needs_now(seed: int):
    """No selector can tell from x what a label means by now, but the active expert knows."""
    learner = small_tame(seed)
    assert changes(feed(learner, stream("ab", seed))) == [(60, "recruited", 1)]
    learner.consolidate()
    old, new = part("a", 91, 5), part("b", 92, 5)
    assert accuracy(learner, new, "now") > 0.95
    assert accuracy(learner, old, "ever") + accuracy(learner, new, "ever") < 1.2


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_forgotten(seed: int):
    learner = small_tame(seed)
    feed(learner, stream("abc", seed))
    for expert, name in enumerate("abc"):
        fresh = part(name, 90, 5)
        right = [learner.predict_by(batch.x, expert) == batch.y for batch in fresh]
        assert torch.cat(right).float().mean() > 0.95


def test_schedule_counts_an_experts_own_steps():
    training = Training(rate=0.1, milestones=(70,), decay=0.1)
    learner = small_tame(training=training)
    feed(learner, stream("aba", 0)[:125])
    rates = [expert.network.optimiser.param_groups[0]["lr"] for expert in learner._pool.experts]
    assert [expert.network.steps for expert in learner._pool.experts] == [65, 60]
    assert rates == [0.1, 0.1]
    feed(learner, part("a", 40, 10))
    assert learner._pool.active.network.optimiser.param_groups[0]["lr"] == pytest.approx(0.01)
