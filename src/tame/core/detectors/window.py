"""The last so many numbers, in order and in one piece."""

from collections.abc import Iterable

import numpy as np


class Window:
    """Keeps the last `size` numbers; `values` lists them oldest first.

    They lie in an array twice as long, and move to its front when they reach its end: appending
    costs nothing, and what is computed from them does not depend on where they lie.

    >>> window = Window(2)
    >>> window.extend([1.0, 2.0, 3.0])
    >>> window.values.tolist()
    [2.0, 3.0]
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._room = np.empty(2 * size)
        self._begin = self._end = 0

    def __len__(self) -> int:
        return self._end - self._begin

    @property
    def values(self) -> np.ndarray:
        """The numbers, oldest first (a view: copy what is to be kept)."""
        return self._room[self._begin : self._end]

    def append(self, value: float) -> None:
        """Add a number, dropping the oldest if there is no room."""
        if self._end == len(self._room):
            kept = self.values[1:].copy()
            self._room[: len(kept)] = kept
            self._begin, self._end = 0, len(kept)
        self._room[self._end] = value
        self._end += 1
        self._begin = max(self._begin, self._end - self._size)

    def extend(self, values: Iterable[float]) -> None:
        """Add numbers one by one."""
        for value in values:
            self.append(value)

    def clear(self) -> None:
        """Drop everything."""
        self._begin = self._end = 0

    def mean(self) -> float:
        """Return the mean (NaN of nothing)."""
        count = len(self)
        return float(np.add.reduce(self.values)) / count if count else float("nan")

    def moments(self) -> tuple[float, float]:
        """Return the mean and the variance."""
        mean = self.mean()
        away = self.values - mean
        return mean, float(np.add.reduce(away * away)) / max(1, len(self))
