"""A batch that raised an alarm trains nothing of the expert it surprised."""

import copy
from typing import Any

import pytest
import torch
from torch import nn
from worlds import a, b, c, changes, feed, small_settings, small_tame

from tame import TAME, Batch, Deviation, Inputs
from tame.checks.failure import difference
from tame.core.augment import Affine

SIDE = 8


def rows(batches: int, offset: int, seed: int):
    """Return byte images of one bright row; which row a label has depends on the offset."""
    draws = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(batches):
        y = torch.randint(0, 4, (16,), generator=draws)
        x = torch.randint(0, 40, (16, 1, SIDE, SIDE), generator=draws, dtype=torch.uint8)
        x[torch.arange(16), 0, (y + offset) % SIDE] += 200
        found.append(Batch(x, y))
    return found


def two_faced(shape: tuple[int, ...], outputs: int):
    """Return a net with running statistics and dropout."""
    return nn.Sequential(
        nn.Conv2d(shape[0], 6, 3, padding=1),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(6 * shape[1] * shape[2], outputs),
    )


def everything(expert: Any):
    """Return a copy of all an expert holds, gradients and schedule included."""
    found = copy.deepcopy(expert.state_dict())
    parameters = expert.network.net.named_parameters()
    found["gradients"] = {name: copy.deepcopy(p.grad) for name, p in parameters}
    found["rate"] = expert.network.plan.training.rate_at(expert.network.steps)
    found["groups"] = copy.deepcopy(expert.network.optimiser.state_dict()["param_groups"])
    return found


def image_learner(**inputs: Any):
    settings = small_settings(inputs=Inputs(**inputs), detector=Deviation(window=20))
    return TAME(net=two_faced, seed=0, settings=settings)


CASES = {
    "plain": (small_tame, lambda: (a(), b(1))),
    "batch norm and dropout": (image_learner, lambda: (rows(50, 0, 0), rows(1, 2, 1))),
    "augmented": (
        lambda: image_learner(augment=Affine(rotation=2.0, shift=0.02)),
        lambda: (rows(50, 0, 0), rows(1, 2, 1)),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_surprised_expert_is_untouched(case: str):
    make, streams = CASES[case]
    learner, (known, strange) = make(), streams()
    assert changes(feed(learner, known)) == []
    expert = learner._pool.active
    before = everything(expert)
    assert changes(feed(learner, strange)) == [(len(known), "recruited", 1)]
    assert learner._pool.active is not expert
    assert difference(before, everything(expert)) is None
    assert expert.network._step._pending is None


@pytest.mark.parametrize("case", CASES)
def test_ordinary_batch_changes_what_the_comparison_compares(case: str):
    """The comparison above can fail: an ordinary batch moves every part of it."""
    make, streams = CASES[case]
    learner, (known, _) = make(), streams()
    feed(learner, known[:-1])
    expert = learner._pool.active
    before = everything(expert)
    feed(learner, known[-1:])
    after = everything(expert)
    parts = ["network", "detector", "memory", "gradients"]
    parts += ["draws"] if case == "augmented" else []
    assert all(difference(before[part], after[part]) for part in parts)
    if case != "plain":
        one, two = before["network"], after["network"]
        assert difference(one["net"]["1.running_mean"], two["net"]["1.running_mean"])
        assert difference(one["draws"], two["draws"])


def test_candidates_that_refuse_are_untouched():
    learner = small_tame()
    feed(learner, a() + b())
    experts = list(learner._pool.experts)
    before = [everything(expert) for expert in experts]
    assert changes(feed(learner, c(1))) == [(120, "recruited", 2)]
    assert difference(before, [everything(expert) for expert in experts]) is None


def test_the_one_left_behind_is_untouched_when_an_old_one_returns():
    learner = small_tame()
    feed(learner, a() + b())
    left = learner._pool.active
    before = everything(left)
    assert changes(feed(learner, a(1, seed=9))) == [(120, "switched", 0)]
    assert difference(before, everything(left)) is None


def test_the_loss_that_decides_is_measured_before_training_in_evaluation_mode():
    learner = image_learner(augment=Affine())
    feed(learner, rows(10, 0, 0))
    expert, batch = learner._pool.active, rows(1, 0, 5)[0]
    net = copy.deepcopy(expert.network.net).eval()
    with torch.no_grad():
        outputs = net(learner._intake.ready(batch.x))[:, :4]
    slots = learner._intake.labels.slots(batch.y)
    expected = nn.functional.cross_entropy(outputs.double(), slots)
    assert learner.observe(batch).loss == pytest.approx(float(expected), rel=1e-5)


def test_one_faced_net_pays_no_second_forward():
    calls = {"forward": 0}

    class Counting(nn.Linear):
        def forward(self, x: Any) -> Any:
            calls["forward"] += 1
            return super().forward(x)

    learner = small_tame(net=lambda shape, outputs: Counting(shape[0], outputs))
    feed(learner, a(1))
    calls["forward"] = 0
    feed(learner, a(10, seed=3))
    assert calls["forward"] == 10
