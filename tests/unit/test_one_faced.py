"""Nets that compute one thing in training and another in evaluation are found out."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tame.engine.eager import find_faces


class Functional(nn.Module):
    """Dropout that no list of layers shows."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 2)

    def forward(self, x: Any):
        return F.dropout(self.linear(x), 0.5, self.training)


class Tracking(nn.Module):
    """Running statistics of its own making, not used in the output."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 2)
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x: Any):
        if self.training:
            self.mean.lerp_(x.mean(0), 0.1)
        return self.linear(x)


class Noisy(nn.Module):
    """Random in evaluation too."""

    def forward(self, x: Any):
        return torch.rand(len(x), 2)


@pytest.mark.parametrize(
    ("net", "expected"),
    [
        (nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), True),
        (nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 2)), True),
        (nn.Sequential(nn.Linear(4, 2), nn.BatchNorm1d(2)), False),
        (nn.Sequential(nn.Linear(4, 2), nn.Dropout(0.0)), False),
        (nn.Sequential(nn.Linear(4, 2), nn.AlphaDropout()), False),
        (nn.Sequential(nn.Linear(4, 2), nn.RReLU()), False),
        (Functional(), False),
        (Tracking(), False),
        (Noisy(), False),
    ],
    ids=lambda value: type(value[-1] if isinstance(value, nn.Sequential) else value).__name__,
)
def test_one_face_or_two(net: Any, expected: Any):
    before = torch.get_rng_state()
    assert find_faces(net, torch.rand(4, 4, generator=torch.Generator())).one is expected
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(
    ("net", "expected"),
    [
        (nn.Sequential(nn.Linear(4, 2), nn.BatchNorm1d(2)), False),
        (nn.Sequential(nn.Linear(4, 2), nn.Dropout(0.5)), True),
        (Functional(), True),
        (nn.Linear(4, 2), False),
    ],
)
def test_only_nets_that_draw_keep_a_generator(net: Any, expected: Any):
    assert find_faces(net, torch.rand(4, 4)).random is expected
