"""Pruning little by little: while the stream runs, and what is left of it at the end."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

from torch import Tensor, nn

from tame.core.thinning import (
    count_kept,
    falling,
    open_masks,
    room_for,
    thinned,
    tighten,
    weights_of,
)
from tame.engine.fitting import Job, Masks, Teacher, apply_masks, fit
from tame.engine.losses import Output
from tame.engine.recipe import Recipe
from tame.types import Progress, silent

SLACK = 0.05


@runtime_checkable
class Thinner(Protocol):
    """A pruner that also works while the stream runs."""

    def thin(self, net: nn.Module, masks: Masks, steps: int) -> dict[str, Tensor] | None:
        """Return tighter masks for a network that has taken so many steps, or None."""
        ...


@dataclass(frozen=True)
class Gradual:
    """Prunes an expert while its segment streams, when all its data is there; then finishes.

    `nonzero` parameters are left in the end, biases and norms counted (0: as `sparsity` says, the
    fraction of weights zeroed). The end of a segment is not known, so the schedule follows the
    expert's own steps: after `t` of them the excess of weights is `(1 + t / pace) ** -3` of what it
    was, looked at once in `every` steps (`pace` 0: nothing is pruned while streaming). The largest
    weights of the whole network stay, but no layer dies. Who is switched away from keeps its mask.

    At consolidation an expert that has all but come to its end is cut to size. Any other one is
    pruned on over the first `ramp` of a retraining on its `memory` samples, in which it learns its
    own answers of before (a share `distillation` of the loss, at this `temperature`) and the
    labels. `tolerance` and `held_back` are `Magnitude`'s.

    >>> Gradual(nonzero=10, pace=10.0, every=5).thin(nn.Linear(9, 2), {}, 3) is None
    True
    """

    nonzero: int = 0
    sparsity: float = 0.98
    pace: float = 300.0
    every: int = 25
    memory: int = 400
    tolerance: float = 0.02
    held_back: float = 0.1
    distillation: float = 0.5
    temperature: float = 2.0
    ramp: float = 0.5
    retraining: Recipe = field(default_factory=lambda: Recipe(epochs=20, rate=0.05, nesterov=True))

    def __post_init__(self) -> None:
        if not 0 <= self.sparsity < 1:
            raise ValueError(f"sparsity lies in [0, 1), not {self.sparsity}")
        if not 0 <= self.held_back < 1:
            raise ValueError(f"held_back is a share in [0, 1), not {self.held_back}")
        if not 0 <= self.distillation <= 1:
            raise ValueError(f"distillation lies in [0, 1], not {self.distillation}")
        if self.pace < 0 or self.every < 1 or self.nonzero < 0:
            raise ValueError("pace and nonzero are 0 or more, every is 1 or more")

    def target(self, net: nn.Module) -> int:
        """Return how many weights of a network are left in the end."""
        if self.nonzero:
            return room_for(net, self.nonzero)
        total = sum(weight.numel() for weight in weights_of(net).values())
        return round(total * (1 - self.sparsity))

    def thin(self, net: nn.Module, masks: Masks, steps: int) -> dict[str, Tensor] | None:
        """Return tighter masks for a network that has taken so many steps, or None."""
        if not self.pace or steps % self.every:
            return None
        total = sum(weight.numel() for weight in weights_of(net).values())
        keep = falling(total, self.target(net), 1 / (1 + steps / self.pace))
        return thinned(net, masks, keep)

    def prune(
        self, jobs: Sequence[Job], output: Output, progress: Progress = silent
    ) -> list[dict[str, Tensor]]:
        ready = [job._replace(masks=open_masks(job.net, job.masks)) for job in jobs]
        self._retrain([job for job in ready if not self._is_close(job)], output, progress)
        found = []
        for job in ready:
            masks = thinned(job.net, job.masks, self.target(job.net))
            apply_masks(job.net, masks)
            found.append(masks)
        return found

    def _is_close(self, job: Job) -> bool:
        target = self.target(job.net)
        return count_kept(job.net, job.masks) - target <= SLACK * target

    def _retrain(self, jobs: Sequence[Job], output: Output, progress: Progress) -> None:
        taught = [job._replace(teacher=self._teacher(job.net)) for job in jobs]
        begins = {id(job.net): count_kept(job.net, job.masks) for job in jobs}

        def between(group: Sequence[Job], done: float) -> None:
            for job in group:
                left = max(0.0, 1 - done / self.ramp) if self.ramp else 0.0
                keep = falling(begins[id(job.net)], self.target(job.net), left)
                tighten(job.masks, thinned(job.net, job.masks, keep))
                apply_masks(job.net, job.masks)

        fit(taught, replace(self.retraining, output=output), progress, between)

    def _teacher(self, net: nn.Module) -> Teacher | None:
        if not self.distillation:
            return None
        return Teacher(copy.deepcopy(net).eval(), self.distillation, self.temperature)

    def slower(self) -> "Gradual":
        retraining = replace(self.retraining, rate=self.retraining.rate / 2)
        return replace(self, retraining=retraining)

    def gentler(self) -> "Gradual | None":
        if self.nonzero:
            return replace(self, nonzero=4 * self.nonzero)
        if self.sparsity <= 0:
            return None
        return replace(self, sparsity=max(0.0, 1 - 4 * (1 - self.sparsity)))
