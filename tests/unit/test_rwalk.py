"""Riemannian walk: scores and Fisher by hand, in both forms."""

from typing import Any

import pytest
import torch
from digits import INPUTS, kept
from torch import nn

from tame import Batch
from tame.core.settings import Training
from tame.methods.rwalk import RWalk, RWalkSettings
from tame.methods.vectors import weights
from tame.types import Hint

PLAIN = Training(rate=0.1, momentum=0.0, nesterov=False, weight_decay=0.0, clip=0.0)
BATCH = Batch([[1.0, 0.2], [-0.5, 1.0]], [0, 1])
NEXT = Hint(boundary=True, task=1)
START = [0.3, -0.2]


class TwoWeights(nn.Module):
    """Two logits, each an input times its own weight."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(START))

    def forward(self, x):
        return x * self.weight


def make(**settings: Any):
    parts = {"training": PLAIN, "slots": 2, "heads": "shared", "interval": 2} | settings
    return RWalk(net=lambda _shape, _outputs: TwoWeights(), settings=RWalkSettings(**parts))


def slope(weight):
    chances = (BATCH.x * weight).softmax(1)
    return (BATCH.x * (chances - nn.functional.one_hot(BATCH.y, 2))).mean(0)


def by_hand(steps, *, half, clears):
    """Return Fisher and gained score after some steps of plain SGD, two an interval."""
    here = previous = torch.tensor(START)
    fisher, squares, path, gained = (torch.zeros(2) for _ in range(4))
    for step in range(steps):
        g = slope(here)
        moved = -0.1 * g
        here = here + moved
        path = path - g * moved
        squares = squares + g * g
        if step % 2:
            length = half * fisher * (here - previous) ** 2
            gained = gained + (path / (length + 1e-3)).clamp(min=0)
            fisher = 0.1 * fisher + 0.45 * squares
            path, previous = torch.zeros(2), here
            squares = torch.zeros(2) if clears else squares
    return fisher, gained


@pytest.mark.parametrize(
    ("form", "half", "clears"), [("original", 0.5, True), ("agem-repo", 1.0, False)]
)
def test_score_and_fisher_by_hand(form, half, clears):
    learner = make(form=form)
    for _ in range(7):
        learner.observe(BATCH)
    fisher, gained = by_hand(7, half=half, clears=clears)
    assert torch.allclose(learner._ledger["fisher"], fisher, rtol=1e-4)
    assert torch.allclose(learner._ledger["gained"], gained, rtol=1e-4)


def test_the_two_forms_differ():
    one, two = by_hand(7, half=0.5, clears=True), by_hand(7, half=1.0, clears=False)
    assert not torch.allclose(one[0], two[0], rtol=0.01)
    assert not torch.allclose(one[1], two[1], rtol=1e-4)


@pytest.mark.parametrize(("form", "after"), [("original", 0.5), ("agem-repo", 1.5)])
def test_scores_of_tasks_are_averaged(form, after):
    """The first task's score counts whole; then the mean replaces the old score, or adds to it."""
    learner = make(form=form)
    for _ in range(4):
        learner.observe(BATCH)
    first = learner._ledger["gained"].clone()
    learner.inform(NEXT)
    assert torch.allclose(learner._ledger["score"], first)
    for _ in range(4):
        learner.observe(BATCH)
    second = learner._ledger["gained"].clone()
    learner.inform(Hint(boundary=True, task=2))
    expected = after * first + 0.5 * second
    assert torch.allclose(learner._ledger["score"], expected, rtol=1e-5)
    assert learner._ledger["gained"].tolist() == [0, 0]


def test_importance_is_both_scores_brought_to_one():
    learner = make(strength=3.0)
    for _ in range(4):
        learner.observe(BATCH)
    fisher, gained = (learner._ledger[name].clone() for name in ("fisher", "gained"))
    at_end = weights(learner._tasked.net)
    learner.inform(NEXT)
    parts = [(part - part.min()) / (part.max() - part.min()) for part in (fisher, gained)]
    expected = 2 * 3.0 * (parts[0] + parts[1]) * (torch.tensor([1.0, 1.0]) - at_end)
    assert torch.allclose(learner.penalty_slope(torch.ones(2)), expected, rtol=1e-5)
    assert float(learner._ledger["importance"].max()) == pytest.approx(2)


def test_intervals_begin_anew_with_a_task():
    learner = make()
    for _ in range(3):
        learner.observe(BATCH)
    learner.inform(NEXT)
    before = learner._ledger["fisher"].clone()
    learner.observe(BATCH)
    assert torch.equal(learner._ledger["fisher"], before)
    learner.observe(BATCH)
    assert not torch.equal(learner._ledger["fisher"], before)


def test_forgets_less_than_without_the_penalty():
    parts = {"inputs": INPUTS, "heads": "shared"}
    held, free = (kept(RWalk, RWalkSettings(strength=s, **parts)) for s in (10.0, 0.0))
    assert held > free + 0.03


@pytest.mark.parametrize("bad", [{"interval": 0}, {"damping": 0.0}])
def test_impossible_settings_are_refused(bad):
    with pytest.raises(ValueError, match="not 0"):
        RWalkSettings(**bad)
