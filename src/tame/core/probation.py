"""A newcomer on trial, and the experts that watch whether its data are not theirs after all."""

from collections.abc import Callable, Sequence
from typing import Self

from tame.core.mark import Fit, Mark
from tame.core.probe import Readings
from tame.core.scene import Scene
from tame.engine.lesson import Lesson
from tame.types import Reading, State

SMOOTHING = 0.3
NEARER = 0.75


class Probation:
    """Notes which batches in a row each watcher has known, and sees who comes nearer.

    While one world gives way to another that is known, nobody knows the mixture, but the expert
    of the other fits it better and better.

    `noticed` is the step of the alarm, `since` the step the change is dated to.
    """

    def __init__(self, watchers: Sequence[int], since: int, noticed: int) -> None:
        self.since = since
        self.noticed = noticed
        self.batches = 0
        self._known: dict[int, list[Reading]] = {number: [] for number in watchers}
        self._shares: dict[int, tuple[float, float]] = {}  # of each watcher: at first, and now

    @property
    def old(self) -> int:
        """The expert that was left."""
        return next(iter(self._known))

    @property
    def is_contested(self) -> bool:
        """Whether a watcher knew the last batch, or comes nearer to that."""
        nearer = any(now < NEARER * first for first, now in self._shares.values())
        return nearer or any(self._known.values())

    def watch(
        self, scene: Scene, lesson: Lesson, own: Reading, strange: Callable[[], bool]
    ) -> None:
        """Let every watcher read a batch, which the newcomer reads like this; trains nothing.

        `strange` tells whether it looks unlike what the expert that was left had learned.
        """
        self.batches += 1
        watchers = scene.pool.known(list(self._known), lesson.live)
        readings = Readings(watchers, lesson, scene.pool.plan, own=True)
        for watcher, reading in zip(watchers, readings, strict=True):
            if watcher.mark is not None:
                fit = watcher.mark.fit(reading)
                if watcher.id == self.old and fit.claims:
                    fit = fit._replace(strange=strange())
                self._note(watcher.id, watcher.mark, reading, fit, better=reading.loss < own.loss)

    def claimant(self, returns: int) -> int | None:
        """Return the watcher that has known so many batches in a row, if any.

        The longer it takes, the likelier is such a run by chance: it is a third of all at least.
        """
        least = max(returns, self.batches // 3)
        found = [number for number, known in self._known.items() if len(known) >= least]
        return found[0] if found else None

    def _note(self, number: int, mark: Mark, reading: Reading, fit: Fit, *, better: bool) -> None:
        known = [*self._known[number], reading]
        knows = better and fit.claims and mark.fit(*known).claims
        self._known[number] = known if knows else []
        first, now = self._shares.get(number, (fit.share, fit.share))
        now += SMOOTHING * (fit.share - now)
        self._shares[number] = (max(first, now), now)

    def state_dict(self) -> State:
        return {
            "since": self.since,
            "noticed": self.noticed,
            "batches": self.batches,
            "known": [[number, [list(r) for r in known]] for number, known in self._known.items()],
            "shares": [[number, *pair] for number, pair in self._shares.items()],
        }

    @classmethod
    def restore(cls, state: State) -> Self:
        """Return the probation that `state_dict` described."""
        probation = cls([], state["since"], state["noticed"])
        probation.batches = state["batches"]
        probation._known = {
            number: [Reading(*one) for one in known] for number, known in state["known"]
        }
        probation._shares = {number: (first, now) for number, first, now in state["shares"]}
        return probation
