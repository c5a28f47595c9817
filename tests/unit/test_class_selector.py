"""The selector over classes, the rule it tries first, and the joint decision."""

import pytest
import torch
from torch import nn
from worlds import QUICK, a, b, c, feed, small_tame, survives_saving

from tame import Batch
from tame.checks.failure import difference
from tame.core.class_router import ClassRouter, KnowsLabels, OnReady, linear_rule
from tame.core.class_selector import ClassSelector
from tame.core.distinct import Distinct
from tame.core.joint import Joint
from tame.core.routed import HardRouting
from tame.core.routers import NetworkRouter
from tame.engine.recipe import Recipe

NET = {"name": "mlp", "hidden": [24]}
LONGER = Recipe(epochs=30, batch=32, rate=0.1)
BY_NETWORK = ClassSelector(net=NET, memory=400, enough=1.01, nonzero=200, training=LONGER)
BY_RULE = ClassSelector(net=NET, memory=400, enough=0.0, sparsity=0.0, training=QUICK)


def consolidated(selector: ClassSelector, decision=None):
    learner = small_tame(selector=selector, decision=decision or Joint())
    feed(learner, a(100) + b(100))
    learner.consolidate()
    return learner


def score(learner, samples):
    right = [(learner.predict(batch.x) == batch.y).float() for batch in samples]
    return float(torch.cat(right).mean())


def test_the_rule_finds_means_that_differ():
    torch.manual_seed(0)
    target = torch.arange(600) % 3
    flat = torch.randn(600, 20) + 3 * nn.functional.one_hot(target, 20)
    rule = linear_rule(flat, target, 3, 0.5)
    assert int((rule.weight == 0).sum()) == 30
    assert (rule(flat).argmax(1) == target).float().mean() > 0.95


def test_the_rule_is_the_log_odds_of_normal_distributions():
    torch.manual_seed(0)
    target = torch.arange(400) % 2
    flat = torch.randn(400, 3) + 5 + target.unsqueeze(1)
    rule = linear_rule(flat, target, 2, 0.0)
    means = torch.stack([flat[target == owner].mean(0) for owner in (0, 1)])
    spread = (flat - means[target]).square().mean(0)
    spread = spread + 0.1 * spread.mean()
    far = -0.5 * ((flat.unsqueeze(1) - means).square() / spread).sum(2)
    expected = far[:, 0] - far[:, 1]
    found = rule(flat)
    assert torch.allclose(found[:, 0] - found[:, 1], expected, atol=1e-3)


def test_it_takes_the_rule_where_that_is_enough():
    learner = consolidated(BY_RULE)
    assert isinstance(learner.model.router, NetworkRouter)
    assert not isinstance(learner.model.router, KnowsLabels)
    assert learner._selector.parameters() == (18, 18, 18)


def test_it_takes_the_network_where_the_rule_is_not_enough():
    learner = consolidated(BY_NETWORK)
    assert isinstance(learner.model.router, ClassRouter)
    assert isinstance(learner.model.router, KnowsLabels)
    assert learner._selector.parameters()[0] == 200
    own = [(learner.route(batch.x) == 0)[batch.y < 2] for batch in a(10, seed=8)]
    assert torch.cat(own).float().mean() > 0.9


def test_mirrored_it_says_the_same_of_an_image_and_its_mirror_image():
    net = {"name": "convnet", "widths": [4], "halved": [0]}
    draws = torch.Generator().manual_seed(0)
    x, expert = torch.rand(64, 1, 8, 8, generator=draws), torch.arange(64) % 2
    said = []
    for mirrored in (False, True):
        selector = ClassSelector(net, 64, 1.01, nonzero=0, mirrored=mirrored, training=QUICK)
        learner = small_tame(net="mlp", selector=selector)
        for place in range(0, 64, 16):
            rows = slice(place, place + 16)
            learner.observe(Batch(x[rows], expert[rows]))
        for owner in (0, 1):
            learner._selector.observe(x[expert == owner], expert[expert == owner], owner)
        step = learner._intake.ready
        learner._selector.fit(learner._pool.plan, step)
        router = learner._selector.router(step, [0, 1])
        said.append([router(view, view) for view in (x, x.flip(3))])
    (plain, mirror), (both, same) = said
    assert not torch.allclose(plain, mirror, atol=1e-3)
    assert torch.allclose(both, same, atol=1e-5)


@pytest.mark.parametrize("selector", [BY_RULE, BY_NETWORK], ids=["rule", "network"])
def test_saved_and_loaded_it_answers_alike(selector: ClassSelector, tmp_path):
    assert survives_saving(consolidated(selector), tmp_path / "it.tame")


