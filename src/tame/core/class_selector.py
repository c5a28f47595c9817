"""Which expert an unlabelled sample belongs to, by its class: a linear rule, or a network."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import torch
from torch import Tensor, nn

from tame.core.augment import Affine
from tame.core.class_router import ClassRouter, LinearRouter, linear_rule
from tame.core.distinct import Distinct
from tame.core.inputs import InputStep
from tame.core.means import nearest_means
from tame.core.network import Blueprint
from tame.core.prune import count_nonzero
from tame.core.routers import OneExpert
from tame.core.thinning import count_kept, falling, open_masks, room_for, thinned, tighten
from tame.engine.fitting import Job, Recipe, Samples, apply_masks, fit
from tame.engine.randomness import derive, torch_generator
from tame.nets import resolve
from tame.types import Progress, State, silent

HELD_BACK = 10
BEGIN, END = 0.1, 0.6  # the part of its training in which the network is pruned


@dataclass
class ClassSelector:
    """Tries a linear rule first; where that is not enough, a network that tells classes apart.

    `memory` different samples of the whole stream are kept, with expert and label. The rule takes
    experts for normal distributions that differ in their means alone. It is made from nine tenths
    of the samples; where it sends at least `enough` of the last tenth to the right expert it is
    made again from all of them, `sparsity` of its weights zeroed, and used. Otherwise `net` learns
    every pair of expert and label, pruned to `nonzero` parameters (0: not) while it is trained.
    """

    net: Any = "convnet"
    memory: int = 6000
    enough: float = 0.995
    sparsity: float = 0.5
    nonzero: int = 27_000
    training: Recipe = field(
        default_factory=lambda: Recipe(
            epochs=60, rate=0.1, nesterov=True, weight_decay=5e-4, augment=Affine()
        )
    )
    _seed: int = field(init=False, default=0, repr=False)
    _reservoir: Distinct = field(init=False, repr=False, compare=False)
    _net: nn.Module | None = field(init=False, default=None, repr=False)
    _linear: bool = field(init=False, default=False, repr=False)
    _shape: tuple[int, ...] = field(init=False, default=(), repr=False)
    _pairs: list[list[int]] = field(init=False, default_factory=list, repr=False)
    _fitted: int = field(init=False, default=0, repr=False)

    def __post_init__(self) -> None:
        if not 0 <= self.sparsity < 1:
            raise ValueError(f"sparsity lies in [0, 1), not {self.sparsity}")
        if self.nonzero < 0:
            raise ValueError(f"nonzero is 0 (no pruning) or more, not {self.nonzero}")
        self._reservoir = Distinct(self.memory, 0)

    def fresh(self, seed: int) -> Self:
        copied = replace(self)
        copied.reseed(seed)
        return copied

    def reseed(self, seed: int) -> None:
        """Start over with an empty memory."""
        self._seed = seed
        self._reservoir = Distinct(self.memory, derive(seed, "selector memory"))

    def observe(self, raw: Tensor, slots: Tensor, expert: int) -> None:
        self._reservoir.add(raw, slots, expert)

    def fit(self, plan: Blueprint, step: InputStep, progress: Progress = silent) -> bool:
        if self._fitted == self._reservoir.seen:
            return False
        raw, slots, expert = (column.to(plan.device) for column in self._reservoir.columns())
        self._fitted, self._net, self._shape = self._reservoir.seen, None, step.output_shape
        pairs, target = torch.stack([expert, slots], 1).unique(dim=0, return_inverse=True)
        self._pairs = pairs.tolist()
        known, owner = expert.unique(return_inverse=True)
        if len(known) == 1:
            return True
        self._linear = self._is_enough(step(raw).flatten(1), owner, len(known))
        if self._linear:
            flat = step(raw).flatten(1)
            self._net = linear_rule(flat, owner, len(known), self.sparsity)
        else:
            samples = Samples(raw, target, step.prepare, len(pairs))
            self._net = self._train(plan, samples, progress)
        return True

    def router(self, step: InputStep, owners: Sequence[int]) -> nn.Module:
        count = len(owners)
        if count == 1:
            return OneExpert(0, 1)
        known = sorted({owner for owner, _ in self._pairs})
        late = bool(set(owners) - set(known))
        means = None
        if late or self._net is None:
            means = nearest_means(self._reservoir.columns(), step, owners)
        if self._net is None and means is not None:
            return means
        assert self._net is not None  # noqa: S101 (one of the two exists)
        positions = {owner: position for position, owner in enumerate(owners)}
        device = step.mean.device
        if self._linear and isinstance(self._net, nn.Linear):
            places = torch.tensor([positions[owner] for owner in known], device=device)
            return LinearRouter(self._net, places, count, means)
        where = torch.tensor([positions[owner] for owner, _ in self._pairs], device=device)
        slots = torch.tensor([slot for _, slot in self._pairs], device=device)
        return ClassRouter(self._net, (where, slots), count, means)

    def parameters(self) -> tuple[int, int, int]:
        if self._net is None:
            return 0, 0, 0
        dense = sum(p.numel() for p in self._net.parameters())
        return count_nonzero(self._net), count_nonzero(self._net), dense

    def nbytes(self) -> tuple[int, int]:
        model = sum(p.nbytes for p in self._net.state_dict().values()) if self._net else 0
        return model, self._reservoir.nbytes()

    def samples(self) -> int:
        """Return how many samples are kept."""
        return len(self._reservoir)

    def state_dict(self) -> State:
        return {
            "reservoir": self._reservoir.state_dict(),
            "net": None if self._net is None else dict(self._net.state_dict()),
            "linear": self._linear,
            "shape": list(self._shape),
            "pairs": self._pairs,
            "fitted": self._fitted,
        }

    def load_state_dict(self, state: State, plan: Blueprint | None) -> None:
        self._reservoir.load_state_dict(state["reservoir"])
        self._pairs = [list(pair) for pair in state["pairs"]]
        self._fitted, self._linear = state["fitted"], state["linear"]
        self._shape = tuple(state["shape"])
        self._net = None
        if state["net"] is not None and plan is not None:
            weight = state["net"].get("weight")
            self._net = nn.Linear(*weight.shape[::-1]) if self._linear else self._build(plan)
            self._net = self._net.to(plan.device).eval()
            self._net.load_state_dict(state["net"])

    @torch.no_grad()
    def _is_enough(self, flat: Tensor, owner: Tensor, count: int) -> bool:
        """Say whether a linear rule routes the held-back samples, those of the largest keys."""
        held = max(1, len(flat) // HELD_BACK)
        rule = linear_rule(flat[held:], owner[held:], count, self.sparsity)
        right = rule(flat[:held]).argmax(1) == owner[:held]
        return float(right.double().mean()) >= self.enough

    def _build(self, plan: Blueprint) -> nn.Module:
        make = plan.make if self.net == "same" else resolve(self.net)
        made = replace(plan, make=make, input_shape=self._shape)
        return made.build(len(self._pairs), "selector", self._fitted)

    def _train(self, plan: Blueprint, samples: Samples, progress: Progress) -> nn.Module:
        generator = torch_generator(derive(self._seed, "selector", self._fitted))
        net = self._build(plan)
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
