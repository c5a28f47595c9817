"""Synaptic intelligence: the path integral by hand, in both forms."""

from typing import Any

import pytest
import torch
from digits import INPUTS, kept
from torch import nn

from tame import Batch
from tame.core.settings import Training
from tame.methods.si import SI, SISettings
from tame.methods.vectors import weights
from tame.types import Hint

PLAIN = Training(rate=0.1, momentum=0.0, nesterov=False, weight_decay=0.0, clip=0.0)
HEAVY = Training(rate=0.1, momentum=0.9, nesterov=False, weight_decay=0.0, clip=0.0)
BATCH = Batch([[1.0], [1.0]], [0, 1])
NEXT = Hint(boundary=True, task=1)


class Slope(nn.Module):
    """Logits (w x, 0): on one sample of each label the loss is even in w, least at 0."""

    def __init__(self, start: float = 2.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([start]))

    def forward(self, x):
        return torch.stack([x[:, 0] * self.weight, torch.zeros(len(x))], dim=1)


def make(**settings: Any):
    parts = {"training": PLAIN, "slots": 2, "heads": "shared"} | settings
    return SI(net=lambda _shape, _outputs: Slope(), settings=SISettings(**parts))


def loss(weight):
    """Return the mean cross-entropy of one sample of each label."""
    outputs = torch.stack([weight, torch.zeros_like(weight)], dim=-1)
    return (outputs.logsumexp(-1) - weight / 2).sum()


def slope(weight):
    """Return its derivative: sigmoid(w) - 1/2."""
    return torch.sigmoid(weight) - 0.5


def put(learner, value):
    with torch.no_grad():
        learner._tasked.net.weight.fill_(value)


def test_path_is_the_gradient_times_the_real_movement():
    learner = make()
    here, path = torch.tensor([2.0]), torch.zeros(1)
    for _ in range(5):
        learner.observe(BATCH)
        moved = -0.1 * slope(here)
        path -= slope(here) * moved
        here = here + moved
    assert torch.allclose(weights(learner._tasked.net), here)
    assert torch.allclose(learner._ledger["path"], path, rtol=1e-4)


def test_path_with_momentum_still_uses_the_real_movement():
    learner = make(training=HEAVY)
    path, before = torch.zeros(1), torch.tensor([2.0])
    for _ in range(5):
        learner.observe(BATCH)
        now = weights(learner._tasked.net)
        path -= slope(before) * (now - before)
        before = now
    assert torch.allclose(learner._ledger["path"], path, rtol=1e-4)
    by_rate = 0.1 * slope(torch.tensor([2.0])).square() * 5
    assert learner._ledger["path"].item() > 1.5 * by_rate.item()


def test_small_steps_add_up_to_the_fall_of_the_loss():
    """The path integral of a gradient is the difference of the loss at its ends."""
    learner = make(training=Training(rate=0.01, momentum=0.0, weight_decay=0.0, clip=0.0))
    for _ in range(200):
        learner.observe(BATCH)
    fall = loss(torch.tensor([2.0])) - loss(weights(learner._tasked.net))
    assert learner._ledger["path"].item() == pytest.approx(fall.item(), rel=0.01)


def test_importance_is_the_path_over_the_squared_distance_from_the_start():
    learner = make(damping=0.5, strength=3.0)
    learner.observe(BATCH)
    learner.observe(BATCH)
    path, end = learner._ledger["path"].clone(), weights(learner._tasked.net)
    learner.inform(NEXT)
    importance = path / ((end - 2.0).square() + 0.5)
    assert torch.allclose(learner._ledger["importance"], importance)
    assert torch.equal(learner._ledger["anchor"], end)
    assert learner._ledger["path"].tolist() == [0]
    slope = learner.penalty_slope(torch.tensor([5.0]))
    assert torch.allclose(slope, 2 * 3.0 * importance * (5.0 - end))


def test_path_leaves_the_penalty_out():
    learner = make(strength=50.0)
    learner.observe(BATCH)
    learner.inform(NEXT)
    put(learner, 1.0)
    here = torch.tensor([1.0])
    pull = learner.penalty_slope(here)
    learner.observe(BATCH)
    moved = -0.1 * (slope(here) + pull)
    assert torch.allclose(weights(learner._tasked.net), here + moved)
    assert torch.allclose(learner._ledger["path"], -slope(here) * moved)


@pytest.mark.parametrize(("form", "left"), [("original", 2.0), ("agem-repo", 3.0)])
def test_repository_form_adds_no_share_below_zero(form, left):
    learner = make(form=form, damping=1.0)
    learner.observe(BATCH)
    learner._ledger["importance"] = torch.tensor([3.0])
    put(learner, 2.0)
    learner._ledger["path"] = torch.tensor([-1.0])
    learner.inform(NEXT)
    assert learner._ledger["importance"].item() == left


def test_no_importance_is_below_zero_in_the_end():
    learner = make(damping=1.0)
    learner.observe(BATCH)
    put(learner, 2.0)
    learner._ledger["path"] = torch.tensor([-1.0])
    learner.inform(NEXT)
    assert learner._ledger["importance"].item() == 0.0


def test_importance_adds_up_over_tasks():
    learner = make()
    learner.observe(BATCH)
    learner.inform(NEXT)
    first = learner._ledger["importance"].item()
    learner.observe(BATCH)
    learner.inform(Hint(boundary=True, task=2))
    assert learner._ledger["importance"].item() > first > 0


def test_forgets_less_than_without_the_penalty():
    parts = {"inputs": INPUTS, "heads": "shared"}
    held, free = (kept(SI, SISettings(strength=strength, **parts)) for strength in (1.0, 0.0))
    assert held > free + 0.03


def test_a_step_never_passes_the_anchor_however_steep_the_penalty():
    learner = make(strength=1e6)
    learner.observe(BATCH)
    learner.inform(NEXT)
    learner._ledger["importance"] += 1e6
    anchor = learner._ledger["anchor"].clone()
    away = learner.penalty_slope(anchor + 2.0)
    assert torch.allclose(anchor + 2.0 - 0.1 * away, anchor, atol=1e-6)


def test_damping_must_be_positive():
    with pytest.raises(ValueError, match="damping is positive, not 0"):
        SISettings(damping=0.0)