@pytest.mark.parametrize("selector", [BY_RULE, BY_NETWORK], ids=["rule", "network"])
def test_newcomers_are_told_by_their_means(selector: ClassSelector):
    learner = consolidated(selector)
    feed(learner, c())
    x = torch.cat([batch.x for batch in a(4, seed=7) + b(4, seed=8) + c(4, seed=9)])
    assert learner.route(x).unique().tolist() == [0, 1, 2]
    assert (learner.predict(x) >= 0).all()


def test_deciding_jointly_is_no_worse_than_routing_hard():
    samples = a(10, seed=8)
    assert score(consolidated(BY_NETWORK), samples) >= score(
        consolidated(BY_NETWORK, HardRouting()), samples
    )


def test_trust_in_the_best_expert_alone_is_hard_routing():
    joint, hard = consolidated(BY_NETWORK, Joint(1, 1.0)), consolidated(BY_NETWORK, HardRouting())
    x = torch.cat([batch.x for batch in a(4, seed=7) + b(4, seed=8)])
    assert torch.equal(joint.predict(x), hard.predict(x))


def test_trust_in_experts_alone_leaves_no_gaps():
    """A label that neither knows is minus infinity for both, whatever their shares."""
    learner = consolidated(BY_NETWORK, Joint(trust=1.0))
    scores, _ = learner.log_probabilities(a(1, seed=7)[0].x)
    assert not scores.isnan().any()


def test_scores_are_log_probabilities():
    scores, labels = consolidated(BY_NETWORK).log_probabilities(a(1, seed=7)[0].x)
    assert scores.shape[1] == len(labels)
    assert torch.allclose(scores.exp().sum(1), torch.ones(len(scores)), atol=1e-5)


def test_a_label_the_selector_never_kept_is_left_to_the_expert():
    pairs = (torch.tensor([0, 0, 1]), torch.tensor([0, 1, 0]))
    router = ClassRouter(OnReady(nn.Linear(4, 3)), pairs, 2, None)
    x = torch.randn(5, 4)
    scores, said = router.opinions(x, x)
    told = router.labels(said, torch.ones(5, dtype=torch.int64), 3)
    assert torch.allclose(scores.exp().sum(1), torch.ones(5))
    assert torch.equal(told[:, 0], torch.zeros(5))
    assert told[:, 1:].isnan().all()


def test_it_refuses_what_makes_no_sense():
    with pytest.raises(ValueError, match="trust lies in"):
        Joint(trust=0.0)
    with pytest.raises(ValueError, match="sparsity lies in"):
        ClassSelector(sparsity=1.0)
    with pytest.raises(ValueError, match="nonzero is 0"):
        ClassSelector(nonzero=-1)


def test_a_single_expert_needs_no_network():
    learner = small_tame(selector=BY_NETWORK)
    feed(learner, a())
    assert learner.consolidate().selector_trained
    assert learner._selector.parameters() == (0, 0, 0)
    assert not learner.consolidate().selector_trained


def test_a_sample_shown_again_is_kept_once_and_every_one_is_as_likely():
    entries = torch.arange(200).view(200, 1)
    slots, times = torch.zeros(200, dtype=torch.int64), torch.zeros(200)
    for seed in range(300):
        kept = Distinct(20, seed)
        for begin in (0, 100, 0, 0, 100, 0):
            kept.add(entries[begin : begin + 100], slots[begin : begin + 100], 0)
        assert len(kept) == 20
        assert kept.seen == 600
        times[kept.columns()[0].flatten()] += 1
    assert abs(float(times[:100].mean()) - 30) < 2.5  # 100 shown four times
    assert times.max() < 60


def test_the_same_sample_of_another_expert_is_another():
    kept = Distinct(20, 0)
    x, slots = torch.rand(4, 3), torch.zeros(4, dtype=torch.int64)
    for expert in (0, 1, 0, 1):
        kept.add(x, slots, expert)
    assert len(kept) == 8
    kept.add(x, slots + 1, 0)
    assert len(kept) == 12


def test_a_distinct_memory_goes_on_as_if_never_saved():
    one, other = Distinct(10, 3), Distinct(10, 3)
    x, slots = torch.rand(60, 3), torch.zeros(60, dtype=torch.int64)
    one.add(x[:30], slots[:30], 0)
    other.load_state_dict(one.state_dict())
    for memory in (one, other):
        memory.add(x[20:], slots[20:], 0)
    assert difference(one.state_dict(), other.state_dict()) is None
