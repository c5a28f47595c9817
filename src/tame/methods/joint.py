"""Joint training: keeps every sample and trains on all of them at once. The upper bound."""

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from tame.engine.fitting import Job, Samples, fit
from tame.engine.randomness import derive, torch_generator
from tame.engine.recipe import Recipe
from tame.methods.plain import PlainLearner
from tame.methods.single import SingleNetwork, SingleSettings, label_hash
from tame.types import (
    ArrayLike,
    Batch,
    Consolidation,
    Observation,
    Progress,
    Sizes,
    State,
    When,
    silent,
)

AT_ONCE = 10_000  # samples: what a digest multiplies takes eight times their bytes


@dataclass(frozen=True)
class JointSettings(SingleSettings):
    """A single network's settings, and how it is trained on everything at the end."""

    recipe: Recipe = field(default_factory=lambda: Recipe(epochs=20, rate=0.02, weight_decay=5e-4))


class Joint(PlainLearner[JointSettings]):
    """Stores each distinct sample once; `consolidate` trains a fresh network on them all.

    Until then it answers like plain fine-tuning. Its memory grows with the stream.

    >>> learner = Joint(net="mlp")
    >>> for _ in range(2):
    ...     _ = learner.observe(Batch([[0.0, 1.0], [1.0, 0.0]], [5, 6]))
    >>> learner.sizes().samples
    2
    """

    unbounded: ClassVar[bool] = True
    settings_type: ClassVar[type] = JointSettings

    def _set_up(self) -> None:
        self._single = SingleNetwork(self.net, self.seed, self.settings, self.device)
        self._store: list[tuple[Tensor, Tensor]] = []
        self._known: set[int] = set()  # digests of what is stored: one look-up a sample
        self._joint: nn.Module | None = None
        self._fitted = (0, 0)

    def observe(self, batch: Batch) -> Observation:
        step = self._single.steps
        lesson = self._single.admit(batch)
        reading = self._single.learn(lesson)
        self._keep(lesson.raw, lesson.slots)
        return Observation(step, reading.loss, math.nan, math.nan, 0)

    def consolidate(self, progress: Progress = silent) -> Consolidation:
        """Train a fresh network on everything stored, unless nothing new came."""
        now = (len(self._known), len(self._single.intake.labels))
        if now != self._fitted and self._store:
            net = self._build(now)
            x, slots = (torch.cat(column) for column in zip(*self._store, strict=True))
            step = self._single.intake.ready
            samples = Samples(x, slots, step.prepare, now[1]).to(self.device)
            generator = torch_generator(derive(self.seed, "joint", *now))
            recipe = replace(self.settings.recipe, output=self.settings.training.output)
            fit([Job(net, samples, generator)], recipe, _named(progress))
            self._joint, self._fitted = net, now
        return Consolidation(experts=0, sizes=self.sizes())

    def predict(self, x: ArrayLike, when: When = "ever") -> Tensor:  # noqa: ARG002 (one network)
        if self._joint is None:
            return self._single.predict(x)
        return self._single.predict(x, self._joint, self._fitted[1])

    def log_probabilities(self, x: ArrayLike) -> tuple[Tensor, Tensor]:
        """Return how likely each label is for each sample, and the label of each column."""
        taught = None if self._joint is None else self._fitted[1]
        return self._single.log_probabilities(x, self._joint, taught)

    def sizes(self) -> Sizes:
        sizes = self._single.sizes(self._joint)
        kept = sum(x.nbytes + slots.nbytes for x, slots in self._store)
        return replace(sizes, sample_bytes=kept, samples=len(self._known))

    def state_dict(self) -> State:
        return {
            "single": self._single.state_dict(),
            "store": [torch.cat(column) for column in zip(*self._store, strict=True)],
            "joint": None if self._joint is None else dict(self._joint.state_dict()),
            "fitted": list(self._fitted),
        }

    def load_state_dict(self, state: State) -> None:
        self._single.load_state_dict(state["single"])
        self._store = [(state["store"][0], state["store"][1])] if state["store"] else []
        parts = (
            part
            for x, slots in self._store
            for part in zip(x.split(AT_ONCE), slots.split(AT_ONCE), strict=True)
        )
        self._known = {digest for part in parts for digest in label_hash(*part).tolist()}
        self._fitted = (state["fitted"][0], state["fitted"][1])
        self._joint = None
        if state["joint"] is not None:
            self._joint = self._build(self._fitted)
            self._joint.load_state_dict(state["joint"])

    def _build(self, on: tuple[int, int]) -> nn.Module:
        """Return an untrained network for so many samples of so many labels."""
        slots = self.settings.slots
        while slots < on[1]:
            slots *= 2
        return self._single.plan().build(slots, "joint", *on)

    def _keep(self, raw: Tensor, slots: Tensor) -> None:
        new = []
        for position, digest in enumerate(label_hash(raw, slots).tolist()):
            if digest not in self._known:
                self._known.add(digest)
                new.append(position)
        if new:
            chosen = torch.tensor(new)
            self._store.append((raw[chosen.to(raw.device)], slots[chosen]))


def _named(progress: Progress) -> Progress:
    return lambda _, done, total: progress("training on everything", done, total)
