"""What selectors that train on remembered samples have in common."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import torch
from torch import Tensor, nn

from tame.core.blueprint import Blueprint
from tame.core.distinct import Distinct
from tame.core.inputs import InputStep
from tame.core.means import nearest_means
from tame.core.routers import NearestMean, OneExpert
from tame.engine.randomness import derive
from tame.errors import ConfigError, DataError
from tame.nets import resolve
from tame.types import Progress, State, silent

EXPERT = 2  # the column of a remembered sample that names its expert


@dataclass
class Remembering(ABC):
    """A memory of samples with their experts, and a network that was trained on it, or none yet."""

    _seed: int = field(init=False, default=0, repr=False)
    _reservoir: Any = field(init=False, repr=False, compare=False)
    _shape: tuple[int, ...] = field(init=False, default=(), repr=False)
    _net: nn.Module | None = field(init=False, default=None, repr=False)
    _fitted: int = field(init=False, default=0, repr=False)

    def __post_init__(self) -> None:
        self._reservoir = self._empty(0)

    @abstractmethod
    def _empty(self, seed: int) -> Any:
        """Return a memory with nothing in it."""

    @abstractmethod
    def _learn(self, plan: Blueprint, step: InputStep, progress: Progress) -> None:
        """Train on what is remembered."""

    @abstractmethod
    def _taught(self) -> list[int]:
        """Return the experts the network was trained on."""

    @abstractmethod
    def _route(self, step: InputStep, owners: Sequence[int], late: NearestMean | None) -> nn.Module:
        """Return the trained network as a router; `late` tells the experts that came after it."""

    def fresh(self, seed: int) -> Self:
        copied = replace(self)
        copied.reseed(seed)
        return copied

    def reseed(self, seed: int) -> None:
        """Start over with an empty memory."""
        self._seed = seed
        self._reservoir = self._empty(derive(seed, "selector memory"))

    def check(self, raw: Tensor, step: InputStep, plan: Blueprint) -> None:
        """Raise where such samples cannot be kept, or where no network can be made for them.

        Asked before anything is learned from them: a consolidation would tell hours too late.
        """
        if isinstance(self._reservoir, Distinct):
            self._reservoir.check(raw)
        net = getattr(self, "net", None)
        if net is not None:
            try:
                self._build(plan, net, 2, shape=self._step(step).output_shape)
            except (ConfigError, DataError) as error:
                raise type(error)(f"selector.net: {error}") from error

    def observe(self, raw: Tensor, slots: Tensor, expert: int) -> None:
        self._reservoir.add(raw, slots, expert)

    def fit(self, plan: Blueprint, step: InputStep, progress: Progress = silent) -> bool:
        """Train, unless nothing changed; broken off, it goes on to route as it did before."""
        if self._fitted == self._reservoir.seen:
            return False
        before = dict(vars(self))
        self._fitted, self._net = self._reservoir.seen, None
        try:
            self._learn(plan, step, progress)
        except BaseException:
            vars(self).update(before)
            raise
        return True

    def rename(self, old: int, new: int) -> None:
        self._reservoir.rename(EXPERT, old, new)
        self._net, self._fitted = None, -1

    def spare(self) -> Self:
        return copy.deepcopy(self, {id(self._net): self._net})

    def router(self, step: InputStep, owners: Sequence[int]) -> nn.Module:
        if len(owners) == 1:
            return OneExpert(0, 1)
        means = None
        if self._net is None or set(owners) - set(self._taught()):
            means = nearest_means(self._glance(), step, owners)
        if self._net is None and means is not None:
            return means
        return self._route(step, owners, means)

    def _glance(self) -> list[Tensor]:
        """Return as many of the remembered samples as tell the experts' means."""
        columns: list[Tensor] = self._reservoir.columns()
        return columns

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
            "shape": list(self._shape),
            "fitted": self._fitted,
        }

    def load_state_dict(self, state: State, plan: Blueprint | None) -> None:
        self._reservoir.load_state_dict(state["reservoir"])
        self._fitted = state["fitted"]
        self._shape = tuple(state["shape"])
        self._net = None
        if state["net"] is not None and plan is not None:
            self._net = self._frame(plan, state["net"]).to(plan.device).eval()
            self._net.load_state_dict(state["net"])

    @abstractmethod
    def _frame(self, plan: Blueprint, weights: State) -> nn.Module:
        """Return a network such weights fit."""

    def _step(self, step: InputStep) -> InputStep:
        """Return what stands before its own network: here what stands before the experts'."""
        return step

    def _build(
        self,
        plan: Blueprint,
        net: Any,
        outputs: int,
        attempt: int = 0,
        shape: tuple[int, ...] | None = None,
    ) -> nn.Module:
        """Return an untrained network; `net` "same" is the experts' own kind."""
        make = plan.make if net == "same" else resolve(net)
        plan = replace(plan, make=make, input_shape=self._shape if shape is None else shape)
        return plan.build(outputs, "selector", self._fitted, *([attempt] if attempt else []))


def positions(asked: Sequence[int], owners: Sequence[int], device: torch.device) -> Tensor:
    """Return the position of each expert asked for among the owners."""
    places = {owner: position for position, owner in enumerate(owners)}
    return torch.tensor([places[owner] for owner in asked], device=device)
