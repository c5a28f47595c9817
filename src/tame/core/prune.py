"""Pruning: zero the smallest weights of networks, then retrain what is left."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.utils import prune

from tame.core.augment import Affine
from tame.engine.fitting import Job, apply_masks, fit
from tame.engine.losses import Output
from tame.engine.recipe import Recipe
from tame.types import Progress, silent

PRUNABLE = (nn.Linear, nn.modules.conv._ConvNd)  # noqa: SLF001 (the common base of convolutions)


@runtime_checkable
class Pruner(Protocol):
    """Makes trained networks small, with a sample of their data at hand."""

    memory: int
    tolerance: float
    held_back: float

    def prune(
        self, jobs: Sequence[Job], output: Output, progress: Progress = silent
    ) -> list[dict[str, Tensor]]:
        """Prune each network in place and return the masks of what is left."""
        ...

    def slower(self) -> "Pruner":
        """Return a pruner that retrains at half the rate."""
        ...

    def gentler(self) -> "Pruner | None":
        """Return a pruner that keeps more, or None if this one keeps everything."""
        ...


@dataclass(frozen=True)
class Magnitude:
    """The paper's: L1, unstructured, global over all weights, in one shot; then retraining.

    `memory` (C_p) is how many samples of each expert are kept to retrain on, `sparsity` the
    fraction of weights zeroed; biases and norms are left alone. With 0.0 nothing is pruned, and
    nothing retrained. A network too small for that would be ruined: where the pruned one answers
    fewer held-back samples right than the dense one, by more than `tolerance` and what chance
    explains, four times as many weights are kept, and so on up to all of them (1.0: never).
    `held_back` is the share of the samples kept from retraining, on which the pruned network is
    judged and its detector's level set; with 0.0 all are retrained on, and both go by losses that
    are too good: for streams that end when they are consolidated.
    """

    sparsity: float = 0.98
    memory: int = 1000
    tolerance: float = 0.02
    held_back: float = 0.1
    retraining: Recipe = field(default_factory=lambda: Recipe(rate=0.02, augment=Affine()))

    def __post_init__(self) -> None:
        if not 0 <= self.sparsity < 1:
            raise ValueError(f"sparsity lies in [0, 1), not {self.sparsity}")
        if not 0 <= self.held_back < 1:
            raise ValueError(f"held_back is a share in [0, 1), not {self.held_back}")

    def prune(
        self, jobs: Sequence[Job], output: Output, progress: Progress = silent
    ) -> list[dict[str, Tensor]]:
        found = [magnitude_masks(job.net, self.sparsity) for job in jobs]
        if not self.sparsity:
            return found
        for job, masks in zip(jobs, found, strict=True):
            apply_masks(job.net, masks)
        masked = [job._replace(masks=masks) for job, masks in zip(jobs, found, strict=True)]
        fit(masked, replace(self.retraining, output=output), progress)
        return found

    def slower(self) -> "Magnitude":
        retraining = replace(self.retraining, rate=self.retraining.rate / 2)
        return replace(self, retraining=retraining)

    def gentler(self) -> "Magnitude | None":
        if self.sparsity <= 0:
            return None
        return replace(self, sparsity=max(0.0, 1 - 4 * (1 - self.sparsity)))


def magnitude_masks(net: nn.Module, sparsity: float) -> dict[str, Tensor]:
    """Return boolean masks that keep the largest weights of the whole network.

    >>> net = nn.Sequential(nn.Linear(2, 2, bias=False))
    >>> _ = net[0].weight.data.copy_(torch.tensor([[0.1, 2.0], [-3.0, 0.2]]))
    >>> magnitude_masks(net, 0.5)
    {'0.weight': tensor([[False,  True],
            [ True, False]])}
    """
    weights = {
        f"{name}.weight".removeprefix("."): module.weight.detach()
        for name, module in net.named_modules()
        if isinstance(module, PRUNABLE)
    }
    if not weights:
        return {}
    flat = torch.cat([weight.flatten() for weight in weights.values()])
    chosen = torch.ones_like(flat)
    if sparsity > 0:
        chosen = prune.L1Unstructured(sparsity).compute_mask(flat, chosen)
    masks = chosen.bool().split([weight.numel() for weight in weights.values()])
    return {
        name: mask.view(weight.shape)
        for (name, weight), mask in zip(weights.items(), masks, strict=True)
    }


def count_nonzero(net: nn.Module) -> int:
    """Return how many parameters are not zero, biases and norms included."""
    return sum(int(torch.count_nonzero(p)) for p in net.parameters())
