"""Whether a batch is like those a task has shown: several statistics, each judged both ways."""

from collections import deque
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import NamedTuple

from tame.types import State

FLOOR = 1e-3


class Range(NamedTuple):
    """How far back a task remembers, from how many batches on it judges, and how strictly."""

    window: int = 100
    warmup: int = 20
    width: float = 5.0


class Typicality:
    """The statistics of a task's recent batches, each as its mean and deviation.

    A batch is typical if every statistic lies within `width` deviations of its mean, above or
    below: a density can give strange samples more likelihood than its own. A deviation counts as
    no less than a thousandth of the mean's size.

    >>> typical = Typicality(Range(window=4, warmup=2, width=3.0))
    >>> for value in (1.0, 2.0, 3.0):
    ...     typical.add([value])
    >>> typical.accepts([4.9]), typical.accepts([5.1]), typical.accepts([-1.1])
    (True, False, False)
    """

    def __init__(self, given: Range) -> None:
        self._range = given
        self._recent: deque[list[float]] = deque(maxlen=given.window)

    def accepts(self, statistics: Sequence[float]) -> bool:
        """Say whether a batch is typical; while too few were seen, any is."""
        if not self.is_settled:
            return True
        return all(
            self._is_near(value, seen)
            for value, seen in zip(statistics, zip(*self._recent, strict=True), strict=True)
        )

    @property
    def is_settled(self) -> bool:
        """Whether enough batches were seen to judge by."""
        return len(self._recent) >= self._range.warmup

    def add(self, statistics: Sequence[float]) -> None:
        """Remember a batch as the task's own."""
        self._recent.append(list(statistics))

    def state_dict(self) -> State:
        return {"recent": [list(row) for row in self._recent]}

    def load_state_dict(self, state: State) -> None:
        self._recent = deque((list(row) for row in state["recent"]), maxlen=self._range.window)

    def _is_near(self, value: float, seen: Sequence[float]) -> bool:
        mean = fmean(seen)
        spread = max(stdev(seen), FLOOR * abs(mean))
        return abs(value - mean) < self._range.width * spread
