"""Averaged gradient episodic memory: no step may raise the mean loss on samples of earlier tasks.

Chaudhry, Ranzato, Rohrbach, Elhoseiny, "Efficient Lifelong Learning with A-GEM" (2019). With g the
gradient on the batch and r that on a batch drawn from the memory of earlier tasks (all parameters
as one vector, each sample's softmax over the labels of its own task), the step is taken along

    g                          if g.r >= 0
    g - (g.r / r.r) r          otherwise, which has no component along r

The memory is a ring for every label of every task: the newest sample replaces the oldest.

`form = "original"`: `memory` samples (or `memory_bytes`) in all, the rings having equal shares; the
pass over the memory leaves a network's running statistics alone. `form = "agem-repo"`, what the
authors' code runs: `each` samples a ring, so that memory grows with the tasks, and both passes move
the running statistics.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from torch import Tensor

from tame.engine.lesson import Lesson
from tame.engine.randomness import derive, restore_torch, torch_generator
from tame.methods.rings import Rings, capacity_of
from tame.methods.tasked import Tasked, TaskedLearner, TaskedSettings
from tame.methods.vectors import add_to_gradients, gradients
from tame.types import Batch, Observation, Sizes, State

NUMBERS = 8  # bytes of a sample's slot and task


@dataclass(frozen=True)
class AGEMSettings(TaskedSettings):
    """What can be set about A-GEM.

    `memory` is in samples, unless `memory_bytes` says how many bytes the samples may take;
    `reference` samples, or all if there are fewer, make the gradient a step is compared with. Of
    the form "agem-repo", `each` is how many samples a label of a task keeps (MNIST 25, CIFAR 13).
    """

    form: Literal["original", "agem-repo"] = "original"
    memory: int = 256
    memory_bytes: int = 0
    reference: int = 256
    each: int = 25

    def __post_init__(self) -> None:
        for name in ("memory", "reference", "each"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is 1 or more, not {getattr(self, name)}")


class AGEM(TaskedLearner[AGEMSettings]):
    """One network; a gradient that would hurt the memory of earlier tasks is turned aside.

    >>> from tame.types import Hint
    >>> learner = AGEM(net="mlp")
    >>> _ = learner.observe(Batch([[0.0, 1.0], [1.0, 0.0]], [5, 6]))
    >>> learner.inform(Hint(boundary=True, task=1))
    >>> _ = learner.observe(Batch([[0.0, 1.0]], [7]))
    >>> learner.sizes().samples
    3
    """

    settings_type: ClassVar[type] = AGEMSettings

    def _set_up(self) -> None:
        super()._set_up()
        self._tasked = Tasked(self._single, self.settings.heads)
        self._rings: Rings | None = None
        self._draws = torch_generator(derive(self.seed, "agem", "reference"))

    def observe(self, batch: Batch) -> Observation:
        lesson = self._tasked.admit(batch)
        rings = self._rings = self._rings or self._empty(lesson.raw)
        seen, loss = self._tasked.learn_by(lesson)
        net = self._tasked.stepping.backward(loss)
        places = rings.others(self._tasked.told.task)
        if len(places):
            slope = gradients(net)
            reference = self._reference(lesson, places)
            net.zero_grad(set_to_none=True)
            add_to_gradients(net, projected(slope, reference))
        self._tasked.update()
        rings.add(lesson.raw, lesson.slots, self._tasked.told.task)
        return seen

    def _reference(self, lesson: Lesson, places: Tensor) -> Tensor:
        """Return the gradient of the mean loss on samples of other tasks."""
        assert self._rings is not None  # noqa: S101 (there are places)
        chosen = torch.randperm(len(places), generator=self._draws)[: self.settings.reference]
        raw, slots, tasks = self._rings.rows(places[chosen])
        past = Lesson(raw, slots, lesson.live, lesson.step, self.device)
        kept = [buffer.clone() for buffer in self._tasked.net.buffers()]
        _, outputs = self._tasked.stepping.forward(past)
        known, which = tasks.unique(return_inverse=True)
        allowed = self._tasked.allowed(lesson.live, known.tolist())
        rows = allowed[which] if len(allowed) > 1 else allowed
        losses = self._tasked.losses(outputs, past.target, rows)
        net = self._tasked.stepping.backward(losses.mean())
        if self.settings.form == "original":
            for buffer, before in zip(net.buffers(), kept, strict=True):
                buffer.copy_(before)
        return gradients(net)

    def _finish_task(self) -> None:
        """Do nothing: the samples of the task are in their rings."""

    def _empty(self, raw: Tensor) -> Rings:
        if self.settings.form == "agem-repo":
            return Rings(each=self.settings.each)
        row = raw[:1].nbytes + NUMBERS
        return Rings(capacity_of(self.settings.memory, self.settings.memory_bytes, row))

    def sizes(self) -> Sizes:
        sizes = self._single.sizes()
        if self._rings is None:
            return sizes
        return replace(sizes, sample_bytes=self._rings.nbytes(), samples=len(self._rings))

    def state_dict(self) -> State:
        return {
            "tasked": self._tasked.state_dict(),
            "rings": None if self._rings is None else self._rings.state_dict(),
            "draws": self._draws.get_state(),
        }

    def load_state_dict(self, state: State) -> None:
        self._tasked.load_state_dict(state["tasked"])
        self._rings = None
        if state["rings"] is not None:
            self._rings = self._empty(state["rings"]["x"])
            self._rings.load_state_dict(state["rings"])
        restore_torch(self._draws, state["draws"])


def projected(slope: Tensor, reference: Tensor) -> Tensor:
    """Return a gradient without its component against the reference, if it has one.

    >>> projected(torch.tensor([1.0, -1.0]), torch.tensor([0.0, 2.0]))
    tensor([1., 0.])
    >>> projected(torch.tensor([1.0, 1.0]), torch.tensor([0.0, 2.0]))
    tensor([1., 1.])
    """
    against = (slope @ reference).clamp(max=0)
    length = (reference @ reference).clamp(min=torch.finfo(slope.dtype).tiny)
    return slope - against / length * reference
