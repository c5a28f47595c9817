"""A single network's training step, taken apart for methods that change gradients or losses."""

from contextlib import nullcontext

import torch
from torch import Tensor, nn

from tame.engine.eager import EagerStep
from tame.engine.fitting import set_rate
from tame.engine.lesson import Lesson
from tame.methods.single import SingleNetwork


class Stepping:
    """Runs a network forward on a batch, fills its gradients, and then updates it.

    The three are for the method to put together, in this order.
    """

    def __init__(self, single: SingleNetwork) -> None:
        self._single = single

    @property
    def net(self) -> nn.Module:
        """The network itself."""
        return self._single.built.net

    @property
    def rate(self) -> float:
        """The rate of the step to come."""
        network = self._single.built
        return float(network.plan.training.rate_at(network.steps) * 0.5**network.restarts)

    def forward(self, lesson: Lesson, *more: Lesson) -> tuple[Tensor, Tensor]:
        """Return the outputs of a batch as it is judged, and those to train by, with their graph.

        Further batches are trained with the first, their outputs behind its own.
        """
        step = self._single.built.open()
        whole = joined(lesson, *more)
        if step.measures_by_training:
            trained = self._train(step, whole)
            return trained[: len(lesson)].detach(), trained
        with torch.no_grad():
            judged = step.outputs(lesson.ready, lesson.live, training=False)
        return judged, self._train(step, whole)

    def backward(self, loss: Tensor) -> nn.Module:
        """Fill the gradients with those of a loss, and return the network."""
        self.net.zero_grad(set_to_none=True)
        loss.backward()
        return self.net

    def update(self) -> None:
        """Change the weights by their gradients, at the rate of this step, and count it."""
        network = self._single.built
        set_rate(network.optimiser, self.rate)
        network.open().update()
        network.steps += 1
        self._single.steps += 1

    def _train(self, step: EagerStep, lesson: Lesson) -> Tensor:
        odds = self._single.odds(len(lesson))
        x = lesson.ready if odds is None else lesson.changed(step.manner.augment, odds)
        training = step.manner.one_faced or len(lesson) > 1  # no statistics of one sample
        with step.draws or nullcontext():
            return step.outputs(x, lesson.live, training=training)


def joined(lesson: Lesson, *more: Lesson) -> Lesson:
    """Return one batch of several."""
    if not more:
        return lesson
    raw = torch.cat([part.raw.to(lesson.raw.device) for part in (lesson, *more)])
    slots = torch.cat([part.slots for part in (lesson, *more)])
    return Lesson(raw, slots, lesson.live, lesson.step, lesson.device)
