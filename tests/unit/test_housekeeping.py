"""Experts that are the same become one, pruned ones do not decay, and nothing grows for ever."""

import numpy as np
import pytest
import torch
from test_careful import QUICK, careful, part
from worlds import feed

from tame import Batch
from tame.core.class_selector import ClassSelector
from tame.core.keepsake import has_lost
from tame.core.merging import merge_same
from tame.core.reservoir import Reservoir
from tame.core.ring import cloned
from tame.core.selector import NetworkSelector
from tame.core.strata import Strata


def test_two_reservoirs_made_one_are_a_uniform_sample_of_both():
    times = np.zeros(60)
    for seed in range(300):
        one, two = Reservoir(10, seed), Reservoir(10, seed + 1000)
        one.add(torch.arange(20))
        two.add(torch.arange(20, 60))
        largest = sorted([*one.keys(), *two.keys()], reverse=True)[:10]
        one.absorb(two)
        assert one.keys().tolist() == largest
        assert one.seen == 60
        times[one.columns()[0].numpy()] += 1
    assert abs(times[:20].sum() / 3000 - 1 / 3) < 0.04
    one.add(torch.arange(60, 90))
    assert len(one) == 10


def test_a_reservoir_takes_in_an_empty_one_and_an_empty_one_takes_in_any():
    one, two = Reservoir(4, 0), Reservoir(4, 1)
    two.add(torch.arange(3), torch.arange(3))
    before = two.keys().tolist()
    two.absorb(Reservoir(4, 2))
    one.absorb(two)
    assert one.keys().tolist() == before
    assert sorted(one.columns()[0].tolist()) == [0, 1, 2]


@pytest.mark.parametrize("each", [0, 3])
def test_a_selector_renames_an_expert(each: int):
    selector = NetworkSelector(memory=16, each=each).fresh(0)
    x, y = torch.arange(20.0).view(10, 2), torch.arange(10) % 2
    selector.observe(x, y, 0)
    selector.observe(x, y, 3)
    selector.rename(3, 0)
    assert set(selector._reservoir.columns()[2].tolist()) == {0}
    assert isinstance(selector._reservoir, Strata if each else Reservoir)


def test_a_selector_over_classes_renames_an_expert_and_spares_its_samples():
    selector = ClassSelector(memory=64).fresh(0)
    x, y = torch.arange(20.0).view(10, 2), torch.arange(10) % 2
    selector.observe(x, y, 0)
    spare = selector.spare()
    spare.observe(x, y, 3)
    assert (selector.samples(), spare.samples()) == (10, 20)
    spare.rename(3, 0)
    assert set(spare._reservoir.columns()[2].tolist()) == {0}


def twice_the_same():
    """Return a learner with two experts for one world, and a third for another."""
    learner = careful()
    feed(learner, part(0, 60, 0))
    learner._practice.close(learner._scene(learner._pool))
    learner._pool.recruit()
    learner._practice._ledger.begin(learner._pool.active)
    feed(learner, part(0, 60, 5))
    feed(learner, part(1, 60, 6))
    assert learner.expert_ids == (0, 1, 2)
    return learner


def test_experts_that_know_each_others_samples_are_merged():
    learner = twice_the_same()
    done = learner.consolidate()
    assert done.merged == {1: 0}
    assert done.experts == 2
    assert learner.expert_ids == (0, 2)
    assert learner._pool.open(0).memory.seen == 16 * 120
    owners = learner._selector._reservoir.columns()[2]
    assert set(owners.tolist()) == {0, 2}
    assert learner.consolidate().merged == {}
    assert int(learner.route(part(0, 1, 77)[0].x).max()) <= 2
    seen = feed(learner, part(0, 20, 8))
    assert learner._pool.active.id == 0
    assert "recruited" not in [one.change for one in seen]


def test_different_experts_are_not_merged():
    learner = careful()
    feed(learner, part(0, 80, 0) + part(1, 60, 1) + part(2, 60, 2))
    learner._practice.close(learner._scene(learner._pool))
    assert merge_same(learner._scene(learner._pool)) == {}


def test_a_pruned_expert_that_decays_is_put_back():
    learner = careful()
    feed(learner, part(0, 80, 0) + part(1, 60, 1))
    learner.consolidate()
    feed(learner, part(0, 10, 3))
    expert = learner._pool.active
    assert (expert.id, expert.is_pruned) == (0, True)
    before = cloned(expert.brief())
    scene = learner._scene(learner._pool)
    ledger = learner._practice._ledger
    assert not has_lost(scene, expert, before)
    with torch.no_grad():
        for weight in expert.network.net.parameters():
            weight.neg_()
    assert has_lost(scene, expert, before)
    ledger._keepsake = before
    ledger.close(scene)
    for name, value in expert.network.net.state_dict().items():
        assert torch.equal(value, before["network"]["net"][name])


def test_a_keepsake_is_held_while_a_pruned_expert_is_active():
    learner = careful()
    feed(learner, part(0, 80, 0) + part(1, 60, 1))
    learner.consolidate()
    ledger = learner._practice._ledger
    assert ledger._keepsake is None
    feed(learner, part(0, 10, 3))
    assert ledger._keepsake["id"] == 0
    assert learner.sizes().training_bytes > 0


def test_two_hundred_segments_of_five_worlds_are_five_experts_and_memory_is_flat():
    learner, draws = careful(), np.random.default_rng(0)
    weights, last = [], -1
    for number in range(200):
        turn = number if number < 5 else int(draws.choice([t for t in range(5) if t != last]))
        last, length = turn, 60 if number < 5 else 12
        seed = 100 + number
        batches = part(turn % 4, length, seed)
        feed(learner, [Batch(-x, y) for x, y in batches] if turn == 4 else batches)
        if number % 20 == 19:
            learner.consolidate()
            sizes = learner.sizes()
            weights.append(sizes.sample_bytes + sizes.model_bytes + sizes.training_bytes)
    assert len(learner.expert_ids) == 5
    assert max(weights[5:]) <= 1.02 * max(weights[:5])
    ledger = learner._practice._ledger
    assert len(ledger.queue) <= 3 * QUICK.horizon
