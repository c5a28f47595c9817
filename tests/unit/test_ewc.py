"""Elastic weight consolidation: Fisher and penalty by hand, in both forms."""

from typing import Any

import pytest
import torch
from digits import INPUTS, kept
from torch import nn

from tame import Batch
from tame.core.settings import Training
from tame.methods.ewc import EWC, EWCSettings
from tame.methods.fisher import drawn, fisher
from tame.methods.vectors import weights
from tame.types import Hint

PLAIN = Training(rate=0.1, momentum=0.0, nesterov=False, weight_decay=0.0, clip=0.0)
FIRST = Batch([[1.0, 0.0], [0.5, 1.0]], [0, 1])
SECOND = Batch([[2.0, -1.0], [1.0, 1.0]], [0, 1])
NEXT = Hint(boundary=True, task=1)


class TwoWeights(nn.Module):
    """Two logits, each an input times its own weight."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([0.3, -0.2]))

    def forward(self, x):
        return x * self.weight


def make(**settings: Any):
    parts = {"training": PLAIN, "slots": 2, "heads": "shared"} | settings
    return EWC(net=lambda _shape, _outputs: TwoWeights(), settings=EWCSettings(**parts))


def put(learner, values):
    with torch.no_grad():
        learner._tasked.net.weight.copy_(torch.tensor(values))


def sample_gradients(weight, x, y):
    """Return d log p(y|x) / dw of each sample: x_j (1[y = j] - p_j)."""
    chances = (x * weight).softmax(1)
    return x * (nn.functional.one_hot(y, 2) - chances)


def batch_gradient(weight, batch):
    """Return the gradient of the mean cross-entropy."""
    return -sample_gradients(weight, batch.x, batch.y).mean(0)


def test_fisher_is_the_mean_of_squared_sample_gradients():
    net, (x, y) = TwoWeights(), SECOND
    labels = iter(y.tolist())
    found = fisher(net, net, x, lambda _: next(labels))
    expected = sample_gradients(net.weight.detach(), x, y).square().mean(0)
    assert torch.allclose(found, expected)
    assert not torch.allclose(found, batch_gradient(net.weight.detach(), SECOND).square())


def test_sampled_labels_give_the_variance_of_the_score():
    """With y from the network itself the Fisher of a logistic model is x^2 p (1 - p)."""
    net, draws = TwoWeights(), torch.Generator().manual_seed(0)
    x = torch.tensor([[2.0, -1.0]])
    found = fisher(net, net, x.repeat(4000, 1), lambda logs: drawn(logs, draws))
    chances = (x * net.weight.detach()).softmax(1)[0]
    assert torch.allclose(found, x[0].square() * chances * (1 - chances), rtol=0.05)


def test_penalty_is_the_sum_of_every_tasks_quadratic():
    """The one stored quadratic pulls as those of both tasks together would."""
    learner = make(labels="given", strength=7.0)
    anchors, found = [], []
    for task, batch in enumerate((FIRST, SECOND)):
        learner.observe(batch)
        anchors.append(weights(learner._tasked.net))
        found.append(sample_gradients(anchors[-1], batch.x, batch.y).square().mean(0))
        learner.inform(Hint(boundary=True, task=task + 1))
    put(learner, [1.5, 0.9])
    here = torch.tensor([1.5, 0.9])
    expected = sum(7.0 * f * (here - w) for f, w in zip(found, anchors, strict=True))
    assert torch.allclose(learner.penalty_slope(), expected, rtol=1e-4)


def test_step_follows_loss_and_penalty():
    learner = make(labels="given", strength=7.0)
    learner.observe(FIRST)
    learner.inform(NEXT)
    put(learner, [1.5, 0.9])
    before = torch.tensor([1.5, 0.9])
    slope = batch_gradient(before, SECOND) + learner.penalty_slope()
    learner.observe(SECOND)
    assert torch.allclose(weights(learner._tasked.net), before - 0.1 * slope, rtol=1e-5)


def test_nothing_is_held_in_the_first_task():
    learner = make(strength=1e6)
    learner.observe(FIRST)
    put(learner, [5.0, 5.0])
    assert learner.penalty_slope().tolist() == [0, 0]


def test_repository_form_averages_squared_batch_gradients():
    """F <- 0.1 F + 0.45 (g1^2 + g2^2) every two steps; importance is F brought to [0, 1]."""
    learner = make(form="agem-repo", interval=2, strength=3.0)
    expected, squares = torch.zeros(2), torch.zeros(2)
    for step, batch in enumerate([FIRST, SECOND, SECOND, FIRST, FIRST]):
        if step:
            squares += batch_gradient(weights(learner._tasked.net), batch).square()
        else:
            squares += batch_gradient(torch.tensor([0.3, -0.2]), batch).square()
        learner.observe(batch)
        if step % 2:
            expected, squares = 0.1 * expected + 0.45 * squares, torch.zeros(2)
    assert torch.allclose(learner._ledger["fisher"], expected, rtol=1e-4)
    at_end = weights(learner._tasked.net)
    learner.inform(NEXT)
    importance = (expected - expected.min()) / (expected.max() - expected.min())
    put(learner, [1.0, 1.0])
    pull = 2 * 3.0 * importance * (1.0 - at_end)
    assert torch.allclose(learner.penalty_slope(), pull, rtol=1e-4)
    assert sorted(importance.tolist()) == [0, 1]


def test_samples_of_a_task_are_dropped_with_it():
    learner = make(samples=3)
    learner.observe(FIRST)
    learner.observe(SECOND)
    assert learner.sizes().samples == 3
    learner.inform(NEXT)
    assert learner.sizes().samples == 0
    assert make(form="agem-repo").sizes().sample_bytes == 0


def test_a_boundary_before_anything_new_changes_nothing():
    learner = make()
    learner.observe(FIRST)
    learner.inform(NEXT)
    held = learner._ledger["importance"].clone()
    learner.inform(Hint(boundary=True, task=2))
    assert torch.equal(learner._ledger["importance"], held)
    assert held.any()


def test_new_labels_make_room_and_are_not_held():
    learner = EWC(net={"name": "mlp", "hidden": [4]}, settings=EWCSettings(slots=2))
    learner.observe(FIRST)
    learner.inform(NEXT)
    learner.observe(Batch([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]], [7, 8, 9]))
    held = learner._ledger["importance"]
    assert len(held) == sum(p.numel() for p in learner._tasked.net.parameters())
    assert learner._tasked.net[-1].bias.shape == (8,)  # the last eight entries
    assert held[-8:][2:].tolist() == [0] * 6
    assert held[-8:][:2].any()


def test_answers_of_a_task_are_among_its_labels():
    learner = EWC(net={"name": "mlp", "hidden": [8]})
    learner.observe(Batch(torch.eye(4)[:2], [0, 1]))
    learner.inform(NEXT)
    learner.observe(Batch(torch.eye(4)[2:], [5, 6]))
    x = torch.eye(4)
    assert set(learner.predict_told(x, Hint(task=0)).tolist()) <= {0, 1}
    assert set(learner.predict_told(x, Hint(task=1)).tolist()) <= {5, 6}
    assert torch.equal(learner.predict_told(x, Hint(task=9)), learner.predict(x))


def test_other_tasks_outputs_are_not_trained():
    learner = EWC(net={"name": "mlp", "hidden": [8]}, settings=EWCSettings(strength=0.0))
    learner.observe(Batch(torch.eye(4)[:2], [0, 1]))
    learner.inform(NEXT)
    learner.observe(Batch(torch.eye(4)[2:], [5, 6]))
    before = learner._tasked.net[-1].weight.detach().clone()
    learner.observe(Batch(torch.eye(4)[2:], [5, 6]))
    moved = (learner._tasked.net[-1].weight.detach() != before).any(1)
    assert moved.tolist() == [False, False, True, True] + [False] * 6


@pytest.mark.parametrize("form", ["original", "agem-repo"])
def test_forgets_less_than_without_the_penalty(form):
    parts = {"form": form, "inputs": INPUTS, "heads": "shared"}
    held = kept(EWC, EWCSettings(strength=100.0, **parts))
    free = kept(EWC, EWCSettings(strength=0.0, **parts))
    assert held > free + 0.03
