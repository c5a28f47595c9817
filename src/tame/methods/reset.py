"""One network that is thrown away at every alarm: the usual answer to drift in data streams."""

from dataclasses import dataclass
from typing import Any, ClassVar

from tame.config import part
from tame.core.detectors.page_hinkley import PageHinkley
from tame.methods.plain import PlainLearner
from tame.methods.single import SingleSettings
from tame.registry import DETECTORS
from tame.types import Batch, Change, Observation, Sizes, State


@dataclass(frozen=True)
class ResetSettings(SingleSettings):
    """One network, and the detector whose alarm ends it."""

    detector: Any = part(DETECTORS, PageHinkley)


class Reset(PlainLearner[ResetSettings]):
    """Trains one network until its detector raises an alarm, then begins with a new one.

    It keeps nothing of what was before: good where meanings change and never return. Each network
    counts as an expert of its own (`expert` in what it says), but there is never more than one.

    >>> learner = Reset(net="mlp")
    >>> learner.observe(Batch([[0.0, 1.0]], [5])).expert, learner.predict([[0.0, 1.0]])
    (0, tensor([5]))
    """

    settings_type: ClassVar[type] = ResetSettings

    def _set_up(self) -> None:
        super()._set_up()
        self._detector = self.settings.detector.fresh()
        self._resets = 0

    def observe(self, batch: Batch) -> Observation:
        step, single = self._single.steps, self._single
        lesson = single.admit(batch)
        reading = single.built.measure(lesson)
        verdict = self._detector.update(reading)
        if verdict.shift:
            single.begin_anew()
            self._detector = self._detector.fresh()
            self._resets += 1
            self._detector.update(single.built.measure(lesson))
        single.learn(lesson)
        change = Change.RECRUITED if verdict.shift else Change.NONE
        told = (step, reading.loss, verdict.statistic, verdict.threshold, self._resets)
        return Observation(*told, change, step if verdict.shift else None)

    def sizes(self) -> Sizes:
        return self._single.sizes()

    def state_dict(self) -> State:
        return {
            "single": self._single.state_dict(),
            "detector": self._detector.state_dict(),
            "resets": self._resets,
        }

    def load_state_dict(self, state: State) -> None:
        self._single.load_state_dict(state["single"])
        self._detector = self.settings.detector.fresh()
        self._detector.load_state_dict(state["detector"])
        self._resets = state["resets"]
