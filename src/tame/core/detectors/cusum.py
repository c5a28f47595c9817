"""Cumulative sums: small rises that last add up, one large value does not decide."""

import math
from dataclasses import dataclass, field
from typing import ClassVar, Self

from tame.core.detectors.baseline import Baseline
from tame.types import Reading, State, Verdict


@dataclass
class Cusum:
    """Alarm when S = max(0, S + z - allowance) exceeds `threshold` (Page's one-sided chart).

    z is the loss in deviations above the mean of the last `window` losses, not counting itself;
    the deviation has the floors of the paper's rule (see `Baseline`). A step of d deviations is
    noticed after about threshold / (d - allowance) readings. The textbook's allowance 0.5 and
    threshold 5 presume a known mean and normal noise; the defaults here are wider, since neither
    holds for losses.

    >>> detector = Cusum(burn_in=2, allowance=1.0, threshold=5.0)
    >>> any(detector.update(Reading(1.0 + 0.1 * (step % 2))).shift for step in range(100))
    False
    >>> [detector.update(Reading(1.2)).shift for _ in range(4)]
    [False, False, True, True]
    """

    compares: ClassVar[str] = "sum of rises"

    allowance: float = 1.5
    threshold: float = 20.0
    window: int = 100
    floor: float = 0.005
    burn_in: int = 20
    _sum: float = field(init=False, default=0.0, repr=False)
    _usual: Baseline = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if min(self.allowance, self.threshold) <= 0:
            raise ValueError("allowance and threshold are positive")
        self._usual = Baseline(self.window, self.floor, self.burn_in)

    def fresh(self) -> Self:
        told = (self.allowance, self.threshold, self.window, self.floor, self.burn_in)
        return type(self)(*told)

    def accepts(self, reading: Reading) -> bool:
        return not self._judge(reading).shift

    def update(self, reading: Reading) -> Verdict:
        verdict = self._judge(reading)
        if not verdict.shift:
            self._sum = verdict.statistic
            self._usual.add(reading)
        return verdict

    def rebase(self, readings: list[Reading]) -> None:
        self._sum = 0.0
        self._usual.rebase(readings)

    def state_dict(self) -> State:
        return {"sum": self._sum, **self._usual.state_dict()}

    def load_state_dict(self, state: State) -> None:
        self._sum = state["sum"]
        self._usual.load_state_dict(state)

    def _judge(self, reading: Reading) -> Verdict:
        if not math.isfinite(reading.loss):
            return Verdict(shift=True, statistic=math.inf, threshold=self.threshold)
        if not self._usual.is_ready:
            return Verdict(shift=False, statistic=0.0, threshold=self.threshold)
        z = self._usual.standardised(reading)
        total = max(0.0, self._sum + z - self.allowance)
        return Verdict(total > self.threshold, total, self.threshold)
