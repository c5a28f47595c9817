"""Page-Hinkley: how far the running sum of deviations has climbed above its own minimum."""

import math
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Self

from tame.types import Reading, State, Verdict

CAP = 5.0


class Moments(NamedTuple):
    """Fading mean, variance and squared standard error of the losses so far."""

    mean: float = 0.0
    variance: float = 0.0
    error: float = 0.0


@dataclass
class PageHinkley:
    """Alarm when the sum of (z - allowance) stands more than `threshold` above its minimum.

    z is the loss's distance from the mean of all losses so far, itself included, in deviations of
    all before it. Old losses fade by the factor 1 - `fading` at each reading, so that the mean can
    follow a learning curve; no window is kept. The deviation is never under `floor` nor under the
    fading standard error, and a loss more than five deviations up enters the moments as five.

    >>> detector = PageHinkley()
    >>> any(detector.update(Reading(1.0 + 0.1 * (step % 2))).shift for step in range(200))
    False
    >>> detector.update(Reading(2.0)).shift, detector.update(Reading(2.0)).shift
    (False, True)
    """

    compares: ClassVar[str] = "sum of rises"

    allowance: float = 1.5
    threshold: float = 20.0
    fading: float = 0.01
    floor: float = 0.005
    burn_in: int = 20
    _moments: Moments = field(init=False, default_factory=Moments, repr=False)
    _above: float = field(init=False, default=0.0, repr=False)
    _seen: int = field(init=False, default=0, repr=False)

    def __post_init__(self) -> None:
        if min(self.allowance, self.threshold) <= 0:
            raise ValueError("allowance and threshold are positive")
        if not 0 < self.fading < 1 or self.floor <= 0 or self.burn_in < 1:
            raise ValueError("fading lies in (0, 1), floor is positive, burn_in is 1 or more")

    def fresh(self) -> Self:
        told = (self.allowance, self.threshold, self.fading, self.floor, self.burn_in)
        return type(self)(*told)

    def accepts(self, reading: Reading) -> bool:
        return not self._judge(reading).shift

    def update(self, reading: Reading) -> Verdict:
        verdict = self._judge(reading)
        if not verdict.shift:
            self._above = verdict.statistic
            self._moments = self._moved(reading)
            self._seen += 1
        return verdict

    def rebase(self, readings: list[Reading]) -> None:
        self._moments, self._above, self._seen = Moments(), 0.0, 0
        for reading in readings:
            self._moments = self._moved(reading)
            self._seen += 1
        self._seen = max(self._seen, self.burn_in) if readings else 0

    def state_dict(self) -> State:
        return {"moments": list(self._moments), "above": self._above, "seen": self._seen}

    def load_state_dict(self, state: State) -> None:
        self._moments = Moments(*state["moments"])
        self._above, self._seen = state["above"], state["seen"]

    def _judge(self, reading: Reading) -> Verdict:
        if not math.isfinite(reading.loss):
            return Verdict(shift=True, statistic=math.inf, threshold=self.threshold)
        if self._seen < self.burn_in:
            return Verdict(shift=False, statistic=0.0, threshold=self.threshold)
        z = (reading.loss - self._moved(reading).mean) / self._deviation()
        above = max(0.0, self._above + z - self.allowance)
        return Verdict(above > self.threshold, above, self.threshold)

    def _moved(self, reading: Reading) -> Moments:
        """Return the moments with one loss more (West's update)."""
        weight = max(self.fading, 1 / (self._seen + 1))
        mean, variance, error = self._moments
        away = self._taken(reading) - mean
        variance = (1 - weight) * (variance + weight * away**2)
        return Moments(mean + weight * away, variance, error + weight * (reading.error**2 - error))

    def _taken(self, reading: Reading) -> float:
        """Return the loss, or the highest that enters the moments."""
        if self._seen < self.burn_in:
            return reading.loss
        return min(reading.loss, self._moments.mean + CAP * self._deviation())

    def _deviation(self) -> float:
        return max(math.sqrt(max(self._moments.variance, self._moments.error)), self.floor)
