"""What an expert's losses usually are: mean and deviation over a window, with floors."""

import math

from tame.core.detectors.window import Window
from tame.types import Reading, State

CAP = 5.0


class Baseline:
    """Tells how many deviations a loss lies above the recent mean.

    The deviation is the window's own, but never under `floor`, nor under the root mean square of
    the standard errors of the losses in it. It is not ready before it has seen `burn_in` losses;
    from then on a loss more than five deviations up enters as five, so that the first losses after
    a step do not hide it.

    >>> usual = Baseline(window=100, floor=0.5, burn_in=2)
    >>> usual.add(Reading(1.0)), usual.add(Reading(1.0)), usual.is_ready
    (None, None, True)
    >>> usual.standardised(Reading(2.0))
    2.0
    """

    def __init__(self, window: int, floor: float, burn_in: int) -> None:
        if window < 1 or floor <= 0 or burn_in < 1:
            raise ValueError("window and burn_in are 1 or more, floor is positive")
        self._floor = floor
        self._burn_in = burn_in
        self._losses, self._errors = Window(window), Window(window)
        self._window = window
        self._seen = 0

    @property
    def is_ready(self) -> bool:
        """Whether it has seen enough to judge."""
        return self._seen >= self._burn_in

    def standardised(self, reading: Reading) -> float:
        """Return the loss in deviations above the mean."""
        mean, deviation = self._moments()
        return (reading.loss - mean) / deviation

    def add(self, reading: Reading) -> None:
        """Take an ordinary reading."""
        loss = reading.loss
        if self.is_ready:
            mean, deviation = self._moments()
            loss = min(loss, mean + CAP * deviation)
        self._losses.append(loss)
        self._errors.append(reading.error**2)
        self._seen = min(self._seen + 1, self._burn_in)

    def rebase(self, readings: list[Reading]) -> None:
        """Forget everything and take these readings instead; they end the burn-in."""
        self._losses.clear()
        self._errors.clear()
        self._losses.extend(reading.loss for reading in readings)
        self._errors.extend(reading.error**2 for reading in readings)
        self._seen = self._burn_in if readings else 0

    def state_dict(self) -> State:
        return {
            "losses": self._losses.values.tolist(),
            "errors": self._errors.values.tolist(),
            "seen": self._seen,
        }

    def load_state_dict(self, state: State) -> None:
        self._losses, self._errors = Window(self._window), Window(self._window)
        self._losses.extend(state["losses"])
        self._errors.extend(state["errors"])
        self._seen = state["seen"]

    def _moments(self) -> tuple[float, float]:
        mean, variance = self._losses.moments()
        return mean, max(math.sqrt(max(variance, self._errors.mean())), self._floor)
