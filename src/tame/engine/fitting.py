"""Training a network on samples kept in memory: selectors, pruned experts, joint references."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from tame.config import part
from tame.engine.eager import half, wants_half
from tame.engine.graphs import everything, open_state, practise, record, unchanged
from tame.engine.losses import Output, sample_losses
from tame.engine.randomness import PrivateDraws
from tame.registry import AUGMENTS
from tame.types import Progress, silent

Masks = Mapping[str, Tensor]
WORTH_RECORDING = 50


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
    prepare: Callable[[Tensor, Any, Tensor | None], Tensor]
    live: int

    def to(self, device: torch.device) -> "Samples":
        """Return the same samples on a device."""
        return replace(self, x=self.x.to(device), y=self.y.to(device))


def make_optimiser(net: nn.Module, recipe: Any) -> torch.optim.Optimizer:
    """Return the optimiser that settings with `optimiser`, `rate`, ... ask for."""
    parameters = list(net.parameters())
    if recipe.optimiser == "adam":
        return torch.optim.AdamW(
            parameters,
            lr=recipe.rate,
            weight_decay=recipe.weight_decay,
            fused=True,
            capturable=bool(parameters) and parameters[0].is_cuda,
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

    A last batch of one sample is left out of its epoch: batch norm cannot train on it. On a GPU
    the step of a full batch is recorded and replayed.
    """
    device = samples.x.device
    with PrivateDraws(int(generator.initial_seed()), device):
        net.train()
        step = _Step(net, samples, recipe, masks or {})
        full = _Recorded(step) if device.type == "cuda" and step.is_long() else None
        for epoch in range(recipe.epochs):
            for rate, chosen, odds in _epoch(epoch, len(samples.x), recipe, generator, device):
                if full is not None and len(chosen) == recipe.batch:
                    full(rate, chosen, odds)
                else:
                    step(rate, chosen, odds)
            progress("", epoch + 1, recipe.epochs)
    net.eval()


def _epoch(
    epoch: int, count: int, recipe: Recipe, generator: torch.Generator, device: torch.device
) -> list[tuple[float, Tensor, Tensor | None]]:
    """Draw one pass over the samples: the rate, the rows and the odds of each batch."""
    per_epoch = math.ceil(count / recipe.batch)
    rows = torch.randperm(count, generator=generator)
    sizes = [len(part) for part in rows.split(recipe.batch) if not len(part) == 1 < count]
    rates = [
        recipe.rate_at((epoch * per_epoch + number) / (recipe.epochs * per_epoch))
        for number in range(len(sizes))
    ]
    chosen = rows[: sum(sizes)].to(device).split(sizes)
    if recipe.augment is None:
        return [(rate, part, None) for rate, part in zip(rates, chosen, strict=True)]
    numbers = recipe.augment.numbers
    drawn = [torch.rand(numbers, size, generator=generator) for size in sizes]
    odds = torch.cat(drawn, 1).to(device).split(sizes, 1)
    return list(zip(rates, chosen, odds, strict=True))


class _Step:
    """One step of training on some rows of the samples."""

    def __init__(self, net: nn.Module, samples: Samples, recipe: Recipe, masks: Masks) -> None:
        self.net = net
        self.samples = samples
        self.recipe = recipe
        self.masks = masks
        self.optimiser = make_optimiser(net, recipe)
        self._half = wants_half(net, "auto")

    def is_long(self) -> bool:
        """Say whether there are enough full batches for recording to pay."""
        return self.recipe.epochs * (len(self.samples.x) // self.recipe.batch) >= WORTH_RECORDING

    def __call__(self, rate: float, chosen: Tensor, odds: Tensor | None) -> None:
        set_rate(self.optimiser, rate)
        self.run(chosen, odds)

    def run(self, chosen: Tensor, odds: Tensor | None) -> None:
        """Train on these rows at the rate that is set."""
        samples, recipe = self.samples, self.recipe
        x = samples.prepare(samples.x[chosen], recipe.augment, odds)
        with half(x.device, enabled=self._half):
            outputs = self.net(x)
        live = outputs[:, : samples.live].to(x.dtype)
        losses = sample_losses(live, samples.y[chosen], recipe.output)
        self.optimiser.zero_grad(set_to_none=True)
        losses.mean().backward()
        self.optimiser.step()
        if self.masks:
            apply_masks(self.net, self.masks)


class _Recorded:
    """The step of a full batch as one CUDA graph."""

    def __init__(self, step: _Step) -> None:
        device, recipe = step.samples.x.device, step.recipe
        self._step = step
        self._rate = torch.zeros((), device=device)
        self._chosen = torch.arange(recipe.batch, device=device)
        self._odds = None
        if recipe.augment is not None:
            self._odds = torch.rand(recipe.augment.numbers, recipe.batch, device=device)
        open_state(step.optimiser)
        self._point_at_rate()

        def work() -> None:
            step.run(self._chosen, self._odds)

        with unchanged(everything(step.net, step.optimiser), device):
            practise(work)
            step.optimiser.zero_grad(set_to_none=True)
            self._graph = record(work, None)

    def __call__(self, rate: float, chosen: Tensor, odds: Tensor | None) -> None:
        self._rate.fill_(rate)
        self._chosen.copy_(chosen)
        if self._odds is not None and odds is not None:
            self._odds.copy_(odds)
        self._graph.replay()

    def _point_at_rate(self) -> None:
        for group in self._step.optimiser.param_groups:
            group["lr"] = self._rate
