"""The trivial rule: a label never seen before is a shift."""

import math
from dataclasses import dataclass, field
from typing import ClassVar, Self

from tame.types import Reading, State, Verdict


@dataclass
class LabelSet:
    """Alarm on a batch with a label that the expert was never taught, whatever the loss.

    Perfect by construction where every segment brings labels of its own, and blind everywhere
    else: it is here to show which streams give their boundaries away. A label may first come some
    batches into a segment, so the first `burn_in` readings raise no alarm.

    >>> detector = LabelSet(burn_in=1)
    >>> detector.update(Reading(2.3, unseen=2)).shift, detector.update(Reading(9.9)).shift
    (False, False)
    >>> detector.update(Reading(0.1, unseen=1))
    Verdict(shift=True, statistic=1.0, threshold=0.0)
    """

    compares: ClassVar[str] = "unseen labels"

    burn_in: int = 20
    _seen: int = field(init=False, default=0, repr=False)

    def __post_init__(self) -> None:
        if self.burn_in < 1:
            raise ValueError(f"burn_in is 1 or more, not {self.burn_in}")

    def fresh(self) -> Self:
        return type(self)(self.burn_in)

    def accepts(self, reading: Reading) -> bool:
        return not self._judge(reading).shift

    def update(self, reading: Reading) -> Verdict:
        verdict = self._judge(reading)
        if not verdict.shift:
            self._seen = min(self._seen + 1, self.burn_in)
        return verdict

    def rebase(self, readings: list[Reading]) -> None:
        self._seen = self.burn_in if readings else 0

    def state_dict(self) -> State:
        return {"seen": self._seen}

    def load_state_dict(self, state: State) -> None:
        self._seen = state["seen"]

    def _judge(self, reading: Reading) -> Verdict:
        unknown = reading.unseen > 0 and self._seen >= self.burn_in
        broken = not math.isfinite(reading.loss)
        return Verdict(unknown or broken, float(reading.unseen), 0.0)
