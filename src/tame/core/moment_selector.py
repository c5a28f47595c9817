"""Which expert an unlabelled sample belongs to, by statistics of all that streamed past."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from tame.config import part
from tame.core.augment import Crop
from tame.core.blueprint import Blueprint
from tame.core.class_router import ClassRouter
from tame.core.codec import AsKept, Codec
from tame.core.distinct import Distinct
from tame.core.inputs import Inputs, InputStep
from tame.core.moment_router import Eye, MomentScores, Views
from tame.core.moments import Moments
from tame.core.prune import count_nonzero
from tame.core.remembering import Remembering, positions
from tame.core.routers import NearestMean
from tame.engine.fitting import Job, Samples, fit
from tame.engine.randomness import derive, torch_generator
from tame.engine.recipe import Recipe
from tame.nets import resolve
from tame.registry import NETS
from tame.types import Progress, State


@dataclass
class MomentSelector(Remembering):
    """Means and a spread of all vectors, at any time; a network on the reservoir on top.

    Every pair of expert and label is a normal distribution of the vectors the experts are given,
    with a mean of its own and one spread for all (`shrinkage` of it made even), gathered batch by
    batch: no order and no buffer. Its answers are softened by `temperature`.

    At consolidation `net` (none: statistics alone) learns the pairs on `memory` different samples
    of the stream, as `inputs` makes them (none: as the experts are given them). Its word has the
    weight `share`. Pairs that come later are told by the statistics. With a `codec` the samples are
    kept as it writes them, more of them in the same bytes, and images are asked about so.
    """

    net: Any = part(NETS, lambda: None)
    memory: int = 7000
    inputs: Inputs | None = None
    codec: Codec | None = None
    shrinkage: float = 0.05
    temperature: float = 4.0
    share: float = 0.5
    training: Recipe = field(
        default_factory=lambda: Recipe(
            epochs=15, rate=0.03, nesterov=True, weight_decay=5e-4, augment=Crop()
        )
    )
    _moments: Moments = field(init=False, default_factory=Moments, repr=False, compare=False)
    _pairs: list[tuple[int, int]] = field(init=False, default_factory=list, repr=False)

    def __post_init__(self) -> None:
        if not 0 < self.shrinkage <= 1 or not 0 <= self.share <= 1:
            raise ValueError("shrinkage lies in (0, 1], share in [0, 1]")
        if self.temperature <= 0:
            raise ValueError(f"temperature is positive, not {self.temperature}")
        if self.net is not None:
            self.net = resolve(self.net)
        super().__post_init__()

    def reseed(self, seed: int) -> None:
        super().reseed(seed)
        self._moments = Moments()

    def gather(self, ready: Tensor, slots: Tensor, expert: int) -> None:
        """Take what the expert's network was given of a batch, with the labels' slots."""
        self._moments.add(ready, slots, expert)

    def rename(self, old: int, new: int) -> None:
        super().rename(old, new)
        self._moments.rename(old, new)

    def _learn(self, plan: Blueprint, step: InputStep, progress: Progress) -> None:
        raw, slots, expert = self._reservoir.columns()
        own = self._step(step)
        self._shape = own.output_shape
        pairs, target = torch.stack([expert, slots], 1).unique(dim=0, return_inverse=True)
        self._pairs = [(owner, slot) for owner, slot in pairs.tolist()]
        if self.net is not None and len(pairs) > 1:
            samples = Samples(raw, target, own.prepare, len(pairs)).to(plan.device)
            self._net = self._train(plan, samples, progress)

    def router(self, step: InputStep, owners: Sequence[int]) -> nn.Module:
        if not self._moments.pairs:
            return super().router(step, owners)
        return self._route(step, owners, None)

    def parameters(self) -> tuple[int, int, int]:
        pairs, width = self._moments.shape
        rule, net = pairs * (width + 1), self._net
        if net is None:
            return rule, rule, rule
        nonzero, dense = count_nonzero(net), sum(p.numel() for p in net.parameters())
        return rule + nonzero, rule + dense, rule + dense

    def nbytes(self) -> tuple[int, int]:
        model, samples = super().nbytes()
        pairs, width = self._moments.shape
        return model + 4 * pairs * (width + 1), samples + self._moments.nbytes()

    def state_dict(self) -> State:
        return {
            **super().state_dict(),
            "pairs": [list(pair) for pair in self._pairs],
            "moments": self._moments.state_dict(),
        }

    def load_state_dict(self, state: State, plan: Blueprint | None) -> None:
        self._pairs = [(owner, slot) for owner, slot in state["pairs"]]
        self._moments.load_state_dict(state["moments"])
        super().load_state_dict(state, plan)

    def _empty(self, seed: int) -> Distinct:
        return Distinct(self.memory, seed, self.codec)

    def _taught(self) -> list[int]:
        return sorted({owner for owner, _ in self._moments.pairs})

    def _route(self, step: InputStep, owners: Sequence[int], late: NearestMean | None) -> nn.Module:
        device, pairs = step.mean.device, self._moments.pairs
        rule = self._moments.rule(self.shrinkage).to(device)
        scores = MomentScores(rule, self.temperature, self._eye(step))
        where = positions([owner for owner, _ in pairs], owners, device)
        slots = torch.tensor([slot for _, slot in pairs], device=device)
        return ClassRouter(scores, (where, slots), len(owners), late)

    def _eye(self, step: InputStep) -> Eye | None:
        if self._net is None:
            return None
        places = {pair: place for place, pair in enumerate(self._moments.pairs)}
        known = torch.tensor([places[pair] for pair in self._pairs], device=step.mean.device)
        own: nn.Module = self._step(step)
        if self.codec is not None:
            own = nn.Sequential(AsKept(self.codec), own)
        return Eye(Views(self._net, own), known, self.share)

    def _frame(self, plan: Blueprint, weights: State) -> nn.Module:  # noqa: ARG002 (every form's)
        return self._build(plan, self.net, len(self._pairs))

    def _step(self, step: InputStep) -> InputStep:
        return step if self.inputs is None else step.under(self.inputs)

    def _train(self, plan: Blueprint, samples: Samples, progress: Progress) -> nn.Module:
        generator = torch_generator(derive(self._seed, "selector", self._fitted))
        net = self._build(plan, self.net, len(self._pairs))
        fit(
            [Job(net, samples, generator)],
            self.training,
            lambda _, done, total: progress("training the selector", done, total),
        )
        return net.eval()
