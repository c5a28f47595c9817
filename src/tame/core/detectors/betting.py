"""Sequential betting: an alarm whose rarity is promised, under conditions that are stated."""

import math
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Self

import numpy as np

from tame.core.detectors.window import Window
from tame.types import Reading, State, Verdict

STAKES = (0.1, 0.3, 0.6, 0.9, 0.98)
FIRST, LONGEST = 32, 512
HIGH = 0.98
REACH = 3.0


class Ramp(NamedTuple):
    """Turns a loss into a score from 0 (at `foot` or below) to 1 (at `foot` + `length`)."""

    foot: float
    length: float

    def score(self, loss: float) -> float:
        """Return the score of a loss."""
        return min(1.0, max(0.0, (loss - self.foot) / self.length))


@dataclass
class Betting:
    """Bet that losses rise; alarm when the winnings reach `false_alarms_every` (A).

    The promise: while the expected score of each new batch, given the past, is no higher than its
    average over the last complete block plus `tolerance`, the mean number of batches to a false
    alarm is at least (1 - `error`) A, and one comes within t batches with probability at most
    `error` + t / A. Nothing else is assumed of the losses, no bound and no moments. There is no
    promise for correlated batches, repeated passes or drift; `docs/detection.md` has the argument.

    A batch's score x rises from 0 to 1 along a ramp fixed before it came. Blocks of 32, 64, ...,
    512 batches measure the level m: an upper confidence bound of the average expected score. Each
    of five bettors (`STAKES` c) multiplies its money by 1 + c (x / m - 1), a fair or losing game
    under the condition, and gets 1 a batch to bet with (Shiryaev-Roberts); their mean is judged.

    >>> detector = Betting(false_alarms_every=1000)
    >>> any(detector.update(Reading(1.0 + 0.1 * (step % 7))).shift for step in range(300))
    False
    >>> [detector.update(Reading(9.0)).shift for _ in range(3)]
    [False, False, True]
    """

    compares: ClassVar[str] = "winnings"

    false_alarms_every: float = 100_000.0
    error: float = 0.05
    tolerance: float = 0.005
    floor: float = 0.005
    burn_in: int = 20
    _block: Window = field(init=False, repr=False, compare=False)
    _errors: float = field(init=False, default=0.0, repr=False)
    _size: int = field(init=False, default=0, repr=False)
    _blocks: int = field(init=False, default=0, repr=False)
    _ramp: Ramp | None = field(init=False, default=None, repr=False)
    _used: Ramp | None = field(init=False, default=None, repr=False)
    _level: float = field(init=False, default=1.0, repr=False)
    _money: list[float] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.false_alarms_every < 1 or not 0 < self.error < 1:
            raise ValueError("false_alarms_every is 1 or more, error lies in (0, 1)")
        if not 0 <= self.tolerance < 1 or self.floor <= 0 or self.burn_in < 1:
            raise ValueError("tolerance lies in [0, 1), floor is positive, burn_in is 1 or more")
        self._clear()

    def fresh(self) -> Self:
        told = (self.false_alarms_every, self.error, self.tolerance, self.floor, self.burn_in)
        return type(self)(*told)

    def accepts(self, reading: Reading) -> bool:
        return not self._judge(reading).shift

    def update(self, reading: Reading) -> Verdict:
        verdict = self._judge(reading)
        if not verdict.shift:
            self._money = self._bets(reading.loss)
            self._learn(reading)
        return verdict

    def rebase(self, readings: list[Reading]) -> None:
        """Lay the ramp by some of the readings and measure the level by the rest."""
        self._clear()
        some = min(self.burn_in, (len(readings) + 1) // 2)
        for part in (readings[:some], readings[some:]):
            self._size = min(len(part), LONGEST)
            for reading in part:
                self._learn(reading)
        self._size = FIRST if readings else self.burn_in

    def state_dict(self) -> State:
        return {
            "block": self._block.values.tolist(),
            "errors": self._errors,
            "size": self._size,
            "blocks": self._blocks,
            "ramp": list(self._ramp or ()),
            "used": list(self._used or ()),
            "level": self._level,
            "money": list(self._money),
        }

    def load_state_dict(self, state: State) -> None:
        self._clear()
        self._block.extend(state["block"])
        self._errors, self._size, self._blocks = state["errors"], state["size"], state["blocks"]
        self._ramp = Ramp(*state["ramp"]) if state["ramp"] else None
        self._used = Ramp(*state["used"]) if state["used"] else None
        self._level, self._money = state["level"], list(state["money"])

    def _clear(self) -> None:
        self._block = Window(max(LONGEST, self.burn_in))
        self._errors, self._size, self._blocks = 0.0, self.burn_in, 0
        self._ramp, self._used, self._level = None, None, 1.0
        self._money = [0.0] * len(STAKES)

    def _judge(self, reading: Reading) -> Verdict:
        if not math.isfinite(reading.loss):
            return Verdict(shift=True, statistic=math.inf, threshold=self.false_alarms_every)
        wealth = math.fsum(self._bets(reading.loss)) / len(STAKES)
        return Verdict(wealth >= self.false_alarms_every, wealth, self.false_alarms_every)

    def _bets(self, loss: float) -> list[float]:
        """Return what each bettor has after this loss."""
        if self._used is None:
            return self._money
        gain = self._used.score(loss) / self._level - 1
        return [(m + 1) * (1 + c * gain) for m, c in zip(self._money, STAKES, strict=True)]

    def _learn(self, reading: Reading) -> None:
        self._block.append(reading.loss)
        self._errors += reading.error**2
        if len(self._block) < self._size:
            return
        if self._ramp is not None:
            self._measure(self._ramp)
        self._ramp = self._laid()
        self._size = min(LONGEST, FIRST << self._blocks)
        self._errors = 0.0
        self._block.clear()

    def _measure(self, ramp: Ramp) -> None:
        """Take the block just ended as the level to bet against, on the ramp laid before it."""
        self._blocks += 1
        scores = np.array([ramp.score(loss) for loss in self._block.values.tolist()])
        risk = self.error / (self._blocks * (self._blocks + 1))
        self._level = min(1.0, upper_bound(scores, risk) + self.tolerance)
        self._used = ramp

    def _laid(self) -> Ramp:
        """Lay the next ramp from the high losses of the block that just ended upwards."""
        median, high = np.quantile(self._block.values, [0.5, HIGH], method="higher").tolist()
        usual = math.sqrt(self._errors / len(self._block))
        return Ramp(high, REACH * max(high - median, usual, self.floor))


def upper_bound(scores: np.ndarray, risk: float) -> float:
    """Return what the average expected score exceeds with probability at most `risk`.

    Scores lie in [0, 1] and may depend on those before them. For each c in `STAKES`, the product
    of (1 - c x) / (1 - c mu), mu the expected score given the past, has mean 1; by Jensen's
    inequality the average of log(1 - c mu) is at most log(1 - c average mu). So Markov's inequality
    bounds the average, and the best c is taken at its share of the risk.

    >>> round(upper_bound(np.zeros(100), 0.01), 3)
    0.061
    """
    share = math.log(risk / len(STAKES))
    found = 1.0
    for stake in STAKES:
        total = share + math.fsum(np.log1p(-stake * scores).tolist())
        found = min(found, -math.expm1(total / len(scores)) / stake)
    return found
