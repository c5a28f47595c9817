"""Which expert an unlabelled sample belongs to."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, runtime_checkable

import torch
from torch import Tensor, nn

from tame.core.augment import Affine
from tame.core.blueprint import Blueprint
from tame.core.inputs import Inputs, InputStep
from tame.core.prune import count_nonzero, magnitude_masks
from tame.core.remembering import Remembering, positions
from tame.core.reservoir import Reservoir
from tame.core.routers import NearestMean, NetworkRouter
from tame.core.strata import Strata
from tame.core.trial import is_guess
from tame.engine.fitting import Job, Samples, apply_masks, fit
from tame.engine.losses import Output, sample_losses
from tame.engine.randomness import derive, torch_generator
from tame.engine.recipe import Recipe
from tame.types import Progress, State, silent

REPEATS = 3
CHUNK = 256


@runtime_checkable
class Selector(Protocol):
    """Remembers which expert learned from which samples, and routes new samples likewise."""

    def fresh(self, seed: int) -> Self: ...
    def observe(self, raw: Tensor, slots: Tensor, expert: int) -> None: ...
    def rename(self, old: int, new: int) -> None:
        """Give all samples of one expert to another, and forget what was trained before."""
        ...

    def spare(self) -> Self:
        """Return a selector that can take more samples and leaves this one as it is."""
        ...

    def fit(self, plan: Blueprint, step: InputStep, progress: Progress = silent) -> bool:
        """Train on what is remembered; return False if nothing changed since the last time."""
        ...

    def router(self, step: InputStep, owners: Sequence[int]) -> nn.Module:
        """Return a module that scores each expert (by position in `owners`) for each sample."""
        ...

    def parameters(self) -> tuple[int, int, int]:
        """Return the counts (non-zero, by the paper's formula, dense)."""
        ...

    def nbytes(self) -> tuple[int, int]:
        """Return the bytes of (model, samples)."""
        ...

    def samples(self) -> int:
        """Return how many samples are kept."""
        ...

    def state_dict(self) -> State: ...
    def load_state_dict(self, state: State, plan: Blueprint | None) -> None: ...


class Gatherer(Protocol):
    """A selector that also keeps sums of what the experts are shown."""

    def gather(self, ready: Tensor, slots: Tensor, expert: int) -> None:
        """Take what the expert's network was given of a batch, with the labels' slots."""
        ...


@dataclass
class NetworkSelector(Remembering):
    """A network trained on a uniform sample of the whole stream, each with its expert's id.

    `memory` (C_s) samples are kept; `net` "same" is the experts' own kind, `inputs` an input step
    of its own (none: the experts'). Each fit starts from fresh seeded weights, prunes `sparsity`
    of them and retrains. With `each` above 0 so many samples are kept of every label of every
    expert instead, balanced as in the authors' code; its size then grows with their number.
    """

    net: Any = "same"
    memory: int = 2500
    each: int = 0
    inputs: Inputs | None = None
    sparsity: float = 0.5
    training: Recipe = field(
        default_factory=lambda: Recipe(epochs=60, rate=0.05, weight_decay=5e-4, augment=Affine())
    )
    retraining: Recipe = field(
        default_factory=lambda: Recipe(epochs=20, rate=0.01, augment=Affine())
    )
    _known: list[int] = field(init=False, default_factory=list, repr=False)

    def __post_init__(self) -> None:
        if not 0 <= self.sparsity < 1:
            raise ValueError(f"sparsity lies in [0, 1), not {self.sparsity}")
        super().__post_init__()

    def _learn(self, plan: Blueprint, step: InputStep, progress: Progress) -> None:
        raw, _, expert = self._reservoir.columns()
        known, target = expert.unique(return_inverse=True)
        self._known = known.tolist()
        if len(known) > 1:
            own = self._step(step)
            self._shape = own.output_shape
            samples = Samples(raw, target, own.prepare, len(known)).to(plan.device)
            self._train(plan, samples, progress)

    def parameters(self) -> tuple[int, int, int]:
        if self._net is None:
            return 0, 0, 0
        dense = sum(p.numel() for p in self._net.parameters())
        return count_nonzero(self._net), round(dense * (1 - self.sparsity)), dense

    def state_dict(self) -> State:
        return {**super().state_dict(), "known": self._known}

    def load_state_dict(self, state: State, plan: Blueprint | None) -> None:
        self._known = state["known"]
        super().load_state_dict(state, plan)

    def _empty(self, seed: int) -> Reservoir | Strata:
        return Strata(self.each, seed) if self.each else Reservoir(self.memory, seed)

    def _taught(self) -> list[int]:
        return self._known

    def _route(self, step: InputStep, owners: Sequence[int], late: NearestMean | None) -> nn.Module:
        assert self._net is not None  # noqa: S101 (asked for where there is one)
        known = positions(self._known, owners, step.mean.device)
        own = None if self.inputs is None else self._step(step)
        return NetworkRouter(self._net, known, len(owners), late, own)

    def _frame(self, plan: Blueprint, weights: State) -> nn.Module:  # noqa: ARG002 (every form's)
        return self._build(plan, self.net, len(self._known))

    def _step(self, step: InputStep) -> InputStep:
        return step if self.inputs is None else step.under(self.inputs)

    def _train(self, plan: Blueprint, samples: Samples, progress: Progress) -> None:
        """Train, and anew at half the rate while that ends no better than guessing.

        If it never ends better the nearest means route.
        """
        for attempt in range(REPEATS + 1):
            net = self._trained(plan, samples, progress, attempt)
            if not _is_guessing(net, samples, self.training.output):
                self._net = net
                return

    def _trained(
        self, plan: Blueprint, samples: Samples, progress: Progress, attempt: int
    ) -> nn.Module:
        path = (self._fitted, attempt) if attempt else (self._fitted,)
        generator = torch_generator(derive(self._seed, "selector", *path))
        net = self._build(plan, self.net, len(self._known), attempt)
        job, again = Job(net, samples, generator), " again" if attempt else ""
        recipes = (self.training, self.retraining)
        training, retraining = (replace(one, rate=one.rate / 2**attempt) for one in recipes)
        fit([job], training, _named(progress, f"training the selector{again}"))
        if self.sparsity > 0:
            masks = magnitude_masks(net, self.sparsity)
            apply_masks(net, masks)
            say = _named(progress, f"pruning the selector{again}")
            fit([job._replace(masks=masks)], retraining, say)
        return net.eval()


@torch.no_grad()
def _is_guessing(net: nn.Module, samples: Samples, form: Output) -> bool:
    """Say whether a network is no better than a constant answer on what it was trained on."""
    losses = [
        sample_losses(net(samples.prepare(x, None, None))[:, : samples.live], y, form)
        for x, y in zip(samples.x.split(CHUNK), samples.y.split(CHUNK), strict=True)
    ]
    counts = samples.y.bincount(minlength=samples.live).cpu().numpy()
    return is_guess(float(torch.cat(losses).mean()), counts, form)


def _named(progress: Progress, what: str) -> Progress:
    return lambda _, done, total: progress(what, done, total)
