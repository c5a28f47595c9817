"""Dark experience replay: the memory keeps what the network answered, to be answered still.

Buzzega et al., "Dark Experience for General Continual Learning: a Strong, Simple Baseline" (2020),
the variant DER++. With z' the outputs kept with samples x', and (x'', y'') a second draw,

    loss = CE(x, y) + alpha * mean (outputs(x') - z')^2 + beta * CE(x'', y'')

Outputs are kept as they were in the training pass in which the sample entered the memory, a
reservoir as in `er`. Labels first seen later have no kept output and take no part in the second
term. It is told nothing.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from tame.engine.losses import read, sample_losses
from tame.methods.plain import PlainLearner
from tame.methods.replay import Replay, ReplaySettings
from tame.methods.stepping import Stepping
from tame.types import Batch, NetMaker, Observation, Sizes, State

OUTPUTS = 2  # the column of the memory that holds them


@dataclass(frozen=True)
class DERppSettings(ReplaySettings):
    """What can be set about dark experience replay: the weights of its two terms."""

    alpha: float = 0.5
    beta: float = 0.5


class DERpp(PlainLearner):
    """One network and a uniform sample of the stream, with the outputs of its time.

    >>> learner = DERpp(net="mlp")
    >>> learner.observe(Batch([[0.0, 1.0]], [5])).expert, learner.predict([[0.0, 1.0]])
    (0, tensor([5]))
    """

    settings_type: ClassVar[type] = DERppSettings
    settings: DERppSettings

    def __init__(
        self,
        net: str | Mapping[str, Any] | NetMaker = "lenet",
        seed: int = 0,
        settings: DERppSettings | None = None,
        device: str = "cpu",
    ) -> None:
        self._begin(net, seed, settings or DERppSettings(), device)
        self._stepping = Stepping(self._single)
        self._replay = Replay(self.settings, seed)

    def observe(self, batch: Batch) -> Observation:
        step, form = self._single.steps, self.settings.training.output
        lesson = self._single.admit(batch)
        self._replay.widen(OUTPUTS, self._single.built.slots, fill=0.0)
        past, kept = self._replay.draw(lesson)
        again, _ = self._replay.draw(lesson)
        judged, trained = self._stepping.forward(lesson, past, again)
        reading = read(sample_losses(judged, lesson.target, form))
        new, old, twice = trained.split([len(lesson), len(past), len(again)])
        loss = sample_losses(new, lesson.target, form).mean()
        if len(past):
            loss = loss + self.settings.alpha * likeness(old, *kept)
            loss = loss + self.settings.beta * sample_losses(twice, again.target, form).mean()
        self._stepping.backward(loss)
        self._stepping.update()
        self._replay.add(lesson, *self._answers(new.detach()))
        return Observation(step, reading.loss, math.nan, math.nan, 0)

    def _answers(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return outputs with room for every slot, and how many of them count."""
        count, live = outputs.shape
        wide = outputs.new_zeros(count, self._single.built.slots)
        wide[:, :live] = outputs
        return wide, torch.full((count,), live)

    def sizes(self) -> Sizes:
        held, count = self._replay.nbytes(), len(self._replay)
        return replace(self._single.sizes(), sample_bytes=held, samples=count)

    def state_dict(self) -> State:
        return {"single": self._single.state_dict(), "replay": self._replay.state_dict()}

    def load_state_dict(self, state: State) -> None:
        self._single.load_state_dict(state["single"])
        self._replay.load_state_dict(state["replay"])


def likeness(outputs: Tensor, kept: Tensor, live: Tensor) -> Tensor:
    """Return the mean squared distance to kept outputs, over the slots that were live for each.

    >>> likeness(torch.ones(1, 3), torch.tensor([[1.0, 3.0, 0.0, 0.0]]), torch.tensor([2]))
    tensor(2.)
    """
    kept = kept.to(outputs.device)[:, : outputs.shape[1]]
    counts = torch.arange(outputs.shape[1]) < live.cpu()[:, None]
    away = (outputs - kept).square() * counts.to(outputs.device)
    return away.sum() / counts.sum().to(outputs.device)
