"""A multi-layer perceptron for inputs of any shape."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from torch import nn


@dataclass(frozen=True)
class MLP:
    """Fully connected layers with ReLU between them.

    They start with torch's uniform weights, or (`truncated`, as some papers' code) with normal ones
    of deviation 0.1, none beyond 0.2, and biases of 0.1.

    >>> MLP(hidden=(16,))((4,), 3)
    Sequential(
      (0): Flatten(start_dim=1, end_dim=-1)
      (1): Linear(in_features=4, out_features=16, bias=True)
      (2): ReLU()
      (3): Linear(in_features=16, out_features=3, bias=True)
    )
    """

    hidden: tuple[int, ...] = (128, 64)
    start: Literal["uniform", "truncated"] = "uniform"

    def __call__(self, input_shape: tuple[int, ...], n_outputs: int) -> nn.Module:
        sizes = (math.prod(input_shape), *self.hidden)
        layers: list[nn.Module] = [nn.Flatten()]
        for before, after in pairwise(sizes):
            layers += [nn.Linear(before, after), nn.ReLU()]
        net = nn.Sequential(*layers, nn.Linear(sizes[-1], n_outputs))
        if self.start == "truncated":
            _truncate(net)
        return net


def _truncate(net: nn.Module) -> None:
    for parameter in net.parameters():
        if parameter.ndim > 1:
            nn.init.trunc_normal_(parameter, std=0.1, a=-0.2, b=0.2)
        else:
            nn.init.constant_(parameter, 0.1)
