"""Replay, asymmetric replay and dark replay: losses by hand, what is kept, and how much of it."""

from typing import Any

import pytest
import torch
from digits import INPUTS, kept
from torch import nn
from torch.nn import functional as F
from worlds import a, b, feed, lesson

from tame import Batch
from tame.core.settings import Training
from tame.methods.derpp import DERpp, DERppSettings, likeness
from tame.methods.er import ER
from tame.methods.er_ace import ERACE, asymmetric
from tame.methods.finetune import FineTune
from tame.methods.replay import Replay, ReplaySettings
from tame.methods.single import SingleSettings
from tame.methods.vectors import weights

PLAIN = Training(rate=0.1, momentum=0.0, nesterov=False, weight_decay=0.0, clip=0.0)
NET = {"name": "mlp", "hidden": [8]}
FIRST = Batch([[1.0, 0.5, 0.0], [0.3, 1.0, 0.2]], [0, 1])
SECOND = Batch([[0.1, 0.2, 1.0]], [2])


class Diagonal(nn.Module):
    """Three logits, each an input times its own weight."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.outputs = outputs
        self.weight = nn.Parameter(torch.tensor([0.3, -0.2, 0.1]))

    def forward(self, x):
        return (x * self.weight)[:, : self.outputs]


def make(method: Any, settings: Any):
    return method(net=lambda _shape, outputs: Diagonal(outputs), settings=settings)


def slope(weight, loss):
    """Return the gradient of a loss of the weights."""
    free = weight.clone().requires_grad_()
    return torch.autograd.grad(loss(free), free)[0]


def test_replay_learns_the_batch_and_the_memory_as_one():
    learner = make(ER, ReplaySettings(slots=3, training=PLAIN, replay=2))
    learner.observe(FIRST)
    before = weights(learner._single.built.net)
    learner.observe(SECOND)
    x, y = torch.cat([FIRST.x, SECOND.x]), torch.cat([FIRST.y, SECOND.y])
    step = slope(before, lambda w: F.cross_entropy(x * w, y))
    assert torch.allclose(weights(learner._single.built.net), before - 0.1 * step, rtol=1e-5)


def test_asymmetric_loss_masks_the_batch_and_not_the_memory():
    learner = make(ERACE, ReplaySettings(slots=3, training=PLAIN, replay=2))
    learner.observe(FIRST)
    before = weights(learner._single.built.net)
    learner.observe(Batch([[0.1, 0.2, 1.0], [0.4, 0.1, 0.3]], [2, 0]))

    def loss(weight):
        x = torch.tensor([[0.1, 0.2, 1.0], [0.4, 0.1, 0.3]])
        new = F.cross_entropy((x * weight)[:, [0, 2]], torch.tensor([1, 0]))
        return new + F.cross_entropy(FIRST.x * weight, FIRST.y)

    step = slope(before, loss)
    assert torch.allclose(weights(learner._single.built.net), before - 0.1 * step, rtol=1e-5)


def test_asymmetric_loss_gives_absent_labels_no_gradient():
    outputs = torch.zeros(3, 4, requires_grad=True)
    new = lesson(torch.zeros(2, 1), torch.tensor([1, 3]), 4)
    old = lesson(torch.zeros(1, 1), torch.tensor([0]), 4)
    asymmetric(outputs, new, old, "logits").backward()
    assert outputs.grad is not None
    assert outputs.grad[:2, [0, 2]].abs().sum() == 0
    assert bool((outputs.grad[:2, [1, 3]] != 0).all())
    assert bool((outputs.grad[2] != 0).all())


def test_first_batch_has_nothing_to_repeat():
    plain = make(FineTune, SingleSettings(slots=3, training=PLAIN))
    plain.observe(FIRST)
    expected = weights(plain._single.built.net)
    for method, settings in ((ER, ReplaySettings), (ERACE, ReplaySettings), (DERpp, DERppSettings)):
        learner = make(method, settings(slots=3, training=PLAIN))
        learner.observe(FIRST)
        assert torch.allclose(weights(learner._single.built.net), expected)


def test_dark_replay_keeps_the_outputs_of_the_time():
    learner = make(DERpp, DERppSettings(slots=3, training=PLAIN))
    learner.observe(FIRST)
    raw, slots, outputs, live = learner._replay._reservoir.columns()
    expected = raw * torch.tensor([0.3, -0.2, 0.1])  # the weights before they learned
    assert torch.allclose(outputs[:, :2], expected[:, :2])
    assert live.tolist() == [2, 2]
    assert sorted(slots.tolist()) == [0, 1]


def test_dark_replay_by_hand():
    settings = DERppSettings(slots=3, training=PLAIN, replay=2, alpha=0.7, beta=0.4)
    learner = make(DERpp, settings)
    learner.observe(FIRST)
    before = weights(learner._single.built.net)
    learner.observe(SECOND)
    kept_outputs = (FIRST.x * torch.tensor([0.3, -0.2, 0.1]))[:, :2]

    def loss(weight):
        new = F.cross_entropy(SECOND.x * weight, SECOND.y)
        old = FIRST.x * weight
        dark = (old[:, :2] - kept_outputs).square().mean()
        return new + 0.7 * dark + 0.4 * F.cross_entropy(old, FIRST.y)

    step = slope(before, loss)
    assert torch.allclose(weights(learner._single.built.net), before - 0.1 * step, rtol=1e-4)


def test_outputs_of_labels_not_yet_known_do_not_count():
    outputs = torch.tensor([[1.0, 9.0], [2.0, 2.0]])
    stored = torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    found = likeness(outputs, stored, torch.tensor([1, 2]))
    assert float(found) == pytest.approx((1 + 4 + 4) / 3)


def test_kept_outputs_make_room_for_new_labels():
    learner = DERpp(net=NET, settings=DERppSettings(slots=2))
    learner.observe(Batch(torch.eye(3)[:2], [0, 1]))
    before = learner._replay._reservoir.columns()[2]
    learner.observe(Batch(torch.eye(3), [0, 1, 2]))
    after = learner._replay._reservoir.columns()[2]
    assert before.shape == (2, 2)
    assert after.shape == (5, 4)
    rows = {tuple(row) for row in after[:, :2].tolist()}
    assert {tuple(row) for row in before.tolist()} <= rows


@pytest.mark.parametrize(
    ("method", "settings", "row"),
    [
        (ER, ReplaySettings, 8 * 4 + 4 + 8),
        (ERACE, ReplaySettings, 8 * 4 + 4 + 8),
        (DERpp, DERppSettings, 8 * 4 + 4 + 8 + 10 * 4 + 4),
    ],
)
def test_memory_in_bytes_is_filled_and_kept_to(method, settings, row):
    learner = method(net=NET, settings=settings(memory_bytes=5000))
    feed(learner, a(20))
    sizes = learner.sizes()
    assert sizes.samples == 5000 // row
    assert sizes.sample_bytes == sizes.samples * row <= 5000


def test_memory_in_bytes_holds_when_kept_outputs_widen():
    learner = DERpp(net=NET, settings=DERppSettings(slots=2, memory_bytes=3000))
    feed(learner, [Batch(torch.rand(16, 8), torch.arange(16) % 2) for _ in range(8)])
    assert learner.sizes().samples == 3000 // (32 + 4 + 8 + 2 * 4 + 4)
    feed(learner, [Batch(torch.rand(16, 8), torch.arange(16)) for _ in range(3)])
    assert learner.sizes().samples == 3000 // (32 + 4 + 8 + 16 * 4 + 4)
    assert learner.sizes().sample_bytes <= 3000


def test_memory_is_a_sample_of_all_that_came():
    learner = ER(net=NET, settings=ReplaySettings(memory=200))
    feed(learner, [Batch(torch.full((10, 2), float(i)), [0] * 10) for i in range(100)])
    raw, _ = learner._replay._reservoir.columns()
    assert learner.sizes().samples == 200
    assert 40 < float(raw.mean()) < 60


def test_no_sample_is_drawn_twice_in_a_batch():
    memory = Replay(ReplaySettings(memory=50), seed=0)
    new = lesson(torch.arange(30.0)[:, None], torch.zeros(30, dtype=torch.int64), 1)
    memory.add(new)
    drawn, _ = memory.draw(new)
    assert sorted(drawn.raw.flatten().tolist()) == list(range(30))


@pytest.mark.parametrize(
    ("method", "settings"),
    [(ER, ReplaySettings), (ERACE, ReplaySettings), (DERpp, DERppSettings)],
)
def test_forgets_less_than_finetune(method, settings):
    held = kept(method, settings(inputs=INPUTS))
    free = kept(FineTune, SingleSettings(inputs=INPUTS))
    assert held > free + 0.1


def test_batch_norm_and_dropout_are_taken():
    def net(_shape, outputs):
        return nn.Sequential(nn.BatchNorm1d(8), nn.Dropout(0.2), nn.Linear(8, outputs))

    for method in (ER, ERACE, DERpp):
        one, two = method(net=net, seed=1), method(net=net, seed=1)
        assert repr(feed(one, a(5) + b(5))) == repr(feed(two, a(5) + b(5)))
        assert torch.equal(weights(one._single.built.net), weights(two._single.built.net))


@pytest.mark.parametrize("bad", [{"memory": 0}, {"memory_bytes": -1}, {"replay": -1}])
def test_impossible_settings_are_refused(bad):
    with pytest.raises(ValueError, match="or more, not"):
        ReplaySettings(**bad)
