"""Class statistics of a stream, the selector made of them, and trunks they are gathered over."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from worlds import QUICK, a, b, c, feed, small_method, small_tame, survives_saving

from tame import TAME, Batch, Deviation, Settings, load
from tame.checks import check_learner
from tame.checks.failure import difference
from tame.core.augment import Crop
from tame.core.class_router import ClassRouter
from tame.core.gradual import Gradual
from tame.core.inputs import Inputs, InputStep
from tame.core.joint import Joint
from tame.core.moment_router import MomentScores
from tame.core.moment_selector import MomentSelector
from tame.core.moments import Moments
from tame.core.settings import Training
from tame.core.trunk import Trunk
from tame.engine.recipe import Recipe
from tame.errors import ConfigError, InputError
from tame.nets.lenet import LeNet
from tame.nets.mlp import MLP
from tame.nets.resnet import ResNet18
from tame.registry import METHODS

NET = MLP(hidden=(24,))
SMALL_TRUNK = ResNet18(stem="small")
ALONE = MomentSelector(memory=400)
WITH_NET = MomentSelector(net=NET, memory=400, training=Recipe(epochs=20, batch=32, rate=0.1))
BOTH = pytest.mark.parametrize("selector", [ALONE, WITH_NET], ids=["statistics", "network"])


def vectors(count: int = 60, width: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    slots = torch.arange(count) % 3
    return torch.randn(count, width) + 4 * nn.functional.one_hot(slots, width), slots


def consolidated(selector: MomentSelector) -> TAME:
    learner = small_tame(selector=selector, decision=Joint())
    feed(learner, a(100) + b(100))
    learner.consolidate()
    return learner


def score(learner: TAME, samples: list[Batch]) -> float:
    right = [(learner.predict(batch.x) == batch.y).float() for batch in samples]
    return float(torch.cat(right).mean())


def test_the_rule_is_that_of_normal_distributions():
    x, slots = vectors()
    moments = Moments()
    moments.add(x, slots, 0)
    means = torch.stack([x[slots == slot].mean(0) for slot in range(3)]).double()
    away = x.double() - means[slots]
    spread = away.T @ away / (len(x) - 3)
    spread = 0.8 * spread + 0.2 * spread.diagonal().mean() * torch.eye(5)
    far = x.double().unsqueeze(1) - means
    expected = (-0.5 * (far @ torch.linalg.inv(spread) * far).sum(2)).log_softmax(1)
    found = moments.rule(0.2)(x).log_softmax(1)
    assert torch.allclose(found.double(), expected, atol=1e-3)


def test_batches_and_their_order_make_no_difference():
    x, slots = vectors()
    whole, parts = Moments(), Moments()
    whole.add(x, slots, 1)
    for rows in reversed(torch.arange(60).split(7)):
        parts.add(x[rows], slots[rows], 1)
    assert sorted(parts.pairs) == whole.pairs
    order = [parts.pairs.index(pair) for pair in whole.pairs]
    assert torch.allclose(parts.means()[order], whole.means(), atol=1e-5)
    assert torch.allclose(parts.rule(0.1).weight[order], whole.rule(0.1).weight, atol=1e-3)


def test_ten_passes_give_what_one_gives():
    x, slots = vectors(600)
    once, often = Moments(), Moments()
    once.add(x, slots, 0)
    for _ in range(10):
        often.add(x, slots, 0)
    assert torch.allclose(once.rule(0.1).weight, often.rule(0.1).weight, rtol=0.02)


def test_what_is_renamed_is_added_up():
    x, slots = vectors()
    moments, expected = Moments(), Moments()
    moments.add(x[:30], slots[:30], 4)
    moments.add(x[30:], slots[30:], 2)
    moments.rename(4, 2)
    expected.add(x, slots, 2)
    assert moments.pairs == expected.pairs
    assert torch.allclose(moments.means(), expected.means(), atol=1e-5)


def test_half_of_the_products_is_kept():
    x, slots = vectors()
    moments = Moments()
    moments.add(x, slots, 0)
    assert moments.nbytes() == 4 * (5 * 6 // 2 + 3 * 5 + 3)


def test_a_single_sample_makes_a_rule():
    moments = Moments()
    moments.add(torch.ones(1, 4), torch.tensor([0]), 0)
    assert torch.isfinite(moments.rule(0.1)(torch.ones(2, 4))).all()


@BOTH
def test_it_routes_and_decides(selector: MomentSelector):
    learner = consolidated(selector)
    assert isinstance(learner.model.router, ClassRouter)
    assert score(learner, a(10, seed=8) + b(10, seed=9)) > 0.65


@BOTH
def test_newcomers_are_told_by_their_statistics(selector: MomentSelector):
    learner = consolidated(selector)
    feed(learner, c())
    x = torch.cat([batch.x for batch in a(4, seed=7) + b(4, seed=8) + c(4, seed=9)])
    assert learner.route(x).unique().tolist() == [0, 1, 2]


@BOTH
def test_saved_and_loaded_it_answers_alike(selector: MomentSelector, tmp_path):
    assert survives_saving(consolidated(selector), tmp_path / "it.tame")


def test_before_consolidation_the_statistics_answer():
    learner = small_tame(selector=WITH_NET, decision=Joint())
    feed(learner, a(100) + b(100))
    assert isinstance(learner.model.router, ClassRouter)
    assert score(learner, a(10, seed=8) + b(10, seed=9)) > 0.65


def test_a_network_is_trusted_among_what_it_knows():
    rule = nn.Linear(2, 3)
    scores = MomentScores(rule, 2.0, None)
    told = scores(torch.zeros(4, 2), torch.randn(4, 2))
    assert torch.allclose(told.exp().sum(1), torch.ones(4))


def test_parameters_and_bytes_count_the_statistics():
    learner = consolidated(ALONE)
    pairs, width = learner._selector._moments.shape
    assert learner._selector.parameters() == (pairs * (width + 1),) * 3
    kept = learner._selector._reservoir.nbytes() + learner._selector._moments.nbytes()
    assert learner._selector.nbytes() == (4 * pairs * (width + 1), kept)


@pytest.mark.parametrize(
    "wrong", [{"shrinkage": 0.0}, {"share": 1.5}, {"temperature": 0.0}], ids=str
)
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match=r"shrinkage|temperature"):
        MomentSelector(**wrong)


def through_a_trunk(seed: int = 0) -> TAME:
    settings = Settings(
        inputs=Inputs(trunk=SMALL_TRUNK, size=(8, 8)),
        detector=Deviation(window=20),
        training=Training(rate=0.1),
        selector=MomentSelector(
            net=NET,
            memory=100,
            inputs=Inputs(size=(8, 8)),
            training=Recipe(epochs=2, batch=16, rate=0.02, augment=Crop(padding=1)),
        ),
        pruner=Gradual(nonzero=2000, pace=10.0, memory=20, tolerance=1.0, retraining=QUICK),
        decision=Joint(),
    )
    return TAME(net={"name": "mlp", "hidden": []}, seed=seed, settings=settings)


def colours(segment: int, count: int, seed: int = 0) -> list[Batch]:
    """Return batches of images of two colours, other ones in every segment."""
    draws = torch.Generator().manual_seed(10 * seed + segment)
    batches = []
    for _ in range(count):
        y = torch.randint(0, 2, (16,), generator=draws)
        x = torch.randint(0, 60, (16, 3, 10, 10), generator=draws)
        x[torch.arange(16), (y + segment) % 3] += 150 + 20 * segment
        batches.append(Batch(x.to(torch.uint8), y + 2 * segment))
    return batches


def test_a_trunk_is_shared_frozen_and_counted(tmp_path):
    learner = through_a_trunk()
    before = None
    for batch in colours(0, 40) + colours(1, 40):
        learner.observe(batch)
        state = learner._intake.ready.trunk.state_dict()
        before = before or {name: value.clone() for name, value in state.items()}
    learner.consolidate()
    state = learner._intake.ready.trunk.state_dict()
    assert all(torch.equal(before[name], state[name]) for name in state)
    trunk = sum(p.numel() for p in learner._intake.ready.trunk.parameters())
    assert learner.sizes().dense > trunk > 10_000_000
    learner.save(tmp_path / "it.tame")
    other = load(tmp_path / "it.tame")
    x = torch.cat([batch.x for batch in colours(0, 3, seed=1) + colours(1, 3, seed=1)])
    y = torch.cat([batch.y for batch in colours(0, 3, seed=1) + colours(1, 3, seed=1)])
    assert torch.equal(learner.predict(x), other.predict(x))
    assert (learner.predict(x) == y).float().mean() > 0.9


def test_a_trunk_sees_an_image_and_its_mirror_image_alike():
    trunk = Trunk(SMALL_TRUNK, (3, 8, 8))
    x = torch.rand(3, 3, 8, 8)
    assert torch.allclose(trunk(x), trunk(x.flip(3)), atol=1e-5)
    assert not trunk.train().net.training
    assert not any(p.requires_grad for p in trunk.parameters())


def test_many_images_go_through_a_trunk_in_parts():
    step = InputStep(Inputs(trunk=SMALL_TRUNK), (3, 8, 8), torch.uint8)
    x = torch.randint(0, 255, (300, 3, 8, 8)).to(torch.uint8)
    assert step.output_shape == (512,)
    assert torch.allclose(step(x)[256:], step(x[256:]), atol=1e-5)
    assert step(x[:0]).shape == (0, 512)


def test_what_has_no_trunk_is_refused():
    with pytest.raises(ConfigError, match="no trunk"):
        Trunk(LeNet(), (3, 28, 28))
    with pytest.raises(InputError, match="seen by a trunk"):
        InputStep(Inputs(trunk=SMALL_TRUNK), (8,), torch.float32)


@BOTH
def test_the_contract_holds(selector: MomentSelector):
    check_learner(lambda seed: small_tame(selector=selector, decision=Joint(), seed=seed))


@pytest.mark.parametrize("method", ["slda", "ranpac", "ncm", "finetune", "er-ace", "gdumb"])
def test_any_method_can_stand_on_a_trunk_that_is_counted(method: str):
    made = METHODS.get(method)
    settings = replace(small_method(method, 0).settings, inputs=Inputs(trunk=SMALL_TRUNK))
    learner = made(net=NET, seed=0, settings=settings)
    for batch in colours(0, 3):
        learner.observe(batch)
    learner.consolidate()
    trunk = Trunk(SMALL_TRUNK, (3, 10, 10))
    assert learner.sizes().dense > sum(p.numel() for p in trunk.parameters())
    assert learner.predict(colours(0, 1)[0].x).shape == (16,)


def test_stopped_and_resumed_over_a_trunk_it_goes_on_as_if_never_stopped(tmp_path):
    stream = colours(0, 24) + colours(1, 8)
    whole, first = through_a_trunk(), through_a_trunk()
    for batch in stream:
        whole.observe(batch)
    for batch in stream[:20]:
        first.observe(batch)
    first.save(tmp_path / "it.tame")
    second = load(tmp_path / "it.tame")
    for batch in stream[20:]:
        second.observe(batch)
    for learner in (whole, second):
        learner.consolidate()
    assert difference(whole.state_dict(), second.state_dict()) is None


def test_with_a_single_expert_the_statistics_still_tell_labels():
    learner = small_tame(selector=ALONE, decision=Joint(trust=0.25))
    feed(learner, a(40))
    assert isinstance(learner.model.router, ClassRouter)
    assert learner.route(a(1, seed=5)[0].x).unique().tolist() == [0]
    assert score(learner, a(10, seed=8)) > 0.8
