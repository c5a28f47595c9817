"""The oracle: TAME whose experts follow the tasks it is told, whatever its detector says."""

from typing import Any

import torch
from worlds import NET, a, b, c, changes, feed, small_settings, small_tame

from tame import Deviation
from tame.checks.failure import difference
from tame.methods.oracle import Oracle
from tame.types import Batch, Hint


def small(**settings: Any):
    return Oracle(net=NET, settings=small_settings(**settings))


def told(learner, *parts: Any):
    """Feed segments, each announced by the number of its task."""
    seen = []
    for task, batches in parts:
        learner.inform(Hint(task=task))
        seen += feed(learner, batches)
    return seen


def test_experts_follow_the_tasks():
    seen = told(small(), (4, a(10)), (9, b(10)), (4, a(10)), (2, c(10)))
    assert [s.expert for s in seen[::10]] == [0, 1, 0, 2]
    assert changes(seen) == [(10, "recruited", 1), (20, "switched", 0), (30, "recruited", 2)]
    assert [s.since for s in seen if s.since is not None] == [10, 20, 30]


def test_detection_changes_nothing():
    """A detector that calls every loss a shift is not listened to; plain TAME would follow it."""
    nervous = Deviation(window=2, width=0.001)
    learner = small(detector=nervous)
    seen = feed(learner, a(30) + b(30))
    assert {s.expert for s in seen} == {0}
    assert changes(seen) == []
    plain = feed(small_tame(detector=nervous), a(30) + b(30))
    assert changes(plain)


def test_untold_it_learns_as_one_expert_of_tame():
    """On a stream without a change the two agree in every bit but what the oracle is told."""
    one, two = small(), small_tame()
    feed(one, a(30))
    feed(two, a(30))
    assert difference(one.state_dict()["pool"], two.state_dict()["pool"]) is None


def test_a_task_told_but_never_seen_recruits_nobody():
    learner = small()
    feed(learner, a(3))
    learner.inform(Hint(task=1))
    learner.inform(Hint(task=2))
    assert feed(learner, b(2))[-1].expert == 1
    assert learner.expert_ids == (0, 1)


def test_it_comes_back_to_an_expert_on_the_shelf():
    learner = small()
    told(learner, (0, a(30)), (1, b(30)))
    learner.consolidate()
    seen = told(learner, (0, a(2)), (1, b(2)))
    assert [s.expert for s in seen] == [0, 0, 1, 1]


def test_experts_know_their_task():
    learner = small()
    told(learner, (0, a(60)), (1, b(60)))
    learner.consolidate()
    for expert, batch in ((0, a(1, seed=7)[0]), (1, b(1, seed=8)[0])):
        right = learner.predict_by(batch.x, expert) == batch.y
        assert right.float().mean() > 0.9


def test_new_labels_come_with_a_new_task():
    learner = small(slots=2)
    told(learner, (0, [Batch(torch.eye(8)[:2], [0, 1])] * 3))
    seen = told(learner, (1, [Batch(torch.eye(8)[:3], [7, 8, 9])] * 3))
    assert seen[-1].expert == 1
    assert learner.predict_by(torch.eye(8)[:3], 1).shape == (3,)
