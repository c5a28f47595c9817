"""Consolidation: what is pruned, what stays dense, and what training does to a mask."""

import copy
from typing import Any

import pytest
import torch
from torch import nn
from worlds import QUICK, a, b, changes, feed, small_tame

from tame import Batch, Magnitude, Reading
from tame.checks.failure import difference
from tame.core.consolidate import bootstrap, split_memory
from tame.core.intake import NUMBERS
from tame.core.prune import count_nonzero, magnitude_masks


def consolidated(**parts: Any):
    """Return a learner with a pruned expert 0 and a dense, active expert 1."""
    learner = small_tame(**parts)
    assert changes(feed(learner, a() + b())) == [(60, "recruited", 1)]
    learner.consolidate()
    return learner


def zeros_under(expert: Any):
    parameters = dict(expert.network.net.named_parameters())
    return all(not parameters[name][~mask].any() for name, mask in expert.network.masks.items())


def test_masks_keep_the_largest_weights_of_the_whole_net():
    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
    masks = magnitude_masks(net, 0.75)
    weights = torch.cat([net[0].weight.flatten(), net[2].weight.flatten()]).abs()
    kept = torch.cat([masks["0.weight"].flatten(), masks["2.weight"].flatten()])
    assert int(kept.sum()) == round(0.25 * 42)
    assert weights[kept].min() >= weights[~kept].max()


def test_a_net_that_is_one_layer_has_a_mask_too():
    net = nn.Linear(4, 5)
    assert int(magnitude_masks(net, 0.5)["weight"].sum()) == 10


def test_inactive_expert_is_replaced_by_its_pruned_form():
    learner = consolidated()
    first = learner._pool.experts[0]
    assert first.is_pruned
    assert first.compact is None
    assert zeros_under(first)
    weights = sum(mask.numel() for mask in first.network.masks.values())
    kept = sum(int(mask.sum()) for mask in first.network.masks.values())
    assert kept == weights // 2
    assert first.network.optimiser.state_dict()["state"] == {}


def test_what_is_not_pruned_is_not_retrained():
    learner = small_tame(pruner=Magnitude(sparsity=0.0, memory=64, retraining=QUICK))
    feed(learner, a() + b())
    first = learner._pool.experts[0]
    before = copy.deepcopy(dict(first.network.net.state_dict()))
    learner.consolidate()
    after = learner._pool.experts[0].network.net.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())


def test_active_expert_stays_dense_and_predicts_pruned():
    learner = small_tame()
    feed(learner, a() + b())
    second = learner._pool.active
    before = copy.deepcopy(second.network.state_dict())
    learner.consolidate()
    assert difference(before, second.network.state_dict()) is None
    assert not second.is_pruned
    assert second.answers is second.compact.net
    assert count_nonzero(second.answers) < count_nonzero(second.network.net)
    feed(learner, b(1, seed=9))
    assert second.answers is second.network.net


def test_active_expert_is_pruned_once_it_is_left():
    learner = consolidated()
    second = learner._pool.active
    assert changes(feed(learner, a(5, seed=9))) == [(120, "switched", 0)]
    assert not second.is_pruned
    assert learner.consolidate().pruned == {}
    assert second.is_pruned
    assert zeros_under(second)


def test_pruned_expert_trains_inside_its_mask():
    learner = consolidated()
    first = learner._pool.experts[0]
    before = copy.deepcopy(first.network.state_dict())
    assert changes(feed(learner, a(20, seed=9))) == [(120, "switched", 0)]
    after = first.network.state_dict()
    assert difference(before["net"], after["net"])
    assert difference(before["masks"], after["masks"]) is None
    assert zeros_under(first)
    assert after["steps"] == before["steps"] + 20


