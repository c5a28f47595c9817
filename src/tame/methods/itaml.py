"""iTAML: one network pulled together from task-specific steps, and adapted to the task it infers.

Rajasegaran, Khan, Hayat, Khan, Shah, "iTAML: An Incremental Task-Agnostic Meta-learning Approach"
(CVPR 2020). Each batch is joined by samples from memory. For every task i present in the two, r
inner steps from the same weights W on that task's samples, with binary cross-entropy on the task's
own outputs alone, give W_i; then

    W <- a * mean_i W_i + (1 - a) * W,    a = exp(-beta * t / T)

with t the number of earlier tasks and T how many there will be. To predict, the task is the one
whose largest output is highest, on average over a group of samples known to share it; a copy of
the network is adapted to that task's memory for an epoch, and answers within the task's labels.

The public code does not go back to W between the inner tasks (`restore = false`): a batch with t
tasks takes t steps in a row, and on MNIST a rate of 0.1 with momentum 0.9 may diverge at the fifth.
Its authors halve the rate there; `rates` gives each task its own.

Where the paper mixes the whole memory into each epoch, this learner sees a stream: as many samples
as the batch has (or `replay`) are drawn from the memory of earlier tasks. Running statistics of
batch norm and momentum pass through all inner steps; momentum and schedule begin anew with each
task.
"""

import copy
import math
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tame.core.inputs import Inputs
from tame.core.settings import Training
from tame.engine.fitting import set_rate
from tame.engine.lesson import Lesson
from tame.engine.randomness import PrivateDraws, derive, restore_torch, torch_generator
from tame.methods.exemplars import Exemplars
from tame.methods.method import Method
from tame.methods.single import CHUNK, SingleNetwork
from tame.methods.told import Told, check_hint
from tame.methods.vectors import pieces, shapes, weights
from tame.types import (
    ArrayLike,
    Batch,
    Hint,
    Hints,
    Observation,
    Sizes,
    State,
    When,
)

HIDDEN = float("-inf")


