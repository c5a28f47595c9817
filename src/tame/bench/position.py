"""Where a run stands, as its checkpoint remembers it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tame.bench.course import Followed

PHASES = ("stream", "consolidate", "evaluate")


@dataclass
class Position:
    """Where a run stands: its phase, the next batch, the length of its events, seconds spent.

    `followed` is what an accuracy matrix holds so far, where the run keeps one; `merged` tells
    which experts went into which others at the end, `budget` what a budget refused or thinned.
    """

    phase: str = "stream"
    step: int = 0
    events: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PHASES, 0.0))
    attempts: dict[str, int] = field(default_factory=dict)
    followed: Followed = field(default_factory=Followed)
    merged: dict[str, int] = field(default_factory=dict)
    budget: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return plain data of constant length: times must not change the size of the file."""
        seconds = {name: f"{spent:014.4f}" for name, spent in self.seconds.items()}
        return {
            "phase": self.phase,
            "step": self.step,
            "events": self.events,
            "seconds": seconds,
            "attempts": self.attempts,
            "followed": self.followed.to_json(),
            "merged": self.merged,
            "budget": self.budget,
        }

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> "Position":
        """Read back what `to_json` returned."""
        seconds = {name: float(spent) for name, spent in kept["seconds"].items()}
        followed = Followed(**kept.get("followed", {}))
        told = (kept["phase"], kept["step"], kept["events"], seconds, kept["attempts"])
        return cls(*told, followed, kept.get("merged", {}), kept.get("budget", {}))

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Add the time spent inside to a phase's."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - begun
            self.seconds[phase] = self.seconds.get(phase, 0.0) + spent
