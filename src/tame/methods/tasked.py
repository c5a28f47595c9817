"""One network that is told its tasks: the labels of other tasks take no part in its answers."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tame.core.settings import Training
from tame.engine.lesson import Lesson
from tame.engine.losses import read
from tame.methods.plain import PlainLearner, S
from tame.methods.single import SingleNetwork, SingleSettings
from tame.methods.stepping import Stepping
from tame.methods.told import Told, check_hint, masked
from tame.types import ArrayLike, Batch, Hint, Hints, Observation, State

PLAIN = Training(rate=0.1, momentum=0.0, nesterov=False, weight_decay=0.0)


@dataclass(frozen=True)
class TaskedSettings(SingleSettings):
    """A single network's settings, trained by plain SGD, and how its outputs divide among tasks.

    Under `heads` "task" the outputs of labels that no sample of the task has had are masked, in
    training and in testing; "shared" masks none, for tasks that have all labels in common.
    """

    training: Training = field(default_factory=lambda: PLAIN)
    heads: Literal["task", "shared"] = "task"


class Tasked:
    """A network, what it was told, and the masks that follow from it."""

    def __init__(self, single: SingleNetwork, heads: str) -> None:
        self.single = single
        self.stepping = Stepping(single)
        self.told = Told()
        self.age = 0  # batches learned since the present task began
        self._heads = heads

    @property
    def net(self) -> nn.Module:
        """The network itself."""
        return self.single.built.net

    def ends(self, hint: Hint) -> bool:
        """Say whether a task of which something was learned ends with this hint."""
        check_hint(hint)
        return bool(hint.boundary) and self.age > 0

    def hear(self, hint: Hint) -> None:
        """Take what is told before the next batch."""
        self.told.hear(hint)
        if hint.boundary:
            self.age = 0

    def admit(self, batch: Batch) -> Lesson:
        """Check the batch and note its labels as the present task's."""
        lesson = self.single.admit(batch)
        self.told.see(lesson.slots)
        return lesson

    def learn_by(self, lesson: Lesson) -> tuple[Observation, Tensor]:
        """Return the record of a batch, and its mean loss to train by."""
        allowed = self.allowed(lesson.live)
        judged, trained = self.stepping.forward(lesson)
        reading = read(self.losses(judged, lesson.target, allowed))
        seen = Observation(self.single.steps, reading.loss, math.nan, math.nan, 0)
        return seen, self.losses(trained, lesson.target, allowed).mean()

    def update(self) -> None:
        """Change the weights by their gradients."""
        self.stepping.update()
        self.age += 1

    def losses(self, outputs: Tensor, target: Tensor, allowed: Tensor) -> Tensor:
        """Return the cross-entropy of each sample among the labels allowed to it."""
        return F.cross_entropy(self.scores(outputs, allowed), target, reduction="none")

    def scores(self, outputs: Tensor, allowed: Tensor) -> Tensor:
        """Return what the softmax takes."""
        squash = self.single.settings.training.output == "sigmoid"
        return masked(torch.sigmoid(outputs) if squash else outputs, allowed)

    def allowed(self, live: int, tasks: Sequence[int] | None = None) -> Tensor:
        """Return which labels the present task has, or a row for each of some tasks."""
        if self._heads == "shared":
            return torch.ones(1, live, dtype=torch.bool)
        return self.told.allowed([self.told.task] if tasks is None else tasks, live)

    def predict_told(self, x: ArrayLike, hint: Hint) -> Tensor:
        """Return labels of the task that is told."""
        check_hint(hint)
        if hint.task is None:
            return self.single.predict(x)
        allowed = self.allowed(len(self.single.intake.labels), [hint.task])
        return self.single.predict(x, allowed=allowed)

    def state_dict(self) -> State:
        return {
            "single": self.single.state_dict(),
            "told": self.told.state_dict(),
            "age": self.age,
        }

    def load_state_dict(self, state: State) -> None:
        self.single.load_state_dict(state["single"])
        self.told.load_state_dict(state["told"])
        self.age = state["age"]


class TaskedLearner(PlainLearner[S]):
    """What the methods that are told their tasks, in training and in testing, do alike."""

    hints: ClassVar[Hints] = Hints.BOUNDARY | Hints.TRAIN_TASK | Hints.TEST_TASK
    _tasked: Tasked

    def inform(self, hint: Hint) -> None:
        """Finish the task that ends, if one does, and take the number of the one that begins."""
        if self._tasked.ends(hint):
            self._finish_task()
        self._tasked.hear(hint)

    def predict_told(self, x: ArrayLike, hint: Hint) -> Tensor:
        """Return labels of the task that is told; changes nothing."""
        return self._tasked.predict_told(x, hint)

    @abstractmethod
    def _finish_task(self) -> None:
        """Take from the task that ends what protects it."""
