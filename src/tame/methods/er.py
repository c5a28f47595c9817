"""Experience replay: every batch is learned together with samples of what came before.

Chaudhry et al., "On Tiny Episodic Memories in Continual Learning" (2019), with the reservoir of
Vitter (1985) as memory: every sample ever seen is equally likely to be in it. A step follows the
gradient of the mean cross-entropy over the batch and as many samples drawn from the memory; then
the batch is offered to the memory. It is told nothing.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from tame.engine.losses import read, sample_losses
from tame.methods.plain import PlainLearner
from tame.methods.replay import Replay, ReplaySettings
from tame.methods.stepping import Stepping, joined
from tame.types import Batch, NetMaker, Observation, Sizes, State


class ER(PlainLearner):
    """One network and a uniform sample of the stream.

    >>> learner = ER(net="mlp")
    >>> learner.observe(Batch([[0.0, 1.0]], [5])).expert, learner.predict([[0.0, 1.0]])
    (0, tensor([5]))
    >>> learner.sizes().samples
    1
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
        losses = sample_losses(trained, joined(lesson, past).target, form)
        self._stepping.backward(losses.mean())
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
