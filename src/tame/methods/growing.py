"""Fully connected layers that units can be added to, with a head for each task."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import torch
from torch import Tensor

from tame.types import State

SCALE = 0.05  # of the first weights of added units and heads


@dataclass(eq=False)
class Head:
    """A task's own outputs, which labels they are, and how wide each layer was at its time."""

    weight: Tensor
    bias: Tensor
    slots: list[int]
    widths: list[int]

    def state_dict(self) -> State:
        return {
            "weight": self.weight, "bias": self.bias, "slots": list(self.slots),
            "widths": list(self.widths),
        }  # fmt: skip


@dataclass(eq=False)
class Growing:
    """Layers as plain tensors: `weights[l]` is (units, inputs); ReLU after each.

    Units are only ever added at the end, so that the first so many of each layer are the network
    of an earlier time; a task whose head was made then uses those alone.
    """

    weights: list[Tensor]
    biases: list[Tensor]
    heads: dict[int, Head] = field(default_factory=dict)

    @classmethod
    def made(cls, inputs: int, hidden: Sequence[int], generator: torch.Generator) -> "Growing":
        """Return layers with He's random weights."""
        sizes = [inputs, *hidden]
        weights = [
            torch.randn(after, before, generator=generator) * (2 / before) ** 0.5
            for before, after in pairwise(sizes)
        ]
        return cls(weights, [torch.zeros(after) for after in hidden])

    @property
    def widths(self) -> list[int]:
        """How many units each layer has now."""
        return [len(weight) for weight in self.weights]

    def features(self, x: Tensor, widths: Sequence[int]) -> Tensor:
        """Return the last layer's outputs by the first so many units of each."""
        x = x.flatten(1)
        for weight, bias, width in zip(self.weights, self.biases, widths, strict=True):
            x = torch.relu(x @ weight[:width, : x.shape[1]].T + bias[:width])
        return x

    def outputs(self, x: Tensor, task: int) -> Tensor:
        """Return the logits of a task's labels, by the units of its time."""
        head = self.heads[task]
        return self.features(x, head.widths) @ head.weight.T + head.bias

    def add_units(self, layer: int, rows: Tensor, bias: Tensor) -> None:
        """Add units with these incoming weights.

        The next layer does not listen to them yet; the heads of earlier tasks never will.
        """
        self.weights[layer] = torch.cat([self.weights[layer], rows])
        self.biases[layer] = torch.cat([self.biases[layer], bias])
        if layer + 1 < len(self.weights):
            after = self.weights[layer + 1]
            self.weights[layer + 1] = torch.cat([after, after.new_zeros(len(after), len(rows))], 1)

    def widen(self, task: int, columns: Tensor) -> None:
        """Let a task's head listen to added units of the last layer."""
        head = self.heads[task]
        head.weight = torch.cat([head.weight, columns], 1)
        head.widths = self.widths

    def clone(self) -> "Growing":
        """Return a copy that shares nothing."""
        made = Growing([], [])
        made.load_state_dict(self.state_dict())
        return made

    def state_dict(self) -> State:
        return {
            "weights": list(self.weights),
            "biases": list(self.biases),
            "heads": {str(task): head.state_dict() for task, head in self.heads.items()},
        }

    def load_state_dict(self, state: State) -> None:
        self.weights = [weight.clone() for weight in state["weights"]]
        self.biases = [bias.clone() for bias in state["biases"]]
        self.heads = {
            int(task): Head(
                kept["weight"].clone(), kept["bias"].clone(), list(kept["slots"]),
                list(kept["widths"]),
            )
            for task, kept in state["heads"].items()
        }  # fmt: skip
