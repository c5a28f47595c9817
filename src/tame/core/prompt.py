"""The paper's conduct: an alarm is a change, and what it leads to is done at once and for good."""

from tame.core.scene import Closing, Scene
from tame.core.selector import Selector
from tame.engine.lesson import Lesson
from tame.types import Change, Observation, State


class Prompt:
    """Switches to an expert the matcher names, or recruits; keeps nothing open."""

    def meet(self, scene: Scene, lesson: Lesson) -> Observation:
        """Judge a batch by the active expert's loss, then let the right expert learn from it."""
        pool, change = scene.pool, Change.NONE
        expert = pool.active
        reading = expert.measure(lesson)
        verdict = expert.detector.update(reading)
        if verdict.shift:
            known = pool.familiar(lesson, scene.rank)
            expert = pool.recruit() if known is None else pool.switch(known)
            expert.detector.update(expert.measure(lesson))
            change = Change.RECRUITED if known is None else Change.SWITCHED
        restarted = expert.learn(lesson)
        scene.remember(lesson, expert.id)
        since = None if change is Change.NONE else scene.step
        told = (scene.step, reading.loss, verdict.statistic, verdict.threshold, expert.id, change)
        return Observation(*told, since, restarted)

    def close(self, scene: Scene) -> Closing:  # noqa: ARG002 (nothing is open)
        return Closing({})

    def preview(self, selector: Selector) -> Selector:
        return selector

    def weigh(self) -> tuple[int, int, int]:
        return 0, 0, 0

    def state_dict(self) -> State:
        return {}

    def load_state_dict(self, state: State) -> None:
        """There is no state."""
