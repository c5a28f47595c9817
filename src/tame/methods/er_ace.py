"""Replay with asymmetric cross-entropy: new samples leave the outputs of absent labels alone.

Caccia et al., "New Insights on Reducing Abrupt Representation Change in Online Continual Learning"
(2022). The loss is the sum of two means:

    cross-entropy of the batch, its softmax over the labels present in the batch alone
    cross-entropy of samples from the memory, over all labels

so that samples of new labels do not push those of old ones away. The memory is a reservoir, as in
`er`. It is told nothing.
"""

from typing import ClassVar

import torch
from torch import Tensor

from tame.engine.lesson import Lesson
from tame.engine.losses import Output, sample_losses
from tame.methods.rehearsal import RehearsingLearner
from tame.methods.replay import ReplaySettings


class ERACE(RehearsingLearner[ReplaySettings]):
    """One network and a uniform sample of the stream, with a loss that spares absent labels.

    >>> from tame.types import Batch
    >>> learner = ERACE(net="mlp")
    >>> learner.observe(Batch([[0.0, 1.0]], [5])).expert, learner.predict([[0.0, 1.0]])
    (0, tensor([5]))
    """

    settings_type: ClassVar[type] = ReplaySettings

    def _rehearse(self, lesson: Lesson) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        past, _ = self._replay.draw(lesson)
        judged, trained = self._stepping.forward(lesson, past)
        return judged, asymmetric(trained, lesson, past, self.settings.training.output), ()


def asymmetric(outputs: Tensor, lesson: Lesson, past: Lesson, form: Output) -> Tensor:
    """Return the loss of a batch among its own labels, plus that of samples from the memory."""
    present, target = lesson.target.unique(return_inverse=True)
    new, old = outputs.split([len(lesson), len(past)])
    loss = sample_losses(new[:, present], target, form).mean()
    if not len(past):
        return loss
    return torch.add(loss, sample_losses(old, past.target, form).mean())
