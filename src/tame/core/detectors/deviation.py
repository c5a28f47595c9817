"""The paper's rule: the smoothed loss against mean plus three deviations of recent losses."""

import math
from dataclasses import dataclass, field
from typing import ClassVar, Self

from tame.core.detectors.window import Window
from tame.types import Reading, State, Verdict


@dataclass
class Deviation:
    """Alarm when the smoothed loss (L_s) exceeds mean + width * spread over a window (W_th).

    The window holds raw losses, the smoothed loss is an exponential average with weight
    `smoothing` (alpha) on the newest. The spread is the window's standard deviation, but never
    under `floor`, nor under the standard error of a batch's mean loss as the samples' own losses
    tell it, averaged over the window: a converged expert has almost no deviation, and small batches
    are noisy. Nor is it under what the standard error of the batch at hand brings into the smoothed
    loss (`smoothing` times it): a rise that a sample or two carry alone is no shift. The first
    `burn_in` readings raise no alarm.

    A loss above the threshold that raises no alarm yet enters the window as the threshold itself:
    taken as it is, the first losses after a moderate step would widen the spread faster than the
    smoothed loss can climb, and hide the step for good.

    Departure from the printed algorithm: its line 11 stores a loss that raises an alarm in L_s, so
    that the expert is refused when its segment returns. Here such a loss changes nothing at all.

    >>> detector = Deviation()
    >>> any(detector.update(Reading(1.0)).shift for _ in range(100))
    False
    >>> detector.update(Reading(3.0)).shift, detector.accepts(Reading(1.0))
    (True, True)
    """

    compares: ClassVar[str] = "smoothed loss"

    smoothing: float = 0.2
    window: int = 100
    width: float = 3.0
    floor: float = 0.005
    burn_in: int = 20
    _losses: Window = field(init=False, repr=False, compare=False)
    _errors: Window = field(init=False, repr=False, compare=False)
    _smoothed: float | None = field(init=False, default=None, repr=False)
    _seen: int = field(init=False, default=0, repr=False)

    def __post_init__(self) -> None:
        if not 0 < self.smoothing <= 1:
            raise ValueError(f"smoothing lies in (0, 1], not {self.smoothing}")
        if self.window < 1 or self.width <= 0 or self.floor < 0 or self.burn_in < 0:
            raise ValueError("window is 1 or more, width positive, floor and burn_in not negative")
        self._losses, self._errors = Window(self.window), Window(self.window)

    def fresh(self) -> Self:
        return type(self)(self.smoothing, self.window, self.width, self.floor, self.burn_in)

    def accepts(self, reading: Reading) -> bool:
        return not self._judge(reading).shift

    def update(self, reading: Reading) -> Verdict:
        verdict = self._judge(reading)
        if not verdict.shift:
            ready = self._seen >= self.burn_in
            self._losses.append(min(reading.loss, verdict.threshold) if ready else reading.loss)
            self._errors.append(reading.error**2)
            self._smoothed = verdict.statistic
            self._seen += 1
        return verdict

    def rebase(self, readings: list[Reading]) -> None:
        self._losses.clear()
        self._errors.clear()
        self._losses.extend(reading.loss for reading in readings)
        self._errors.extend(reading.error**2 for reading in readings)
        self._smoothed = self._losses.mean() if readings else None
        self._seen = self.burn_in if readings else 0

    def state_dict(self) -> State:
        return {
            "losses": self._losses.values.tolist(),
            "errors": self._errors.values.tolist(),
            "smoothed": self._smoothed,
            "seen": self._seen,
        }

    def load_state_dict(self, state: State) -> None:
        self._losses, self._errors = Window(self.window), Window(self.window)
        self._losses.extend(state["losses"])
        self._errors.extend(state["errors"])
        self._smoothed = state["smoothed"]
        self._seen = state["seen"]

    def _judge(self, reading: Reading) -> Verdict:
        if not math.isfinite(reading.loss):
            return Verdict(shift=True, statistic=math.inf, threshold=self._threshold())
        old = reading.loss if self._smoothed is None else self._smoothed
        smoothed = self.smoothing * reading.loss + (1 - self.smoothing) * old
        threshold = self._threshold(self.smoothing * reading.error)
        return Verdict(self._seen >= self.burn_in and smoothed > threshold, smoothed, threshold)

    def _threshold(self, least: float = 0.0) -> float:
        if not len(self._losses):
            return math.nan
        mean, variance = self._losses.moments()
        usual = math.sqrt(self._errors.mean())
        spread = max(math.sqrt(variance), self.floor, usual, least)
        return mean + self.width * spread
