"""A multi-layer perceptron for inputs of any shape."""

import math
from dataclasses import dataclass
from itertools import pairwise

from torch import nn


@dataclass(frozen=True)
class MLP:
    """Fully connected layers with ReLU between them.

    >>> MLP(hidden=(16,))((4,), 3)
    Sequential(
      (0): Flatten(start_dim=1, end_dim=-1)
      (1): Linear(in_features=4, out_features=16, bias=True)
      (2): ReLU()
      (3): Linear(in_features=16, out_features=3, bias=True)
    )
    """

    hidden: tuple[int, ...] = (128, 64)

    def __call__(self, input_shape: tuple[int, ...], n_outputs: int) -> nn.Module:
        sizes = (math.prod(input_shape), *self.hidden)
        layers: list[nn.Module] = [nn.Flatten()]
        for before, after in pairwise(sizes):
            layers += [nn.Linear(before, after), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(sizes[-1], n_outputs))
