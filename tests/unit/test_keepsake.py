"""An expert that came back is put back if what it learned cost it what it knew."""

from dataclasses import replace

import torch
from test_careful import QUICK, careful, kinds, part
from worlds import feed

from tame.core.expert import Compact
from tame.core.keepsake import has_lost
from tame.core.ring import cloned


def led_astray(conduct=QUICK):
    """Return a learner whose expert 0 came back and then learned world 1, which nobody noticed."""
    learner = careful(conduct=conduct)
    feed(learner, part(0, 80, 0) + part(1, 60, 1) + part(0, 20, 2))
    expert, scene = learner._pool.active, learner._scene(learner._pool)
    assert (expert.id, expert.is_pruned) == (0, False)
    before = cloned(expert.brief())
    for x, y in part(1, 60, 3):
        expert.repeat(scene.lesson(x, y))
    learner._practice._ledger._ring.clear()
    assert has_lost(scene, expert, before)
    return learner


def same(expert, kept):
    """Say whether a network is as it was kept."""
    net = expert.network.net.state_dict()
    return all(torch.equal(net[name], was) for name, was in kept["network"]["net"].items())


def test_an_expert_that_forgot_its_world_is_put_back_when_it_is_left():
    learner = led_astray()
    kept = cloned(learner._practice._ledger._keepsake)
    assert not same(learner._pool.open(0), kept)
    feed(learner, part(2, 60, 4))
    assert learner.expert_ids == (0, 1, 2)
    assert same(learner._pool.open(0), kept)
    seen = feed(learner, part(0, 20, 5))
    assert learner._pool.active.id == 0
    assert "recruited" not in kinds(seen)


def test_an_expert_whose_world_returns_after_one_that_was_missed_remembers_it():
    learner = led_astray()
    seen = feed(learner, part(0, 20, 6))
    assert learner.expert_ids == (0, 1)
    assert learner._pool.active.id == 0
    assert "suspected" in kinds(seen)


def test_a_consolidation_leaves_it_alone_but_does_not_forget_how_it_was():
    learner = led_astray()
    ledger, scene = learner._practice._ledger, learner._scene(learner._pool)
    kept, now = cloned(ledger._keepsake), cloned(learner._pool.active.brief())
    ledger.close(scene)
    assert same(learner._pool.active, now)
    feed(learner, part(2, 60, 4))
    assert same(learner._pool.open(0), kept)


def test_an_expert_that_only_learned_more_is_left_as_it_is():
    learner = careful()
    feed(learner, part(0, 80, 0) + part(1, 60, 1) + part(0, 40, 2))
    kept = cloned(learner._practice._ledger._keepsake)
    feed(learner, part(1, 20, 3))
    assert kept["id"] == 0
    assert not same(learner._pool.open(0), kept)


def test_newcomers_and_runs_without_rollback_keep_nothing():
    learner = careful(conduct=replace(QUICK, rollback=False))
    feed(learner, part(0, 80, 0))
    assert learner._practice._ledger._keepsake is None
    feed(learner, part(1, 60, 1) + part(0, 20, 2))
    assert learner._pool.active.id == 0
    assert learner._practice._ledger._keepsake is None


def test_a_pruned_copy_of_a_later_time_does_not_outlive_going_back():
    learner = led_astray()
    expert, kept = learner._pool.active, learner._practice._ledger._keepsake
    expert.compact = Compact(expert.network.net, {}, 4, expert.network.steps)
    expert.resume(kept)
    assert expert.compact is None
    expert.compact = Compact(expert.network.net, {}, 4, expert.network.steps)
    expert.resume(kept)
    assert expert.compact is not None
