"""The selector: what it remembers, when it trains, and what it says before."""

from dataclasses import replace

import pytest
import torch
from worlds import QUICK, a, b, c, feed, small_tame

from tame import NetworkSelector, Settings
from tame.checks.failure import difference


def test_a_single_expert_needs_no_network():
    learner = small_tame()
    feed(learner, a())
    assert learner.consolidate().selector_trained
    assert learner._selector.parameters() == (0, 0, 0)
    assert learner.route(a(1)[0].x).unique().tolist() == [0]


def test_selector_learns_which_expert_knows_a_sample():
    selector = NetworkSelector(memory=500, training=QUICK, retraining=QUICK)
    learner = small_tame(selector=selector)
    feed(learner, a(100) + b(100))
    learner.consolidate()
    own = [(learner.route(batch.x) == 0)[batch.y < 2] for batch in a(10, seed=8)]
    own += [(learner.route(batch.x) == 1)[batch.y > 1] for batch in b(10, seed=9)]
    assert torch.cat(own).float().mean() > 0.95


def test_memory_is_a_uniform_sample_with_the_right_experts():
    selector = NetworkSelector(memory=400, training=QUICK, retraining=QUICK)
    learner = small_tame(selector=selector)
    feed(learner, a() + b())
    raw, slots, expert = learner._selector._reservoir.columns()
    first = {tuple(row) for batch in a() for row in batch.x.tolist()}
    truth = torch.tensor([0 if tuple(row) in first else 1 for row in raw.tolist()])
    assert torch.equal(expert.long(), truth)
    assert 150 < int((expert == 0).sum()) < 250
    assert slots.max() == 3


def test_every_memory_chooses_for_itself():
    """Seeds, experts and the selector draw their own keys."""
    one, two = small_tame(seed=0), small_tame(seed=1)
    for learner in (one, two):
        feed(learner, a() + b())
    memories = [
        memory
        for learner in (one, two)
        for memory in (
            learner._selector._reservoir,
            *(expert.memory for expert in learner._pool.experts),
        )
    ]
    keys = [key for memory in memories for key in memory.keys().tolist()]
    assert len(keys) == len(set(keys)) == 64 * 6


def test_training_is_pruned_to_its_sparsity():
    selector = NetworkSelector(memory=64, sparsity=0.75, training=QUICK, retraining=QUICK)
    learner = small_tame(selector=selector)
    feed(learner, a() + b())
    learner.consolidate()
    nonzero, nominal, dense = learner._selector.parameters()
    biases = 16 + 2
    assert dense == 8 * 16 + 16 * 2 + biases
    assert nonzero == (dense - biases) // 4 + biases
    assert nominal == round(dense / 4)


def test_dense_selector_is_not_retrained():
    """With nothing pruned there is nothing to repair."""
    selector = NetworkSelector(memory=64, sparsity=0.0, training=QUICK, retraining=QUICK)
    learner = small_tame(selector=selector)
    feed(learner, a() + b())
    learner.consolidate()
    nonzero, nominal, dense = learner._selector.parameters()
    assert nonzero == nominal == dense


def test_another_net_may_select():
    selector = NetworkSelector(
        net={"name": "mlp", "hidden": [5]}, memory=64, training=QUICK, retraining=QUICK
    )
    learner = small_tame(selector=selector)
    feed(learner, a() + b())
    learner.consolidate()
    assert learner._selector.parameters()[2] == 8 * 5 + 5 + 5 * 2 + 2


def test_refit_knows_the_newcomer():
    learner = small_tame()
    feed(learner, a() + b())
    learner.consolidate()
    feed(learner, c())
    known = learner._selector._known
    learner.consolidate()
    assert (known, learner._selector._known) == ([0, 1], [0, 1, 2])


def test_settings_are_values_not_a_memory():
    """A learner never writes to the settings it was given, and two learners share nothing."""
    learner = small_tame()
    before = repr(learner.settings.selector), len(learner.settings.selector._reservoir)
    feed(learner, a(3))
    assert (repr(learner.settings.selector), len(learner.settings.selector._reservoir)) == before
    other = type(learner)(net=learner.net, seed=0, settings=learner.settings)
    feed(other, a(3))
    assert difference(learner.state_dict(), other.state_dict()) is None


def test_equal_settings_are_equal():
    assert NetworkSelector() == NetworkSelector()
    assert Settings() == Settings()
    assert NetworkSelector(memory=3) != NetworkSelector(memory=4)


def test_sparsity_is_a_fraction():
    with pytest.raises(ValueError, match="sparsity lies in"):
        NetworkSelector(sparsity=1.0)


def wild(rate: float, said: set[str]):
    """Return a learner whose selector was trained at a rate far too high."""
    recipe = replace(QUICK, rate=rate, weight_decay=0.0)
    learner = small_tame(selector=NetworkSelector(memory=500, training=recipe, retraining=QUICK))
    feed(learner, a(100) + b(100))
    learner.consolidate(lambda what, *_: said.add(what))
    return learner


def test_training_that_ends_in_guessing_begins_anew_at_half_the_rate():
    said: set[str] = set()
    learner = wild(200.0, said)
    assert "training the selector again" in said
    assert learner._selector.parameters()[0] > 0


def test_if_it_never_learns_the_nearest_means_route():
    learner = wild(1e6, set())
    assert learner._selector.parameters() == (0, 0, 0)
    routed = torch.cat([learner.route(batch.x) for batch in b(10, seed=9)])
    assert (routed == 1).float().mean() > 0.6
