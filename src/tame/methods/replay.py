"""A memory of the stream to learn from again: a uniform sample of everything seen."""

from dataclasses import dataclass

import torch
from torch import Tensor

from tame.core.reservoir import Reservoir
from tame.engine.lesson import Lesson
from tame.engine.randomness import derive, restore_torch, torch_generator
from tame.methods.rings import capacity_of
from tame.methods.single import SingleSettings
from tame.types import State

KEY = 8  # bytes of an entry's random key
WHOLE = 4  # bytes of a whole number: a reservoir keeps them in 32 bits


@dataclass(frozen=True)
class ReplaySettings(SingleSettings):
    """A single network's settings, and how much of the stream it keeps and repeats.

    `memory` is in samples, unless `memory_bytes` says how many bytes the samples, and all that is
    kept with them, may take. With every batch `replay` samples are repeated (0: as many as it has).
    """

    memory: int = 500
    memory_bytes: int = 0
    replay: int = 0

    def __post_init__(self) -> None:
        if self.memory < 1:
            raise ValueError(f"memory is 1 or more, not {self.memory}")
        if self.memory_bytes < 0:
            raise ValueError(f"memory_bytes is 0 (memory counts) or more, not {self.memory_bytes}")
        if self.replay < 0:
            raise ValueError(f"replay is 0 (as many as the batch) or more, not {self.replay}")


class Replay:
    """Keeps a reservoir of samples, their slots and what else a method wants kept with them."""

    def __init__(self, settings: ReplaySettings, seed: int) -> None:
        self._settings = settings
        self._seed = derive(seed, "replay", "kept")
        self._reservoir: Reservoir | None = None
        self._draws = torch_generator(derive(seed, "replay", "drawn"))

    def __len__(self) -> int:
        return 0 if self._reservoir is None else len(self._reservoir)

    def draw(self, lesson: Lesson) -> tuple[Lesson, list[Tensor]]:
        """Return samples to repeat with a batch, none twice, and what else was kept with them."""
        if self._reservoir is None:
            return lesson.rows(0, 0), []
        count = self._settings.replay or len(lesson)
        places = torch.randperm(len(self), generator=self._draws)[:count]
        raw, slots, *others = self._reservoir.rows(places)
        past = Lesson(raw, slots.cpu().long(), lesson.live, lesson.step, lesson.device)
        return past, others

    def add(self, lesson: Lesson, *others: Tensor) -> None:
        """Offer a batch, and a row for each sample of what else is kept."""
        if self._reservoir is None:
            self._reservoir = self._empty([lesson.raw, lesson.slots, *others])
        self._reservoir.add(lesson.raw, lesson.slots, *others)

    def widen(self, column: int, width: int, fill: float) -> None:
        """Give the rows of a column more entries; what no longer fits the bytes is dropped."""
        if self._reservoir is None:
            return
        state = self._reservoir.state_dict()
        kept = state["columns"][column]
        if kept.shape[1] >= width:
            return
        grown = kept.new_full((len(kept), width), fill)
        grown[:, : kept.shape[1]] = kept
        state["columns"][column] = grown
        self._reservoir.load_state_dict(state)
        self._reservoir.thin(self._capacity(state["columns"]))

    def nbytes(self) -> int:
        """Return the bytes of what is kept."""
        return 0 if self._reservoir is None else self._reservoir.nbytes()

    def state_dict(self) -> State:
        kept = self._reservoir
        return {
            "reservoir": None if kept is None else kept.state_dict(),
            "draws": self._draws.get_state(),
        }

    def load_state_dict(self, state: State) -> None:
        self._reservoir = None
        if state["reservoir"] is not None:
            self._reservoir = self._empty(state["reservoir"]["columns"])
            self._reservoir.load_state_dict(state["reservoir"])
        restore_torch(self._draws, state["draws"])

    def _empty(self, columns: list[Tensor]) -> Reservoir:
        return Reservoir(self._capacity(columns), self._seed)

    def _capacity(self, columns: list[Tensor]) -> int:
        row = KEY + sum(_bytes(column[:1]) for column in columns)
        return capacity_of(self._settings.memory, self._settings.memory_bytes, row)


def _bytes(rows: Tensor) -> int:
    return rows.numel() * WHOLE if rows.dtype == torch.int64 else rows.nbytes
