"""Newcomers that start from what the active expert knows."""

from typing import Any

import torch
from worlds import a, b, c, changes, feed, small_tame

from tame import Training


def first_weights(start: Any, settle: bool = False):  # noqa: FBT001, FBT002 (a test's)
    """Return the weights of the active expert and of the newcomer it gave way to."""
    learner = small_tame(training=Training(start=start))
    feed(learner, a())
    if settle:
        feed(learner, b())
        learner.consolidate()
        feed(learner, a(20, seed=7))
    pool = learner._pool
    before = pool.active.network.net.state_dict()
    after = pool.recruit().network.net.state_dict()
    return before, after


def same(one: Any, other: Any) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


def test_a_warm_newcomer_begins_as_the_active_expert():
    assert same(*first_weights("warm"))
    assert not same(*first_weights("fresh"))


def test_a_pruned_expert_is_nobodys_start():
    assert not same(*first_weights("warm", settle=True))


def test_a_warm_newcomer_leaves_the_expert_it_began_as_alone():
    learner = small_tame(training=Training(start="warm"))
    assert changes(feed(learner, a() + b())) == [(60, "recruited", 1)]
    old, new = learner._pool.experts
    assert not same(old.network.net.state_dict(), new.network.net.state_dict())
    kept = {name: value.clone() for name, value in old.network.net.state_dict().items()}
    feed(learner, b(10, seed=5))
    assert same(kept, old.network.net.state_dict())


def test_more_labels_than_the_newcomers_are_no_hindrance():
    learner = small_tame(training=Training(start="warm"))
    learner._pool = None
    feed(learner, a())
    learner._pool.active.network.grow(40)
    newcomer = learner._pool.recruit()
    assert newcomer.network.slots >= 40
    assert feed(learner, c(3))[-1].step == 62
