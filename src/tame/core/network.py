"""A network in training: its optimiser, schedule, masks, and room for labels to come."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from tame.core.average import EVERY, Average
from tame.core.blueprint import FEW, Blueprint
from tame.core.growing import copy_into, enlarge
from tame.engine.eager import EagerStep
from tame.engine.fitting import apply_masks, make_optimiser, set_rate
from tame.engine.lesson import Lesson
from tame.engine.meanwhile import Meanwhile, nothing
from tame.engine.randomness import PrivateDraws, derive
from tame.types import Reading, State

if TYPE_CHECKING:
    pass


class Network:
    """A network, how it is trained, and how far it has come."""

    def __init__(self, plan: Blueprint, slots: int, path: Iterable[object]) -> None:
        self.plan = plan
        self.path = tuple(path)
        self.slots = slots
        self.steps = 0
        self.restarts = 0
        self.masks: dict[str, Tensor] = {}
        self._equip(plan.build(slots, *self.path))

    def measure(
        self,
        lesson: Lesson,
        *,
        keep: bool = True,
        odds: Tensor | None = None,
        meanwhile: Meanwhile = nothing,
    ) -> Reading:
        """Return the loss on a batch that has trained nothing yet; `keep` if learning may follow.

        Only then does it take its turn on the bench. `odds`, where they are drawn already, are
        those that learning will bring: what they say can be done while the loss is looked at.
        `meanwhile` is done once, while the device is busy; it must leave this network alone.
        """
        self.grow(lesson.live)
        bench = self.plan.bench if keep else None
        reading = None if bench is None else bench.measure(self, lesson, odds, meanwhile)
        return reading or self._step.measure(lesson, keep=keep, meanwhile=meanwhile)

    def learn(self, lesson: Lesson, odds: Tensor | None = None) -> None:
        """Take one training step on the batch just measured."""
        rate = self.plan.training.rate_at(self.steps) * 0.5**self.restarts
        bench = self.plan.bench
        if bench is None or not bench.learn(rate, odds, self._draws):
            set_rate(self.optimiser, rate)
            self._step.learn(lesson, odds)
            apply_masks(self.net, self.masks)
        self.steps += 1
        if self._average is not None and self.steps % EVERY == 0:
            self._average.add(self.net)
            apply_masks(self._average.net, self.masks)

    @property
    def mature(self) -> nn.Module:
        """The network to answer with: the mean of its weights where that is kept."""
        average = self._average
        return self.net if average is None or not average.looks else average.net

    def tighten(self, masks: dict[str, Tensor]) -> None:
        """Go on inside these masks, with all else as it was."""
        self.masks = masks
        for net in (self.net, self.mature):
            apply_masks(net, masks)
        if self.plan.bench is not None:
            self.plan.bench.remask(self)

    def forget(self) -> None:
        """Drop what measuring kept for a step that will not be taken."""
        self._step.forget()
        if self.plan.bench is not None:
            self.plan.bench.forget()

    def open(self) -> EagerStep:
        """Return its step for a method to take apart; whoever does counts `steps` itself."""
        self.leave_bench()
        return EagerStep(self.net, self.optimiser, self.plan.manner, self._draws)

    def grow(self, live: int) -> None:
        """Double the output slots until `live` fit, keeping everything learned."""
        if live > FEW:
            self.plan.check_many()
        slots = self.slots
        while slots < live:
            slots *= 2
        if slots == self.slots:
            return
        old, state, average = self.net, self.optimiser.state_dict()["state"], self._average
        net = self.plan.build(slots, *self.path, "grown", slots)
        copy_into(net, old)
        grown = [parameter for _, parameter in net.named_parameters()]
        self.masks = {
            name: enlarge(mask, net.get_parameter(name), fill=1)
            for name, mask in self.masks.items()
        }
        self._equip(net, self._draws)
        if average is not None and self._average is not None:
            copy_into(self._average.net, average.net)
            self._average.looks = average.looks
        self.slots = slots
        self._restore(
            {
                index: {
                    key: enlarge(value, grown[index], fill=0) if value.ndim else value
                    for key, value in entry.items()
                    if value is not None
                }
                for index, entry in state.items()
            }
        )

    def begin_as(self, other: "Network") -> bool:
        """Take another network's weights as the first ones if training starts so.

        Says whether the last layer's came too: then it is sure of another world's answers. Of a
        pruned network most units are dead for good: then, fresh weights are the better start.
        """
        start = self.plan.training.start
        if start == "fresh" or other.masks:
            return False
        self.grow(other.slots)
        fresh = self.plan.heads if start == "features" else frozenset()
        own, theirs = self.net.state_dict(), other.net.state_dict()
        self.net.load_state_dict({n: own[n] if n in fresh else theirs[n] for n in own})
        return not fresh

    def restart(self) -> None:
        """Begin anew with fresh weights and half the rate."""
        self.restarts += 1
        self.steps = 0
        self.masks = {}
        self._equip(self.plan.build(self.slots, *self.path, "restart", self.restarts))

    def adopt(self, net: nn.Module, masks: dict[str, Tensor], slots: int) -> None:
        """Go on as this pruned network, inside its masks, with fresh optimiser state."""
        self.masks = masks
        self.slots = slots
        self._equip(net, self._draws)

    def is_finite(self) -> bool:
        """Say whether every parameter is a number."""
        return all(bool(torch.isfinite(p).all()) for p in self.net.parameters())

    def state_dict(self) -> State:
        places = [place for group in self.optimiser.param_groups for place in group["params"]]
        state = self.optimiser.state
        return {
            "slots": self.slots,
            "steps": self.steps,
            "restarts": self.restarts,
            "net": dict(self.net.state_dict()),
            "masks": dict(self.masks),
            "draws": [] if self._draws is None else list(self._draws.states),
            "average": None if self._average is None else self._average.state_dict(),
            "optimiser": {
                str(index): {key: value for key, value in state[place].items() if value is not None}
                for index, place in enumerate(places)
                if place in state
            },
        }

    def load_state_dict(self, state: State) -> None:
        self.leave_bench()
        if state["slots"] != self.slots:
            self.slots = state["slots"]
            self._equip(self.plan.build(self.slots, *self.path))
        self.steps = state["steps"]
        self.restarts = state["restarts"]
        self.net.load_state_dict(state["net"])
        if self._average is not None:
            kept = state.get("average") or {"looks": 0, "net": state["net"]}
            self._average.load_state_dict(kept)
        self.masks = {name: m.to(self.plan.device) for name, m in state["masks"].items()}
        if self._draws is not None:
            self._draws.states = [draws.cpu() for draws in state["draws"]]
        self._restore({int(index): entry for index, entry in state["optimiser"].items()})

    def _equip(self, net: nn.Module, draws: PrivateDraws | None = None) -> None:
        self.leave_bench()
        if draws is None and self.plan.faces.random:
            seed = derive(self.plan.seed, *self.path, "draws", self.restarts)
            draws = PrivateDraws(seed, self.plan.device)
        self._draws = draws
        self.net = net
        self.optimiser = make_optimiser(net, self.plan.training)
        self._step = self.plan.step(net, self.optimiser, draws)
        self._average = Average(net) if self.plan.training.average else None

    def leave_bench(self) -> None:
        """Stand on its own memory again, if it stood on the bench."""
        if self.plan.bench is not None:
            self.plan.bench.release(self)

    def _restore(self, state: dict[int, dict[str, Tensor]]) -> None:
        groups = self.optimiser.state_dict()["param_groups"]
        own = {i: {k: v.clone() for k, v in entry.items()} for i, entry in state.items()}
        self.optimiser.load_state_dict({"state": own, "param_groups": groups})
