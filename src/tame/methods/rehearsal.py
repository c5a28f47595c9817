"""What the methods that repeat a uniform sample of the stream have in common."""

from abc import abstractmethod
from dataclasses import replace
from math import nan

from torch import Tensor

from tame.engine.lesson import Lesson
from tame.engine.losses import read, sample_losses
from tame.methods.plain import PlainLearner, S
from tame.methods.replay import Replay
from tame.methods.stepping import Stepping
from tame.types import Batch, Observation, Sizes, State


class RehearsingLearner(PlainLearner[S]):
    """One network and a memory; which loss it follows on both is for the method to say."""

    def _set_up(self) -> None:
        super()._set_up()
        self._stepping = Stepping(self._single)
        self._replay = Replay(self.settings, self.seed)

    def observe(self, batch: Batch) -> Observation:
        step, form = self._single.steps, self.settings.training.output
        lesson = self._single.admit(batch)
        judged, loss, kept = self._rehearse(lesson)
        reading = read(sample_losses(judged, lesson.target, form))
        self._stepping.backward(loss)
        self._stepping.update()
        self._replay.add(lesson, *kept)
        return Observation(step, reading.loss, nan, nan, 0)

    @abstractmethod
    def _rehearse(self, lesson: Lesson) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        """Return the batch's outputs as they are judged, the loss, and what is kept with it."""

    def sizes(self) -> Sizes:
        held, count = self._replay.nbytes(), len(self._replay)
        return replace(self._single.sizes(), sample_bytes=held, samples=count)

    def state_dict(self) -> State:
        return {"single": self._single.state_dict(), "replay": self._replay.state_dict()}

    def load_state_dict(self, state: State) -> None:
        self._single.load_state_dict(state["single"])
        self._replay.load_state_dict(state["replay"])
