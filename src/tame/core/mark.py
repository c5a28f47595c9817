"""What losses an expert is used to, and how well other losses fit them."""

import math
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from tame.core.detectors.window import Window
from tame.engine.losses import Output, guessing_loss, least_loss
from tame.types import Reading, State

WINDOW = 30
RECENT = 10
FLOOR = 0.005
ROOM = 0.1  # the least distance between knowing and guessing, for experts of a single label
LEARNED = 0.2
CLOSE, FAR = 4.0, 6.0  # deviations
NEAR, OFF, LOST = 0.1, 0.2, 0.5  # shares of the way from the expert's level to guessing
RAISED = 3.0  # deviations


class Fit(NamedTuple):
    """How losses lie to an expert's own: in deviations, and as a share of the way to guessing.

    `deviations` are those of the expert's own losses; `allowed` are those that can be told from
    what a few samples make of a batch, which may be far fewer. `strange` says that the samples
    look unlike the expert's: then neither is an excuse for a loss that is not near its own.
    """

    loss: float
    deviations: float
    allowed: float
    share: float
    learned: bool
    strange: bool = False

    @property
    def claims(self) -> bool:
        """Whether the expert clearly knows the data."""
        usual = not self.strange and self.share <= LOST and self.deviations <= CLOSE
        return self.learned and (self.share <= NEAR or usual)

    @property
    def is_close(self) -> bool:
        """Whether the expert knows the data well enough to answer for them from now on."""
        return self.claims and self.share <= OFF

    @property
    def is_clear(self) -> bool:
        """Whether one batch is enough to say that the expert knows the data."""
        return self.claims and self.share <= NEAR

    @property
    def refuses(self) -> bool:
        """Whether the expert clearly does not know the data; one that knows nothing refuses all."""
        excused = self.share <= OFF or (not self.strange and self.allowed <= FAR)
        return not self.learned or not excused

    @property
    def has_moved(self) -> bool:
        """Whether losses lie away from the expert's own, of however few samples they are made."""
        return self.share > OFF and self.deviations > FAR

    @property
    def is_raised(self) -> bool:
        """Whether losses lie over the expert's own, if not so far as to say anything alone."""
        return self.learned and self.share > NEAR and self.deviations > RAISED


class Mark(NamedTuple):
    """An expert's level, the spread around it, what guessing costs it and the least possible loss.

    A loss is measured by two rods. Deviations alone would refuse a converged expert's own data
    for a rise nobody minds, and let a young expert, whose losses spread widely, claim any data;
    so a loss far enough on the way to guessing is never claimed, and one close to the level is.

    >>> mark = Mark(0.1, 0.01, 2.3, 0.0)
    >>> mark.fit(Reading(0.2)).claims, mark.fit(Reading(3.0)).refuses
    (True, True)
    """

    level: float
    spread: float
    guess: float
    least: float

    @property
    def learned(self) -> bool:
        """Whether the expert is well under guessing."""
        return self.level < self.guess - LEARNED * (self.guess - self.least)

    def moved(self, readings: Sequence[Reading]) -> Self:
        """Return the mark of an expert that reads its own data like this from now on."""
        losses = np.array([reading.loss for reading in readings])
        return self._replace(level=float(losses.mean()), spread=max(float(losses.std()), FLOOR))

    def fit(self, *readings: Reading, strange: bool = False) -> Fit:
        """Return how batches, taken together, lie to this mark, and whether they look `strange`.

        The more they are, the less they spread; the level itself is known from ten losses only.
        """
        reading = together(readings)
        if not math.isfinite(reading.loss):
            return Fit(math.inf, math.inf, math.inf, math.inf, self.learned, strange)
        above, level = reading.loss - self.level, self.spread / math.sqrt(RECENT)
        spread = self.spread / math.sqrt(len(readings))
        deviations = above / math.hypot(spread, level)
        allowed = above / math.hypot(max(spread, reading.error), level)
        share = above / max(self.guess - self.level, ROOM / 2)
        return Fit(reading.loss, deviations, allowed, share, self.learned, strange)


class Level:
    """The last losses of an expert before it learned from each batch; falling or not.

    The level is the mean of the last ten. The spread is that of successive differences, which a
    learning curve does not widen, but no less than the standard errors say, and robust: the median
    absolute difference.
    """

    def __init__(self, before: Mark | None = None) -> None:
        self._before = before
        self._losses, self._errors = Window(WINDOW), Window(WINDOW)

    def __len__(self) -> int:
        return len(self._losses)

    def add(self, reading: Reading) -> None:
        """Take the loss of a batch the expert then learned from."""
        if math.isfinite(reading.loss):
            self._losses.append(reading.loss)
            self._errors.append(reading.error)

    def readings(self) -> list[Reading]:
        """Return the losses as a detector would be shown them."""
        pairs = zip(self._losses.values.tolist(), self._errors.values.tolist(), strict=True)
        return [Reading(loss, error) for loss, error in pairs]

    def mark(self, counts: np.ndarray, form: Output) -> Mark | None:
        """Return where the expert stands, who has been taught labels so often; None if too young.

        An expert that has come back is known by its old mark until it has taken ten batches.
        """
        if len(self) < RECENT:
            return self._before
        losses, errors = self._losses.values, self._errors.values
        usual = 1.4826 * median(np.abs(losses[1:] - losses[:-1])) / math.sqrt(2)
        error = math.sqrt(float(np.mean(errors**2)))
        least = least_loss(len(counts), form)
        guess = max(guessing_loss(counts, form), least + ROOM)
        level = float(np.mean(losses[-RECENT:]))
        return Mark(level, max(usual, error, FLOOR), guess, least)

    def state_dict(self) -> State:
        return {
            "before": None if self._before is None else list(self._before),
            "losses": self._losses.values.tolist(),
            "errors": self._errors.values.tolist(),
        }

    @classmethod
    def restore(cls, state: State) -> Self:
        """Return the level that `state_dict` described."""
        level = cls(None if state["before"] is None else Mark(*state["before"]))
        level._losses.extend(state["losses"])
        level._errors.extend(state["errors"])
        return level


def median(values: np.ndarray) -> float:
    """Return the median of a few numbers, in a fifth of numpy's time.

    >>> median(np.array([3.0, 1.0, 2.0])), median(np.array([4.0, 1.0]))
    (2.0, 2.5)
    """
    ordered, half = np.sort(values), len(values) // 2
    return float(ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2)


def together(readings: Sequence[Reading]) -> Reading:
    """Return several batches as one.

    >>> together([Reading(1.0, 0.3, 8), Reading(2.0, 0.4, 8)])
    Reading(loss=1.5, error=0.25, samples=16, unseen=0)
    """
    count = sum(reading.samples for reading in readings)
    loss = sum(reading.loss * reading.samples for reading in readings) / count
    error = math.sqrt(sum((reading.error * reading.samples) ** 2 for reading in readings)) / count
    return Reading(loss, error, count, max(reading.unseen for reading in readings))
