"""A rise of the loss that enough samples agree on, however the losses are distributed."""

import math
from dataclasses import dataclass, field
from typing import ClassVar, Self

from tame.core.detectors.window import Window
from tame.types import Reading, State, Verdict


@dataclass
class Quorum:
    """Alarm when enough samples, in one batch or in several, agree that the loss has risen.

    The level is an exponential average of the losses with weight `smoothing`, which follows a
    learning curve; the spread is the root mean square of what the last `window` losses were away
    from the level of their time, never under `floor` nor under the standard error of a batch's
    mean loss. A batch votes `steepness` votes for each spread by which its loss exceeds level +
    `width` spreads. It has no more votes than samples that carry the rise beyond the first. Those
    that carry it are the square of rise over standard error: k of many samples with the same high
    loss give about k, one outlier gives 1 however high it is, and so no vote. (Nor do outliers in
    one batch after another: one throws a converged network off for the next few.) A batch of one
    sample has one vote. A loss below that line votes against, with no more votes than samples.
    Votes add up, never to less than nothing; above `quorum` they are an alarm.

    So a batch of 32 decides at once where a stream of single samples needs some eight in a row,
    and no single sample decides anything: heavy tails and slow waves of the loss raise no alarm.

    A loss above the line does not enter the spread, and moves the level half as much as one
    on the line: taken as usual, the first losses after a change would hide the change. A level
    that did not move at all would take the crest of a wave for a change.

    >>> detector = Quorum()
    >>> any(detector.update(Reading(1.0, 0.1, 32)).shift for _ in range(100))
    False
    >>> detector.update(Reading(3.0, 2.0, 32)).shift, detector.update(Reading(3.0, 0.2, 32)).shift
    (False, True)
    """

    compares: ClassVar[str] = "votes"

    quorum: float = 7.0
    width: float = 4.0
    steepness: float = 3.0
    smoothing: float = 0.2
    window: int = 100
    floor: float = 0.005
    burn_in: int = 20
    _level: float = field(init=False, default=0.0, repr=False)
    _rises: Window = field(init=False, repr=False, compare=False)
    _errors: Window = field(init=False, repr=False, compare=False)
    _votes: float = field(init=False, default=0.0, repr=False)
    _seen: int = field(init=False, default=0, repr=False)

    def __post_init__(self) -> None:
        if not 0 < self.smoothing <= 1:
            raise ValueError(f"smoothing lies in (0, 1], not {self.smoothing}")
        if self.window < 1 or min(self.quorum, self.width, self.steepness, self.floor) <= 0:
            raise ValueError("window is 1 or more; quorum, width, steepness and floor are positive")
        if self.burn_in < 1:
            raise ValueError(f"burn_in is 1 or more, not {self.burn_in}")
        self._rises, self._errors = Window(self.window), Window(self.window)

    def fresh(self) -> Self:
        told = (self.quorum, self.width, self.steepness, self.smoothing)
        return type(self)(*told, self.window, self.floor, self.burn_in)

    def accepts(self, reading: Reading) -> bool:
        return not self._judge(reading, self._spread()).shift

    def update(self, reading: Reading) -> Verdict:
        spread = self._spread()
        verdict = self._judge(reading, spread)
        if not verdict.shift:
            self._votes = verdict.statistic
            self._learn(reading, spread)
        return verdict

    def rebase(self, readings: list[Reading]) -> None:
        self._rises.clear()
        self._errors.clear()
        self._votes, self._seen = 0.0, self.burn_in if readings else 0
        losses = [reading.loss for reading in readings]
        self._level = math.fsum(losses) / len(losses) if losses else 0.0
        self._rises.extend((loss - self._level) ** 2 for loss in losses)
        self._errors.extend(reading.error**2 for reading in readings)

    def state_dict(self) -> State:
        return {
            "level": self._level,
            "rises": self._rises.values.tolist(),
            "errors": self._errors.values.tolist(),
            "votes": self._votes,
            "seen": self._seen,
        }

    def load_state_dict(self, state: State) -> None:
        self._rises, self._errors = Window(self.window), Window(self.window)
        self._rises.extend(state["rises"])
        self._errors.extend(state["errors"])
        self._level, self._votes, self._seen = state["level"], state["votes"], state["seen"]

    def _judge(self, reading: Reading, spread: float) -> Verdict:
        if not math.isfinite(reading.loss):
            return Verdict(shift=True, statistic=math.inf, threshold=self.quorum)
        if self._seen < self.burn_in:
            return Verdict(shift=False, statistic=0.0, threshold=self.quorum)
        rise = reading.loss - self._level
        votes = self.steepness * (rise / spread - self.width)
        votes = max(-reading.samples, min(votes, _carriers(rise, reading)))
        total = max(0.0, self._votes + votes)
        return Verdict(total > self.quorum, total, self.quorum)

    def _learn(self, reading: Reading, spread: float) -> None:
        if not self._seen:
            self._level = reading.loss
        rise = reading.loss - self._level
        line = self.width * spread if self._seen >= self.burn_in else math.inf
        if rise <= line:
            self._rises.append(rise**2)
            self._errors.append(reading.error**2)
            self._level += self.smoothing * rise
        else:
            self._level += self.smoothing / 2 * line
        self._seen += 1

    def _spread(self) -> float:
        if not len(self._rises):
            return self.floor
        return max(math.sqrt(max(self._rises.mean(), self._errors.mean())), self.floor)


def _carriers(rise: float, reading: Reading) -> float:
    """Return how many samples agree with one another in carrying the rise of the mean."""
    carriers = float(reading.samples)
    if reading.error > 0:
        carriers = min(carriers, (rise / reading.error) ** 2)
    return carriers - 1 + 1 / reading.samples