def test_detector_is_rebased_on_the_pruned_nets_own_losses():
    learner = small_tame()
    feed(learner, a() + b())
    first = learner._pool.experts[0]
    before = copy.deepcopy(first.detector.state_dict())
    learner.consolidate()
    after = first.detector.state_dict()
    assert difference(before["losses"], after["losses"])
    assert after["smoothed"] == pytest.approx(sum(after["losses"]) / 30)
    assert after["seen"] == first.detector.burn_in
    assert len(set(after["losses"])) > 1


def test_rebased_detector_takes_its_own_back_and_refuses_others():
    learner = consolidated()
    first = learner._pool.experts[0]
    assert len(first.detector.state_dict()["losses"]) == 30  # a full window
    assert changes(feed(learner, a(30, seed=9))) == [(120, "switched", 0)]
    assert changes(feed(learner, b(1, seed=9))) == [(150, "switched", 1)]


@pytest.mark.parametrize("sparsity", [0.0, 0.5, 0.9])
def test_second_call_changes_no_bit_at_any_sparsity(sparsity: float):
    learner = consolidated(pruner=Magnitude(sparsity=sparsity, memory=64, retraining=QUICK))
    before = copy.deepcopy(learner.state_dict())
    record = learner.consolidate()
    assert record.pruned == {}
    assert not record.selector_trained
    assert difference(before, learner.state_dict()) is None


def test_sparsity_is_a_fraction():
    for wrong in (1.0, -0.1):
        with pytest.raises(ValueError, match="sparsity lies in"):
            Magnitude(sparsity=wrong)


def test_a_tenth_is_held_back_and_never_retrained_on():
    learner = small_tame()
    feed(learner, a())
    (used, _), (held, _) = split_memory(learner._pool.active)
    assert len(held) == 6
    assert len(used) == 64 - 6
    assert not {tuple(row) for row in held.tolist()} & {tuple(row) for row in used.tolist()}


def test_repeats_of_a_held_back_sample_are_held_back_too():
    learner = small_tame()
    batch = a(1)[0]
    feed(learner, [batch] * 40)
    (used, _), (held, _) = split_memory(learner._pool.active)
    assert not {tuple(row) for row in held.tolist()} & {tuple(row) for row in used.tolist()}


def test_all_samples_are_retrained_on_where_none_is_held_back():
    learner = small_tame()
    feed(learner, a())
    learner._pool.active.held_back = 0.0
    (used, _), (held, _) = split_memory(learner._pool.active)
    assert len(used) == len(held) == 64
    with pytest.raises(ValueError, match="held_back is a share"):
        Magnitude(held_back=1.0)


def test_a_stream_of_one_sample_can_be_consolidated():
    learner = small_tame()
    feed(learner, [Batch(torch.ones(1, 8), [3])])
    assert learner.consolidate().experts == 1
    assert learner.predict(torch.ones(1, 8)).tolist() == [3]


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_every_dtype_taken_can_be_consolidated(dtype: torch.dtype):
    learner = small_tame()
    scale = 50 if dtype == torch.uint8 else 1
    convert = [Batch((batch.x.clamp(min=0) * scale).to(dtype), batch.y) for batch in a(20) + b(20)]
    feed(learner, convert)
    learner.consolidate()
    assert learner.predict(convert[0].x).shape == (16,)


def test_bootstrap_gives_readings_of_whole_batches():
    readings = bootstrap(torch.tensor([1.0, 1.0, 1.0]), 32, seed=0)
    assert readings == [Reading(1.0, 0.0, 32)] * 100


def test_sizes_count_what_is_left():
    learner = small_tame()
    feed(learner, a() + b())
    dense = 8 * 16 + 16 + 16 * 10 + 10
    assert learner.sizes().nonzero == learner.sizes().dense == 2 * dense
    sizes = learner.consolidate().sizes
    selector = 8 * 16 + 16 + 16 * 2 + 2
    biases = 2 * (16 + 10) + 16 + 2
    assert sizes.dense == 2 * dense + selector
    assert sizes.nonzero == (sizes.dense - biases) // 2 + biases
    assert sizes.paper_count == 2 * round(dense / 2) + round(selector / 2)
    assert sizes.samples == 64 * 3
