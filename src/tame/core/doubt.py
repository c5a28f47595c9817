"""A suspicion: the batches held since an alarm, and how every candidate reads them."""

import math
from collections.abc import Callable
from typing import Self

from tame.core.hindsight import Missed
from tame.core.mark import Fit, Mark
from tame.core.probe import Readings
from tame.core.scene import Scene
from tame.core.waiting import Waiting, restore_waiting
from tame.engine.lesson import Lesson
from tame.types import Reading, State, Verdict

UNKNOWN = Fit(math.inf, math.inf, math.inf, math.inf, learned=False)


class Doubt:
    """Holds batches, and tells who knows them: by all of them together, or by the newest alone.

    Where a change was `missed`, the active expert is judged by losses of before the alarm too;
    `began` is when that was, where it is known.
    """

    def __init__(self, active: int, verdict: Verdict, missed: Missed | None = None) -> None:
        self.active = active
        self.verdict = verdict
        self.held: list[Waiting] = []
        self.missed = missed is not None
        self.began = missed and missed.began
        self.readings: dict[int, list[Reading]] = {active: list(missed.readings if missed else ())}
        self._marks: dict[int, Mark | None] = {}
        self._strange: list[bool] = []  # of what is held: what looks unlike the active expert's

    @property
    def noticed(self) -> int:
        """The step of the alarm."""
        return self.held[0].step

    @property
    def is_strange(self) -> bool:
        """Whether all that is held looks unlike what the active expert learned lately."""
        return all(self._strange)

    def hold(
        self, scene: Scene, batch: Waiting, lesson: Lesson, own: Mark | None, *, strange: bool
    ) -> None:
        """Put a batch with the others and let every candidate read it; trains nothing."""
        self.held.append(batch)
        self._strange.append(strange)
        self._note(self.active, own, batch.reading)
        candidates = scene.pool.candidates(lesson, scene.rank)
        readings = Readings(candidates, lesson, scene.pool.plan, own=True)
        for candidate, reading in zip(candidates, readings, strict=True):
            self._note(candidate.id, candidate.mark, reading)

    def fit(self, number: int) -> Fit:
        """Return how an expert fits all that is held."""
        mark = self._marks[number]
        strange = number == self.active and self.is_strange
        return UNKNOWN if mark is None else mark.fit(*self.readings[number], strange=strange)

    def newest(self, number: int) -> Fit:
        """Return how an expert fits the newest batch."""
        mark = self._marks[number]
        strange = number == self.active and self._strange[-1]
        return UNKNOWN if mark is None else mark.fit(self.readings[number][-1], strange=strange)

    def returned(self, batches: int, foreign: Callable[[int], bool], *, late: bool) -> int | None:
        """Return the inactive expert that is sure to know what is held, the best if several are.

        It knows each of the so many newest batches clearly, one by one, as one may be right by
        chance where the expert of another world happens to know it; or all of them well enough,
        if there is no time for more. To whom they look `foreign`, that is not enough.
        """
        if len(self.held) < batches:
            return None
        sure = [n for n in self._others() if self._is_sure(n, batches)]
        if late:
            sure += [n for n in self._others() if self.fit(n).is_close]
        best = sorted(set(sure), key=lambda number: (self.fit(number).loss, number))
        return next((number for number in best if not foreign(number)), None)

    def speaker(self) -> int:
        """Return who is to answer meanwhile: of those that know what is held, the best."""
        found = [number for number in self.readings if self.fit(number).claims]
        return min(found, key=lambda number: self.fit(number).loss, default=self.active)

    def is_refused(self) -> bool:
        """Say whether every expert clearly refuses what is held."""
        return all(self.fit(number).refuses for number in self.readings)

    def closest(self) -> int:
        """Return the expert that fits best, the active one included."""
        return min(self.readings, key=lambda number: self.fit(number).share)

    def likeliest(self, count: int) -> list[int]:
        """Return the inactive experts that fit best, so many."""
        return sorted(self._others(), key=lambda number: self.fit(number).share)[:count]

    def state_dict(self) -> State:
        return {
            "active": self.active,
            "verdict": list(self.verdict),
            "crept": self.missed,
            "began": self.began,
            "held": [batch._asdict() for batch in self.held],
            "strange": list(self._strange),
            "readings": [
                [number, [list(one) for one in readings]]
                for number, readings in self.readings.items()
            ],
            "marks": [
                [number, None if mark is None else list(mark)]
                for number, mark in self._marks.items()
            ],
        }

    @classmethod
    def restore(cls, state: State) -> Self:
        """Return the doubt that `state_dict` described."""
        doubt = cls(state["active"], Verdict(*state["verdict"]))
        doubt.missed, doubt.began = state["crept"], state.get("began")
        doubt.held = [restore_waiting(kept) for kept in state["held"]]
        doubt._strange = state.get("strange", [False] * len(doubt.held))
        doubt.readings = {
            number: [Reading(*one) for one in kept] for number, kept in state["readings"]
        }
        doubt._marks = {number: kept and Mark(*kept) for number, kept in state["marks"]}
        return doubt

    def _is_sure(self, number: int, batches: int) -> bool:
        mark = self._marks[number]
        newest = self.readings[number][-batches:]
        clear = mark is not None and all(mark.fit(reading).is_clear for reading in newest)
        return clear and len(newest) == batches and self.fit(number).claims

    def _others(self) -> list[int]:
        return [number for number in self.readings if number != self.active]

    def _note(self, number: int, mark: Mark | None, reading: Reading) -> None:
        self.readings.setdefault(number, []).append(reading)
        self._marks[number] = mark
