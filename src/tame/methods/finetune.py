"""Fine-tuning: one network trained on whatever comes. The lower bound: it forgets."""

import math
from typing import ClassVar

from tame.methods.plain import PlainLearner
from tame.methods.single import SingleSettings
from tame.types import Batch, Observation, Sizes, State


class FineTune(PlainLearner[SingleSettings]):
    """Plain training on the stream, with no defence against forgetting.

    >>> learner = FineTune(net="mlp")
    >>> learner.observe(Batch([[0.0, 1.0]], [5])).expert, learner.predict([[0.0, 1.0]])
    (0, tensor([5]))
    """

    settings_type: ClassVar[type] = SingleSettings

    def observe(self, batch: Batch) -> Observation:
        step = self._single.steps
        reading = self._single.learn(self._single.admit(batch))
        return Observation(step, reading.loss, math.nan, math.nan, 0)

    def sizes(self) -> Sizes:
        return self._single.sizes()

    def state_dict(self) -> State:
        return self._single.state_dict()

    def load_state_dict(self, state: State) -> None:
        self._single.load_state_dict(state)
