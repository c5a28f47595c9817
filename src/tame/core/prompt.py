"""The paper's conduct: an alarm is a change, and what it leads to is done at once and for good."""

from tame.core.expert import Expert
from tame.core.pool import ExpertPool
from tame.core.scene import Closing, Scene
from tame.core.selector import Selector
from tame.core.waiting import Waiting, put_aside
from tame.engine.lesson import Lesson
from tame.types import Change, Observation, State


class Prompt:
    """Switches to an expert the matcher names, or recruits; decides nothing later.

    A batch is remembered while the device measures the next one, or before anyone looks.
    """

    def __init__(self) -> None:
        self._last: Waiting | None = None  # learned, and yet to be remembered

    def meet(self, scene: Scene, lesson: Lesson) -> Observation:
        """Judge a batch by the active expert's loss, then let the right expert learn from it."""
        pool, change, aside = scene.pool, Change.NONE, list[Waiting]()
        expert = pool.active

        def tidy() -> None:
            self.catch_up(scene)
            if not scene.gathers:
                aside.append(put_aside(scene.step, lesson))

        reading = expert.measure(lesson, meanwhile=tidy)
        verdict = expert.detector.update(reading)
        if verdict.shift:
            known = pool.familiar(lesson, scene.rank)
            expert = pool.recruit() if known is None else pool.switch(known)
            expert.detector.update(expert.measure(lesson))
            change = Change.RECRUITED if known is None else Change.SWITCHED
        restarted = expert.train(lesson)
        if aside:
            self._last = aside[0]._replace(owner=expert.id)
        else:
            scene.store(lesson, expert.id)
        since = None if change is Change.NONE else scene.step
        told = (scene.step, reading.loss, verdict.statistic, verdict.threshold, expert.id, change)
        return Observation(*told, since, restarted)

    def catch_up(self, scene: Scene) -> None:
        last, self._last = self._last, None
        if last is not None:
            scene.store(scene.lesson(last.raw, last.slots), last.owner)

    def close(self, scene: Scene) -> Closing:
        self.catch_up(scene)
        return Closing({})

    def speaker(self, pool: ExpertPool) -> Expert:
        return pool.active

    def preview(self, selector: Selector) -> Selector:
        return selector

    def weigh(self) -> tuple[int, int, int]:
        return 0, 0, 0

    def state_dict(self) -> State:
        """There is no state but what `catch_up` has done."""
        return {}

    def load_state_dict(self, state: State) -> None:
        """There is no state."""
