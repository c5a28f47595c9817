"""A newcomer on trial, and the experts that watch whether its data are not theirs after all."""

from collections.abc import Sequence
from typing import Self

from tame.core.probe import Readings
from tame.core.scene import Scene
from tame.engine.lesson import Lesson
from tame.types import State


class Probation:
    """Counts how many batches in a row each watcher has known.

    `noticed` is the step of the alarm, `since` the step the change is dated to.
    """

    def __init__(self, watchers: Sequence[int], since: int, noticed: int) -> None:
        self.since = since
        self.noticed = noticed
        self.batches = 0
        self.streaks = dict.fromkeys(watchers, 0)

    @property
    def is_contested(self) -> bool:
        """Whether a watcher knew the last batch."""
        return any(self.streaks.values())

    def watch(self, scene: Scene, lesson: Lesson) -> None:
        """Let every watcher read a batch; trains nothing."""
        self.batches += 1
        watchers = scene.pool.known(list(self.streaks), lesson.live)
        readings = Readings(watchers, lesson, scene.pool.plan)
        for watcher, reading in zip(watchers, readings, strict=True):
            knows = watcher.mark is not None and watcher.mark.fit(reading).claims
            self.streaks[watcher.id] = self.streaks[watcher.id] + 1 if knows else 0

    def claimant(self, returns: int) -> int | None:
        """Return the watcher that has known so many batches in a row, if any."""
        longest = max(self.streaks, key=lambda number: self.streaks[number])
        return longest if self.streaks[longest] >= returns else None

    def state_dict(self) -> State:
        return {
            "since": self.since,
            "noticed": self.noticed,
            "batches": self.batches,
            "streaks": [list(pair) for pair in self.streaks.items()],
        }

    @classmethod
    def restore(cls, state: State) -> Self:
        """Return the probation that `state_dict` described."""
        probation = cls([], state["since"], state["noticed"])
        probation.batches = state["batches"]
        probation.streaks = dict(state["streaks"])
        return probation
