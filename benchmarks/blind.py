"""A detector that looks at nothing: what boundaries drawn at random, or none, are worth."""

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from tame.types import Reading, State, Verdict


@dataclass
class Blind:
    """Alarm by chance, once in `every` batches on average (0: never), and accept nothing.

    >>> detector = Blind(every=0)
    >>> detector.update(Reading(9.9)).shift, detector.accepts(Reading(0.0))
    (False, False)
    """

    every: int = 0
    seed: int = 0
    _draws: np.random.Generator = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._draws = np.random.default_rng(self.seed)

    def fresh(self) -> Self:
        return type(self)(self.every, int(self._draws.integers(2**31)))

    def accepts(self, reading: Reading) -> bool:  # noqa: ARG002 (it looks at nothing)
        return False

    def update(self, reading: Reading) -> Verdict:  # noqa: ARG002
        alarm = bool(self.every) and float(self._draws.random()) * self.every < 1
        return Verdict(alarm, float(alarm), 0.5)

    def rebase(self, readings: list[Reading]) -> None:
        """Nothing it has seen counts."""

    def state_dict(self) -> State:
        return {"draws": self._draws.bit_generator.state}

    def load_state_dict(self, state: State) -> None:
        self._draws.bit_generator.state = state["draws"]