@dataclass(frozen=True)
class ITAMLSettings:
    """What can be set about iTAML.

    `memory` samples are kept in all, the first of each class; `replay` of them join a batch (0: as
    many as it has). `inner` is r; `adaptation_rate` that of Adam in the one epoch before answering.
    `rates` are those of the tasks in the order they come, the last of them also for all later
    ones; empty: `training.rate` for all.
    """

    slots: int = 10
    inputs: Inputs = field(default_factory=Inputs)
    training: Training = field(
        default_factory=lambda: Training(
            rate=0.1, nesterov=False, weight_decay=1e-3, clip=0.0, precision="float32"
        )
    )
    memory: int = 2000
    replay: int = 0
    beta: float = 0.5
    inner: int = 1
    restore: bool = True
    rates: tuple[float, ...] = ()
    adaptation_rate: float = 1e-3
    adaptation_batch: int = 64

    def __post_init__(self) -> None:
        for name in ("memory", "inner", "adaptation_batch"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is 1 or more, not {getattr(self, name)}")

    def rate_at(self, place: int, step: int) -> float:
        """Return the learning rate of a step of the task at this place.

        >>> ITAMLSettings(rates=(0.1, 0.05)).rate_at(4, step=0)
        0.05
        """
        if not self.rates:
            return self.training.rate_at(step)
        rate = self.rates[min(place, len(self.rates) - 1)]
        return replace(self.training, rate=rate).rate_at(step)


class ITAML(Method[ITAMLSettings]):
    """One network, meta-trained over tasks; it is told the task in training, groups in testing.

    >>> learner = ITAML(net="mlp")
    >>> learner.observe(Batch([[0.0, 1.0]], [5])).expert, learner.predict([[0.0, 1.0]])
    (0, tensor([5]))
    """

    hints: ClassVar[Hints] = Hints.TRAIN_TASK | Hints.TASK_COUNT | Hints.TEST_GROUP
    settings_type: ClassVar[type] = ITAMLSettings

    def _set_up(self) -> None:
        self._single = SingleNetwork(self.net, self.seed, self.settings, self.device)
        self._told = Told()
        self._tasks = 0
        self._memory = Exemplars(self.settings.memory)
        self._draws = torch_generator(derive(self.seed, "itaml", "replay"))
        self._adapted: dict[int, nn.Module] = {}

    def inform(self, hint: Hint) -> None:
        before = self._told.task
        self._told.hear(hint)
        self._tasks = hint.tasks or self._tasks
        if self._told.task != before and self._single.network is not None:
            self._single.built.optimiser.state.clear()
            self._single.built.steps = 0

    def observe(self, batch: Batch) -> Observation:
        step = self._single.steps
        lesson = self._single.admit(batch)
        self._adapted = {}
        self._told.see(lesson.slots)
        reading = self._single.built.measure(lesson, keep=False)
        self._learn(lesson)
        self._memory.add(lesson.raw.cpu(), lesson.slots, self._told.task)
        self._single.steps += 1
        return Observation(step, reading.loss, math.nan, math.nan, 0)

    def predict(self, x: ArrayLike, when: When = "ever") -> Tensor:
        """Return labels, each sample a group of its own; `now` stays in the task told last."""
        if when == "ever":
            return self._answer(x, 1)
        ready = self._single.intake.check_inputs(x)
        if self._single.network is None or not len(ready):
            return torch.full((len(ready),), -1, device=self.device)
        return self._within(ready, self._told.task, self._single.built.net)

    def predict_told(self, x: ArrayLike, hint: Hint) -> Tensor:
        check_hint(hint)
        return self._answer(x, hint.group or 1)

    def sizes(self) -> Sizes:
        samples = {"sample_bytes": self._memory.nbytes(), "samples": len(self._memory)}
        return replace(self._single.sizes(), **samples)

    def state_dict(self) -> State:
        return {
            "single": self._single.state_dict(),
            "told": self._told.state_dict(),
            "tasks": self._tasks,
            "memory": self._memory.state_dict(),
            "replay": self._draws.get_state(),
        }

    def load_state_dict(self, state: State) -> None:
        self._single.load_state_dict(state["single"])
        self._told.load_state_dict(state["told"])
        self._tasks = state["tasks"]
        self._memory.load_state_dict(state["memory"])
        restore_torch(self._draws, state["replay"])
        self._adapted = {}

    def _learn(self, lesson: Lesson) -> None:
        """Step from the same weights for each task present, then go part of the way to the mean."""
        network = self._single.built
        x, slots, tasks = self._mixed(lesson)
        present = tasks.unique().tolist()
        set_rate(network.optimiser, self.settings.rate_at(self._earlier(), network.steps))
        base = weights(network.net)
        found = torch.zeros_like(base)
        for number, task in enumerate(present):
            if self.settings.restore and number:
                _put(network.net, base)
            rows = (tasks == task).to(x.device)
            for _ in range(self.settings.inner):
                self._inner(x[rows], slots[rows], task)
            found += weights(network.net)
        mean = found / len(present) if self.settings.restore else weights(network.net)
        _put(network.net, torch.lerp(base, mean, self.pull()))
        network.steps += 1

    def pull(self) -> float:
        """Return how far the weights go towards the tasks' own: a of the rule above."""
        earlier = self._earlier()
        return math.exp(-self.settings.beta * earlier / max(self._tasks, earlier + 1))

    def _earlier(self) -> int:
        """Return how many tasks came before the present one."""
        known = self._memory.tasks()
        return known.index(self._told.task) if self._told.task in known else len(known)

    def _mixed(self, lesson: Lesson) -> tuple[Tensor, Tensor, Tensor]:
        """Return a batch and its share of memory: inputs, slots, and the task of each sample."""
        count = self.settings.replay or len(lesson)
        old_x, old_slots, old_tasks = self._memory.draw(count, self._told.task, self._draws)
        raw, slots = lesson.raw.cpu(), lesson.slots
        tasks = torch.full((len(lesson),), self._told.task)
        if len(old_slots):
            raw, slots = torch.cat([raw, old_x]), torch.cat([slots, old_slots])
            tasks = torch.cat([tasks, old_tasks])
        augment, odds = self.settings.inputs.augment, None
        if augment is not None:
            odds = torch.rand(augment.numbers, len(raw), generator=self._draws).to(self.device)
        x = self._single.intake.ready.prepare(raw.to(self.device), augment, odds)
        return x, slots.to(self.device), tasks

    def _inner(self, x: Tensor, slots: Tensor, task: int) -> None:
        step, live = self._single.built.open(), len(self._single.intake.labels)
        with step.draws or nullcontext():
            outputs = step.outputs(x, live, training=step.manner.one_faced or len(x) > 1)
        step.backward(task_losses(outputs, slots, self._labels_of(task)))
        step.update()

    def _labels_of(self, task: int) -> Tensor:
        return self._told.allowed([task], len(self._single.intake.labels))[0].to(self.device)

    @torch.no_grad()
    def _answer(self, x: ArrayLike, group: int) -> Tensor:
        x = self._single.intake.check_inputs(x)
        if self._single.network is None or not len(x):
            return torch.full((len(x),), -1, device=self.device)
        chosen = self._infer(x, group)
        found = torch.empty(len(x), dtype=torch.int64, device=self.device)
        for task in chosen.unique().tolist():
            rows = chosen == task
            found[rows] = self._within(x[rows], task, self._adapt(task))
        return found

    def _infer(self, x: Tensor, group: int) -> Tensor:
        """Return the task of each sample: that of the highest mean of largest outputs."""
        tasks, step = self._memory.tasks(), self._single.intake.ready
        net, live = self._single.built.net.eval(), len(self._single.intake.labels)
        outputs = torch.cat([net(step(part))[:, :live] for part in x.split(CHUNK)])
        masks = [self._labels_of(task) for task in tasks]
        best = torch.stack([outputs.masked_fill(~m, HIDDEN).max(1).values for m in masks], 1)
        means = torch.cat(
            [part.mean(0, keepdim=True).expand_as(part) for part in best.split(group)]
        )
        return torch.tensor(tasks, device=self.device)[means.argmax(1)]

    @torch.no_grad()
    def _within(self, x: Tensor, task: int, net: nn.Module) -> Tensor:
        """Return the best of a task's labels for each sample."""
        step, mask = self._single.intake.ready, self._labels_of(task)
        net.eval()
        parts = [net(step(part))[:, : len(mask)] for part in x.split(CHUNK)]
        slots = torch.cat(parts).masked_fill(~mask, HIDDEN).argmax(1)
        return self._single.intake.labels.labels().to(self.device)[slots]

    def _adapt(self, task: int) -> nn.Module:
        """Return a copy trained on a task's memory for one epoch; made once between two batches."""
        if task not in self._adapted:
            seed = derive(self.seed, "itaml", "adapt", task, self._single.steps)
            net = copy.deepcopy(self._single.built.net)
            with torch.enable_grad(), PrivateDraws(seed, self.device):
                self._rehearse(net, task, seed)
            self._adapted[task] = net.eval()
        return self._adapted[task]

    def _rehearse(self, net: nn.Module, task: int, seed: int) -> None:
        x, slots = self._memory.of(task)
        mask, step = self._labels_of(task), self._single.intake.ready
        optimiser = torch.optim.Adam(net.parameters(), lr=self.settings.adaptation_rate)
        order = torch.randperm(len(slots), generator=torch_generator(seed))
        for rows in order.split(self.settings.adaptation_batch):
            net.train(self._single.plan().faces.one or len(rows) > 1)
            outputs = net(step(x[rows].to(self.device)))[:, : len(mask)]
            optimiser.zero_grad(set_to_none=True)
            task_losses(outputs, slots[rows].to(self.device), mask).mean().backward()
            optimiser.step()


def task_losses(outputs: Tensor, slots: Tensor, mask: Tensor) -> Tensor:
    """Return each sample's binary cross-entropy over the outputs of its task, their mean.

    >>> task_losses(torch.zeros(1, 3), torch.tensor([2]), torch.tensor([True, False, True]))
    tensor([0.6931])
    """
    wanted = F.one_hot(slots, len(mask)).to(outputs.dtype)
    losses = F.binary_cross_entropy_with_logits(outputs, wanted, reduction="none")
    return losses[:, mask].mean(1)


@torch.no_grad()
def _put(net: nn.Module, vector: Tensor) -> None:
    for parameter, piece in zip(net.parameters(), pieces(vector, shapes(net)), strict=True):
        parameter.copy_(piece)
