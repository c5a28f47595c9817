"""Consolidation repeats a retraining that failed, and prunes less where pruning ruins."""

import pytest
import torch
from worlds import QUICK, a, b, feed, small_tame

from tame import Magnitude, NetworkSelector, Settings
from tame.core.consolidate import compact
from tame.engine.recipe import Recipe


def test_a_failed_retraining_is_repeated_at_half_the_rate():
    # Sigmoid outputs at an absurd rate saturate, and the gradient dies.
    wild = Recipe(epochs=5, batch=32, rate=400.0)
    learner = small_tame(pruner=Magnitude(sparsity=0.5, memory=64, tolerance=1.0, retraining=wild))
    feed(learner, a())
    assert learner.consolidate().pruned[0] > 1


def test_an_ordinary_retraining_takes_one_attempt():
    learner = small_tame(pruner=Magnitude(sparsity=0.5, memory=64, tolerance=1.0, retraining=QUICK))
    feed(learner, a())
    assert learner.consolidate().pruned == {0: 1}


@pytest.mark.parametrize(("tolerance", "kept"), [(0.02, 0.03), (1.0, 0.03)])
def test_a_network_too_small_for_so_much_pruning_keeps_more(tolerance, kept):
    pruner = Magnitude(sparsity=0.99, memory=200, tolerance=tolerance, retraining=QUICK)
    learner = small_tame(pruner=pruner)
    feed(learner, [*a(), *b()])
    learner.consolidate()
    (mask, *others) = learner._pool.experts[0].network.masks.values()
    share = sum(int(m.sum()) for m in (mask, *others)) / sum(m.numel() for m in (mask, *others))
    assert (share > kept) == (tolerance < 1.0)


def test_nothing_is_pruned_twice():
    learner = small_tame()
    feed(learner, a())
    learner.consolidate()
    step, live = learner._intake.ready, len(learner._intake.labels)
    assert compact([learner._pool.active], learner.settings.pruner, step, live) == {}


def test_a_selector_may_see_samples_larger_than_the_experts_do():
    from tame import TAME, Batch, Inputs

    selector = NetworkSelector(
        net={"name": "mlp", "hidden": [8]}, memory=64, inputs=Inputs(size=(12, 12)),
        training=QUICK, retraining=QUICK,
    )  # fmt: skip
    pruner = Magnitude(sparsity=0.5, memory=64, retraining=QUICK)
    learner = TAME(net="mlp", settings=Settings(selector=selector, pruner=pruner))
    draws = torch.Generator().manual_seed(0)
    for dark in (0, 1):
        for _ in range(60):
            x = torch.randint(0, 100, (16, 1, 6, 6), generator=draws, dtype=torch.uint8)
            y = torch.randint(0, 2, (16,), generator=draws)
            x[:, 0, 0, 0] = (
                (y * 250).to(torch.uint8) if dark == 0 else ((1 - y) * 250).to(torch.uint8)
            )
            x[:, 0, 5, 5] = dark * 250
            learner.observe(Batch(x, y))
    assert learner.expert_ids == (0, 1)
    learner.consolidate()
    assert learner.model.router.net[1].in_features == 144
    x[:, 0, 5, 5] = 0
    assert (learner.route(x) == 0).double().mean() > 0.9
    x[:, 0, 5, 5] = 250
    assert (learner.route(x) == 1).double().mean() > 0.9


def test_a_balanced_memory_resumes():
    selector = NetworkSelector(each=5, training=QUICK, retraining=QUICK)
    one, two = (small_tame(selector=selector) for _ in range(2))
    feed(one, [*a(), *b()])
    two.load_state_dict(one.state_dict())
    assert two._selector.samples() == one._selector.samples() == 2 * 4 * 5
    one.consolidate()
    two.consolidate()
    x = torch.randn(50, 8)
    assert torch.equal(one.predict(x), two.predict(x))
