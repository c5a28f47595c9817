"""What a saved pool holds is told alike whether its experts are packed or not."""

import pytest
from worlds import a, b, c, feed, small_tame

from tame.core.inventory import inventory
from tame.core.pool import ExpertPool


def three():
    learner = small_tame()
    feed(learner, a() + b() + c())
    return learner


def test_packed_experts_are_told_as_awake_ones_are(monkeypatch: pytest.MonkeyPatch):
    learner = three()
    learner.consolidate()
    found = inventory(learner._pool.state_dict())
    monkeypatch.setattr(ExpertPool, "shelve", lambda _: None)
    learner = three()
    learner.consolidate()
    awake = inventory(learner._pool.state_dict())
    assert [item.packed for item in found] == [True, True, False]
    assert [item._replace(packed=False) for item in found] == awake


def test_every_sample_and_label_is_accounted_for():
    learner = three()
    learner.consolidate()
    found = inventory(learner._pool.state_dict())
    assert tuple(item.id for item in found) == learner.expert_ids
    for item, expert in zip(found, learner._pool.experts, strict=True):
        assert item.seen == int(expert.counts.sum())
        assert item.samples == len(expert.memory)
        assert item.taught == expert.counts.nonzero()[0].tolist()
        assert (item.steps, item.restarts) == (expert.network.steps, expert.network.restarts)
        assert item.kept == item.places / 2  # sparsity 0.5


def test_what_nothing_was_pruned_of_has_no_places():
    learner = three()
    assert {
        (item.kept, item.places, item.packed) for item in inventory(learner._pool.state_dict())
    } == {(0, 0, False)}
