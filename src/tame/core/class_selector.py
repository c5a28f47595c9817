"""Which expert an unlabelled sample belongs to, by its class: a linear rule, or a network."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from tame.config import late
from tame.core.augment import Affine
from tame.core.blueprint import Blueprint
from tame.core.class_router import ClassRouter, OnRaw, OnReady, linear_rule, open_linear
from tame.core.codec import AsKept, Codec
from tame.core.distinct import Distinct
from tame.core.inputs import InputStep
from tame.core.moment_router import Views
from tame.core.prune import count_nonzero
from tame.core.remembering import Remembering, positions
from tame.core.routers import NearestMean, NetworkRouter
from tame.core.thinning import count_kept, falling, open_masks, room_for, thinned, tighten
from tame.engine.fitting import Job, Samples, apply_masks, fit
from tame.engine.randomness import derive, torch_generator
from tame.engine.recipe import Recipe
from tame.types import Progress, State

HELD_BACK = 10
RULED = 12_000  # samples are enough for means and for a linear rule
BEGIN, END = 0.1, 0.6  # the part of its training in which the network is pruned


@dataclass
class ClassSelector(Remembering):
    """Tries a linear rule first; where that is not enough, a network that tells classes apart.

    `memory` different samples of the whole stream are kept, with expert and label. The rule takes
    experts for normal distributions that differ in their means alone. It is made from nine tenths
    of the samples; where it sends at least `enough` of the last tenth to the right expert it is
    made again from all of them, `sparsity` of its weights zeroed, and used. Otherwise `net` learns
    every pair of expert and label, pruned to `nonzero` parameters (0: not) while it is trained.
    Where `mirrored` says that an image and its mirror image are of one class, it is asked for both.
    With a `codec` images are kept as it writes them, more of them in the same bytes; the network
    learns from what comes back, and is asked about images written and read so.
    """

    net: Any = "convnet"
    memory: int = 6000
    enough: float = 0.995
    sparsity: float = 0.5
    nonzero: int = 27_000
    mirrored: bool = late(default=False)
    codec: Codec | None = None
    training: Recipe = field(
        default_factory=lambda: Recipe(
            epochs=60, rate=0.1, nesterov=True, weight_decay=5e-4, augment=Affine()
        )
    )
    _linear: bool = field(init=False, default=False, repr=False)
    _pairs: list[list[int]] = field(init=False, default_factory=list, repr=False)

    def __post_init__(self) -> None:
        if not 0 <= self.sparsity < 1:
            raise ValueError(f"sparsity lies in [0, 1), not {self.sparsity}")
        if self.nonzero < 0:
            raise ValueError(f"nonzero is 0 (no pruning) or more, not {self.nonzero}")
        super().__post_init__()

    def _learn(self, plan: Blueprint, step: InputStep, progress: Progress) -> None:
        raw, slots, expert = (column.to(plan.device) for column in self._reservoir.columns())
        self._shape = step.output_shape
        pairs, target = torch.stack([expert, slots], 1).unique(dim=0, return_inverse=True)
        self._pairs = pairs.tolist()
        known, owner = expert.unique(return_inverse=True)
        if len(known) == 1:
            return
        flat = step(raw[:RULED]).flatten(1)
        self._linear = self._is_enough(flat, owner[:RULED], len(known))
        if self._linear:
            self._net = linear_rule(flat, owner[:RULED], len(known), self.sparsity)
        else:
            samples = Samples(raw, target, step.prepare, len(pairs))
            self._net = self._train(plan, samples, progress)

    def parameters(self) -> tuple[int, int, int]:
        if self._net is None:
            return 0, 0, 0
        dense = sum(p.numel() for p in self._net.parameters())
        return count_nonzero(self._net), count_nonzero(self._net), dense

    def state_dict(self) -> State:
        return {**super().state_dict(), "linear": self._linear, "pairs": self._pairs}

    def load_state_dict(self, state: State, plan: Blueprint | None) -> None:
        self._pairs = [list(pair) for pair in state["pairs"]]
        self._linear = state["linear"]
        super().load_state_dict(state, plan)

    def _empty(self, seed: int) -> Distinct:
        return Distinct(self.memory, seed, self.codec)

    def _glance(self) -> list[Tensor]:
        columns: list[Tensor] = self._reservoir.columns(RULED)
        return columns

    def _taught(self) -> list[int]:
        return sorted({owner for owner, _ in self._pairs})

    def _route(self, step: InputStep, owners: Sequence[int], late: NearestMean | None) -> nn.Module:
        assert self._net is not None  # noqa: S101 (asked for where there is one)
        count, device = len(owners), step.mean.device
        if self._linear:
            rule = nn.Sequential(nn.Flatten(), self._net)
            return NetworkRouter(rule, positions(self._taught(), owners, device), count, late)
        where = positions([owner for owner, _ in self._pairs], owners, device)
        slots = torch.tensor([slot for _, slot in self._pairs], device=device)
        return ClassRouter(self._scorer(self._net, step), (where, slots), count, late)

    def _scorer(self, net: nn.Module, step: InputStep) -> nn.Module:
        """Return the network, asked as it was taught."""
        if self.codec is None:
            return OnReady(Views(net, nn.Identity()) if self.mirrored else net)
        given = nn.Sequential(AsKept(self.codec), step)
        return OnRaw(Views(net, given) if self.mirrored else nn.Sequential(given, net))

    def _frame(self, plan: Blueprint, weights: State) -> nn.Module:
        if self._linear:
            return open_linear(*weights["weight"].shape[::-1])
        return self._build(plan, self.net, len(self._pairs))

    @torch.no_grad()
    def _is_enough(self, flat: Tensor, owner: Tensor, count: int) -> bool:
        """Say whether a linear rule routes the held-back samples, those of the largest keys."""
        held = max(1, len(flat) // HELD_BACK)
        rule = linear_rule(flat[held:], owner[held:], count, self.sparsity)
        right = rule(flat[:held]).argmax(1) == owner[:held]
        return float(right.double().mean()) >= self.enough

    def _train(self, plan: Blueprint, samples: Samples, progress: Progress) -> nn.Module:
        generator = torch_generator(derive(self._seed, "selector", self._fitted))
        net = self._build(plan, self.net, len(self._pairs))
        masks = open_masks(net, {}) if self.nonzero else {}
        begin, end = count_kept(net, {}), room_for(net, self.nonzero)

        def between(_: Sequence[Job], done: float) -> None:
            left = min(1.0, max(0.0, (END - done) / (END - BEGIN)))
            if masks and left < 1:
                tighten(masks, thinned(net, masks, falling(begin, end, left)))
                apply_masks(net, masks)

        fit(
            [Job(net, samples, generator, masks)],
            self.training,
            lambda _, done, total: progress("training the selector", done, total),
            between,
        )
        return net.eval()
