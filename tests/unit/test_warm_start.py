"""Newcomers that start from what the active expert knows."""

from typing import Any

import pytest
import torch
from worlds import a, b, c, changes, feed, small_tame

from tame import TAME, Reading, Training
from tame.core.trial import Trial
from tame.loading import completed


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


def test_features_come_without_the_last_layer():
    before, after = first_weights("features")
    kept = [name for name in before if torch.equal(before[name], after[name])]
    assert kept == list(before)[:-2]
    assert len(kept) >= 2


@pytest.mark.parametrize("start", ["features", "warm"])
def test_a_pruned_expert_is_nobodys_start(start: Any):
    before, after = first_weights(start, settle=True)
    assert not any(torch.equal(before[name], after[name]) for name in before)


def test_a_newcomer_that_took_features_does_not_answer_for_the_old_world():
    """Whoever took the last layer too does: what it read its first batches with."""
    first = a(1)[0]
    losses = {}
    for start in ("features", "warm"):
        learner = small_tame(training=Training(start=start))
        feed(learner, a())
        pool = learner._pool
        seen = learner._admit(first)[1]
        usual, losses[start] = pool.active.measure(seen).loss, pool.recruit().measure(seen).loss
    assert losses["warm"] == pytest.approx(usual)
    assert losses["features"] > 5 * usual


def test_a_warm_newcomer_leaves_the_expert_it_began_as_alone():
    learner = small_tame(training=Training(start="warm"))
    assert changes(feed(learner, a() + b())) == [(60, "recruited", 1)]
    old, new = learner._pool.experts
    assert not same(old.network.net.state_dict(), new.network.net.state_dict())
    kept = {name: value.clone() for name, value in old.network.net.state_dict().items()}
    feed(learner, b(10, seed=5))
    assert same(kept, old.network.net.state_dict())


def test_a_warm_newcomer_is_not_blamed_for_what_it_was_sure_of():
    """Over all of its first batches it is no better than guessing; without the first half it is."""
    learner = small_tame(training=Training(start="warm", patience=20))
    feed(learner, a())
    pool = learner._pool
    warm = pool.recruit().trial
    labels = torch.tensor([0, 1])
    losses = [9.0] * 10 + [0.1] * 20
    assert not any(warm.add(Reading(loss), labels, 2) for loss in losses)
    assert warm.learned
    fresh = Trial(20, "logits")
    assert any(fresh.add(Reading(loss), labels, 2) for loss in losses[:20])


def test_files_from_before_there_was_a_choice_go_on_with_fresh_weights():
    kept = {"training": {"rate": 0.1}}
    assert completed(TAME, kept)["training"] == {"start": "fresh", "rate": 0.1}
    warm = {"training": {"start": "warm"}}
    assert completed(TAME, warm)["training"] == {"start": "warm"}


def test_more_labels_than_the_newcomers_are_no_hindrance():
    learner = small_tame(training=Training(start="warm"))
    learner._pool = None
    feed(learner, a())
    learner._pool.active.network.grow(40)
    newcomer = learner._pool.recruit()
    assert newcomer.network.slots >= 40
    assert feed(learner, c(3))[-1].step == 62
