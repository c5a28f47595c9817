"""Re-identification: which old expert, if any, already knows a surprising batch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from tame.types import Reading, ShiftDetector


class Candidate(Protocol):
    """What a matcher may know of an expert: its detector."""

    @property
    def detector(self) -> ShiftDetector: ...


@runtime_checkable
class Matcher(Protocol):
    """Picks among experts by how they read a batch."""

    def find(self, candidates: Sequence[Candidate], readings: Sequence[Reading]) -> int | None:
        """Return the position of the expert that knows the batch, or None."""
        ...


@dataclass(frozen=True)
class FirstMatch:
    """The paper's rule: the oldest expert whose own detector accepts the batch."""

    def find(self, candidates: Sequence[Candidate], readings: Sequence[Reading]) -> int | None:
        for position, (expert, reading) in enumerate(zip(candidates, readings, strict=True)):
            if expert.detector.accepts(reading):
                return position
        return None
