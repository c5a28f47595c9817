"""One expert: a network, its detector, and a uniform sample of what it learned."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from tame.core.blueprint import Blueprint
from tame.core.gradual import Thinner
from tame.core.mark import Mark
from tame.core.network import Network
from tame.core.reservoir import Reservoir
from tame.core.settings import Settings
from tame.core.trial import Trial
from tame.engine.lesson import Lesson
from tame.engine.meanwhile import Meanwhile, nothing
from tame.engine.randomness import derive, restore_torch, torch_generator
from tame.types import Reading, ShiftDetector, State


class Compact(NamedTuple):
    """A pruned copy of a network that stays valid while the network has taken `steps` steps."""

    net: nn.Module
    masks: dict[str, Tensor]
    slots: int
    steps: int


class Ahead(NamedTuple):
    """Numbers drawn for a batch that may yet be learned, and the generator's state before."""

    lesson: Lesson
    odds: Tensor
    before: Tensor


class Expert:
    """Knows one distribution: learns it, is surprised by others, remembers a sample of it."""

    def __init__(self, number: int, plan: Blueprint, settings: Settings) -> None:
        self.id = number
        self.network = Network(plan, settings.slots, ("expert", number))
        self.detector: ShiftDetector = settings.detector.fresh()
        seed = derive(plan.seed, "retraining memory", number)
        self.memory = Reservoir(settings.pruner.memory, seed)
        self.held_back: float = settings.pruner.held_back
        training = plan.training
        self.trial = Trial(training.patience, training.output, training.warmup)
        self.counts = np.zeros(0, dtype=np.int64)
        self.batch = 1
        self.compact: Compact | None = None
        self.settled = -1  # the step at which its pruned form took its place
        self.mark: Mark | None = None  # of its losses when it was last left, where that is kept
        self.draws = torch_generator(derive(plan.seed, "augment", number))
        self._thinner = settings.pruner if isinstance(settings.pruner, Thinner) else None
        self._ahead: Ahead | None = None
        self._reading = Reading(math.nan)
        self._restarted = False

    def measure(
        self, lesson: Lesson, *, keep: bool = True, meanwhile: Meanwhile = nothing
    ) -> Reading:
        """Return the loss on a batch that has trained nothing yet; `keep` if learning may follow.

        An expert about to learn whose weights are no numbers any more begins anew. `meanwhile` is
        done while the device is busy, and must leave the expert alone.
        """
        odds, new = self._odds(lesson) if keep else None, 0

        def look() -> None:
            nonlocal new
            new = unseen(lesson, self.taught)
            meanwhile()

        reading = self.network.measure(lesson, keep=keep, odds=odds, meanwhile=look)
        if keep and not math.isfinite(reading.loss) and not self.network.is_finite():
            self._restart()
            reading = self.network.measure(lesson, odds=odds)
        self._reading = Reading(reading.loss, reading.error, reading.samples, new)
        return self._reading

    def train(self, lesson: Lesson) -> bool:
        """Train on the batch just measured, and remember nothing of it but its labels.

        Returns True if the expert was given fresh weights: it never learned, or was broken.
        """
        self._step(lesson)
        seen = lesson.counts.copy()
        seen[: len(self.counts)] += self.counts
        self.counts = seen
        self.batch = len(lesson)
        stuck = self.trial.add(self._reading, lesson.slots, lesson.live)
        if stuck and self.network.restarts < self.network.plan.training.restarts:
            self._restart()
        restarted, self._restarted = self._restarted, False
        return restarted

    def repeat(self, lesson: Lesson) -> None:
        """Train once more on a batch that has been counted, and judged by."""
        self.network.measure(lesson, odds=self._odds(lesson))
        self._step(lesson)

    def _step(self, lesson: Lesson) -> None:
        self.network.learn(lesson, self._odds(lesson))
        self._ahead = None
        self._thin()

    def forget(self) -> None:
        """Drop what measuring kept and drew for a step that will not be taken."""
        self.network.forget()
        self._take_back()

    def _odds(self, lesson: Lesson) -> Tensor | None:
        """Return the numbers by which a batch is changed; what is not learned from draws none."""
        augment = self.network.plan.augment
        if augment is None:
            return None
        if self._ahead is not None and self._ahead.lesson is lesson:
            return self._ahead.odds
        self._take_back()
        before = self.draws.get_state()
        odds = torch.rand(augment.numbers, len(lesson), generator=self.draws)
        self._ahead = Ahead(lesson, odds, before)
        return odds

    def _take_back(self) -> None:
        """Be as before the numbers of a batch that was not learned were drawn."""
        if self._ahead is not None:
            self.draws.set_state(self._ahead.before)
        self._ahead = None

    def _thin(self) -> None:
        """Prune on while the data is there; who has been pruned for good keeps its mask."""
        if self._thinner is None or self.settled >= 0:
            return
        network = self.network
        masks = self._thinner.thin(network.net, network.masks, network.steps)
        if masks is not None:
            network.tighten(masks)

    def _restart(self) -> None:
        self.network.restart()
        self.detector = self.detector.fresh()
        self.trial.reset()
        self.compact, self.settled = None, -1
        self._restarted = True

    @property
    def answers(self) -> nn.Module:
        """The network that predicts: the pruned copy while it is up to date, else its own."""
        if self.compact is not None and self.compact.steps == self.network.steps:
            return self.compact.net
        return self.network.mature

    @property
    def taught(self) -> np.ndarray:
        """Which slots it has been taught."""
        return self.counts > 0

    @property
    def is_pruned(self) -> bool:
        """Whether its live network is its pruned one; masks alone may be on their way there."""
        return bool(self.network.masks) and self.settled >= 0

    @property
    def is_settled(self) -> bool:
        """Whether its pruned form has taken its place, and it has not been recruited anew since."""
        return self.is_pruned or self.settled == self.network.steps

    def brief(self) -> State:
        """Return its state but for its memory and its pruned copy; tensors are shared."""
        drawn = self.draws.get_state() if self._ahead is None else self._ahead.before
        return {
            "id": self.id,
            "network": self.network.state_dict(),
            "detector": self.detector.state_dict(),
            "trial": self.trial.state_dict(),
            "counts": self.counts.tolist(),
            "batch": self.batch,
            "settled": self.settled,
            "draws": drawn,
            "mark": None if self.mark is None else list(self.mark),
        }

    def resume(self, state: State) -> None:
        """Go on from what `brief` returned, with the memory of now; weights change in place."""
        self.network.load_state_dict(state["network"])
        self.detector.load_state_dict(state["detector"])
        self.trial.load_state_dict(state["trial"])
        self.counts = np.array(state["counts"], dtype=np.int64)
        self.batch = state["batch"]
        self.settled = state["settled"]
        self._ahead = None
        restore_torch(self.draws, state["draws"])
        self.mark = as_mark(state.get("mark"))
        if self.compact is not None and self.compact.steps > self.network.steps:
            self.compact = None  # of a later time, which will not come again as it was

    def state_dict(self) -> State:
        compact = self.compact
        return {
            **self.brief(),
            "memory": self.memory.state_dict(),
            "compact": None
            if compact is None
            else {
                "net": dict(compact.net.state_dict()),
                "masks": dict(compact.masks),
                "slots": compact.slots,
                "steps": compact.steps,
            },
        }

    def load_state_dict(self, state: State) -> None:
        self.resume(state)
        self.memory.load_state_dict(state["memory"])
        self.restore_compact(state["compact"])

    def restore_compact(self, kept: State | None) -> None:
        """Put back the pruned copy, or the lack of one, that a state holds."""
        self.compact = None
        if kept is not None:
            net = self.network.plan.build(kept["slots"], "compact")
            net.load_state_dict(kept["net"])
            device = self.network.plan.device
            masks = {name: mask.to(device) for name, mask in kept["masks"].items()}
            self.compact = Compact(net.eval(), masks, kept["slots"], kept["steps"])


def as_mark(kept: Sequence[float] | None) -> Mark | None:
    """Return the mark a state holds, if any (files from before there were marks hold none)."""
    return None if kept is None else Mark(*kept)


def unseen(lesson: Lesson, taught: np.ndarray) -> int:
    """Return how many of a batch's labels are not among the slots that were taught."""
    present, count = lesson.counts > 0, min(len(taught), lesson.live)
    known = np.count_nonzero(present[:count] & taught[:count])
    return int(np.count_nonzero(present) - known)


def padded(taught: np.ndarray, live: int) -> np.ndarray:
    """Return which of all live slots were taught."""
    found = np.zeros(live, dtype=bool)
    found[: len(taught)] = taught[:live]
    return found
