"""Dark experience replay: the memory keeps what the network answered, to be answered still.

Buzzega et al., "Dark Experience for General Continual Learning: a Strong, Simple Baseline" (2020),
the variant DER++. With z' the outputs kept with samples x', and (x'', y'') a second draw,

    loss = CE(x, y) + alpha * mean (outputs(x') - z')^2 + beta * CE(x'', y'')

Outputs are kept as they were in the training pass in which the sample entered the memory, a
reservoir as in `er`. Labels first seen later have no kept output and take no part in the second
term. It is told nothing.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from tame.engine.lesson import Lesson
from tame.engine.losses import sample_losses
from tame.methods.rehearsal import RehearsingLearner
from tame.methods.replay import ReplaySettings

OUTPUTS = 2  # the column of the memory that holds them


@dataclass(frozen=True)
class DERppSettings(ReplaySettings):
    """What can be set about dark experience replay: the weights of its two terms."""

    alpha: float = 0.5
    beta: float = 0.5


class DERpp(RehearsingLearner[DERppSettings]):
    """One network and a uniform sample of the stream, with the outputs of its time.

    >>> from tame.types import Batch
    >>> learner = DERpp(net="mlp")
    >>> learner.observe(Batch([[0.0, 1.0]], [5])).expert, learner.predict([[0.0, 1.0]])
    (0, tensor([5]))
    """

    settings_type: ClassVar[type] = DERppSettings

    def _rehearse(self, lesson: Lesson) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        form = self.settings.training.output
        self._replay.widen(OUTPUTS, self._single.built.slots, fill=0.0)
        past, kept = self._replay.draw(lesson)
        again, _ = self._replay.draw(lesson)
        judged, trained = self._stepping.forward(lesson, past, again)
        new, old, twice = trained.split([len(lesson), len(past), len(again)])
        loss = sample_losses(new, lesson.target, form).mean()
        if len(past):
            loss = loss + self.settings.alpha * likeness(old, *kept)
            loss = loss + self.settings.beta * sample_losses(twice, again.target, form).mean()
        return judged, loss, self._answers(new.detach())

    def _answers(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return outputs with room for every slot, and how many of them count."""
        count, live = outputs.shape
        wide = outputs.new_zeros(count, self._single.built.slots)
        wide[:, :live] = outputs
        return wide, torch.full((count,), live)


def likeness(outputs: Tensor, kept: Tensor, live: Tensor) -> Tensor:
    """Return the mean squared distance to kept outputs, over the slots that were live for each.

    >>> likeness(torch.ones(1, 3), torch.tensor([[1.0, 3.0, 0.0, 0.0]]), torch.tensor([2]))
    tensor(2.)
    """
    kept = kept.to(outputs.device)[:, : outputs.shape[1]]
    counts = torch.arange(outputs.shape[1]) < live.cpu()[:, None]
    away = (outputs - kept).square() * counts.to(outputs.device)
    return away.sum() / counts.sum().to(outputs.device)
