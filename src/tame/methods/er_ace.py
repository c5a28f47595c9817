"""Replay with asymmetric cross-entropy: new samples leave the outputs of absent labels alone.

Caccia et al., "New Insights on Reducing Abrupt Representation Change in Online Continual Learning"
(2022). The loss is the sum of two means:

    cross-entropy of the batch, its softmax over the labels present in the batch alone
    cross-entropy of samples from the memory, over all labels

so that samples of new labels do not push those of old ones away. The memory is a reservoir, as in
`er`. It is told nothing.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from tame.engine.lesson import Lesson
from tame.engine.losses import Output, read, sample_losses
from tame.methods.plain import PlainLearner
from tame.methods.replay import Replay, ReplaySettings
from tame.methods.stepping import Stepping
from tame.types import Batch, NetMaker, Observation, Sizes, State


class ERACE(PlainLearner):
    """One network and a uniform sample of the stream, with a loss that spares absent labels.

    >>> learner = ERACE(net="mlp")
    >>> learner.observe(Batch([[0.0, 1.0]], [5])).expert, learner.predict([[0.0, 1.0]])
    (0, tensor([5]))
    """

    settings_type: ClassVar[type] = ReplaySettings
    settings: ReplaySettings

    def __init__(
        self,
        net: str | Mapping[str, Any] | NetMaker = "lenet",
        seed: int = 0,
        settings: ReplaySettings | None = None,
        device: str = "cpu",
    ) -> None:
        self._begin(net, seed, settings or ReplaySettings(), device)
        self._stepping = Stepping(self._single)
        self._replay = Replay(self.settings, seed)

    def observe(self, batch: Batch) -> Observation:
        step, form = self._single.steps, self.settings.training.output
        lesson = self._single.admit(batch)
        past, _ = self._replay.draw(lesson)
        judged, trained = self._stepping.forward(lesson, past)
        reading = read(sample_losses(judged, lesson.target, form))
        self._stepping.backward(asymmetric(trained, lesson, past, form))
        self._stepping.update()
        self._replay.add(lesson)
        return Observation(step, reading.loss, math.nan, math.nan, 0)

    def sizes(self) -> Sizes:
        held, count = self._replay.nbytes(), len(self._replay)
        return replace(self._single.sizes(), sample_bytes=held, samples=count)

    def state_dict(self) -> State:
        return {"single": self._single.state_dict(), "replay": self._replay.state_dict()}

    def load_state_dict(self, state: State) -> None:
        self._single.load_state_dict(state["single"])
        self._replay.load_state_dict(state["replay"])


def asymmetric(outputs: Tensor, lesson: Lesson, past: Lesson, form: Output) -> Tensor:
    """Return the loss of a batch among its own labels, plus that of samples from the memory."""
    present, target = lesson.target.unique(return_inverse=True)
    new, old = outputs.split([len(lesson), len(past)])
    loss = sample_losses(new[:, present], target, form).mean()
    if not len(past):
        return loss
    return torch.add(loss, sample_losses(old, past.target, form).mean())
