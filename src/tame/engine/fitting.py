"""Training a network on samples kept in memory: selectors, pruned experts, joint references."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from tame.config import part
from tame.engine.losses import Output, sample_losses
from tame.engine.randomness import PrivateDraws
from tame.registry import AUGMENTS
from tame.types import Progress, silent

Masks = Mapping[str, Tensor]


@dataclass(frozen=True)
class Recipe:
    """How long and how fast to train on a fixed set of samples.

    >>> round(Recipe(epochs=10, schedule="steps", milestones=(5,)).rate_at(0.7), 4)
    0.01
    """

    epochs: int = 60
    batch: int = 128
    optimiser: Literal["sgd", "adam"] = "sgd"
    rate: float = 0.1
    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float = 1e-4
    schedule: Literal["constant", "cosine", "steps"] = "cosine"
    milestones: tuple[int, ...] = ()
    decay: float = 0.1
    output: Output = "logits"
    augment: Any = part(AUGMENTS, lambda: None)

    def rate_at(self, progress: float) -> float:
        """Return the rate when this fraction of the training is done."""
        if self.schedule == "cosine":
            return self.rate * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
        if self.schedule == "steps":
            passed = sum(progress * self.epochs >= milestone for milestone in self.milestones)
            return self.rate * self.decay**passed
        return self.rate


@dataclass(frozen=True)
class Samples:
    """Raw inputs, their targets, how inputs are made ready, and how many outputs are live."""

    x: Tensor
    y: Tensor
    prepare: Callable[[Tensor, torch.Generator | None, Any], Tensor]
    live: int


def make_optimiser(net: nn.Module, recipe: Any) -> torch.optim.Optimizer:
    """Return the optimiser that settings with `optimiser`, `rate`, ... ask for."""
    parameters = list(net.parameters())
    if recipe.optimiser == "adam":
        return torch.optim.AdamW(
            parameters, lr=recipe.rate, weight_decay=recipe.weight_decay, fused=True
        )
    return torch.optim.SGD(
        parameters,
        lr=recipe.rate,
        momentum=recipe.momentum,
        nesterov=recipe.nesterov and recipe.momentum > 0,
        weight_decay=recipe.weight_decay,
        fused=True,
    )


def set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    """Change the learning rate of every group."""
    for group in optimiser.param_groups:
        group["lr"] = rate


@torch.no_grad()
def apply_masks(net: nn.Module, masks: Masks) -> None:
    """Zero every pruned weight in place."""
    parameters = dict(net.named_parameters())
    for name, mask in masks.items():
        parameters[name].mul_(mask)


def fit(
    net: nn.Module,
    samples: Samples,
    recipe: Recipe,
    generator: torch.Generator,
    progress: Progress = silent,
    masks: Masks | None = None,
) -> None:
    """Train `net` on the samples, inside its masks if it has any.

    A last batch of one sample is left out of its epoch: batch norm cannot train on it.
    """
    with PrivateDraws(int(generator.initial_seed()), samples.x.device):
        _fit(net, samples, recipe, generator, progress, masks)
    net.eval()


def _fit(
    net: nn.Module,
    samples: Samples,
    recipe: Recipe,
    generator: torch.Generator,
    progress: Progress,
    masks: Masks | None,
) -> None:
    optimiser = make_optimiser(net, recipe)
    count = len(samples.x)
    per_epoch = math.ceil(count / recipe.batch)
    total = recipe.epochs * per_epoch
    net.train()
    for epoch in range(recipe.epochs):
        order = torch.randperm(count, generator=generator, device=samples.x.device)
        for number, chosen in enumerate(order.split(recipe.batch)):
            if len(chosen) == 1 < count:
                continue
            set_rate(optimiser, recipe.rate_at((epoch * per_epoch + number) / total))
            x = samples.prepare(samples.x[chosen], generator, recipe.augment)
            losses = sample_losses(net(x)[:, : samples.live], samples.y[chosen], recipe.output)
            optimiser.zero_grad(set_to_none=True)
            losses.mean().backward()
            optimiser.step()
            if masks:
                apply_masks(net, masks)
        progress("", epoch + 1, recipe.epochs)
