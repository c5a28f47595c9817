"""A uniform sample of a stream in fixed memory, whole batches at a time."""

import numpy as np
import torch
from torch import Tensor

from tame.engine.randomness import numpy_generator, numpy_state, restore_numpy
from tame.types import State

KEY_RANGE = 2**63
TOP_BIT = np.uint64(1)  # of 64 random bits: keys have no sign
FEW = 8
Columns = tuple[Tensor | int, ...]


class Reservoir:
    """Keeps the entries with the largest random keys: every entry ever added is equally likely.

    An entry is a row of one or more tensors, stored as given (images stay uint8). Keys are
    independent 64-bit integers drawn from the reservoir's own generator and kept with the entries,
    so that two reservoirs can be merged and a smaller sample is the prefix of the largest keys.
    Memory is taken once, for `capacity` entries, when the first batch tells their shape, and what
    is not used of it is given back by `rest`; a column may be one number for the whole batch. Whole
    numbers are kept in 32 bits.

    >>> reservoir = Reservoir(capacity=3, seed=0)
    >>> reservoir.add(torch.arange(100), torch.arange(100) % 2)
    >>> len(reservoir), [column.shape[0] for column in reservoir.columns()]
    (3, [3, 3])
    """

    def __init__(self, capacity: int, seed: int) -> None:
        if capacity < 1:
            raise ValueError(f"a reservoir holds 1 entry or more, not {capacity}")
        self.capacity = capacity
        self.seen = 0
        self._size = 0
        self._keys = np.empty(0, dtype=np.int64)
        self._least = -1
        self._columns: list[Tensor] = []
        self._generator: np.random.Generator | State = numpy_generator(seed)

    def __len__(self) -> int:
        return self._size

    def add(self, first: Tensor, *others: Tensor | int, keys: np.ndarray | None = None) -> None:
        """Offer a batch of entries; the reservoir keeps the share that chance gives it.

        Whoever has drawn `keys` for them already brings them.
        """
        columns, count = (first, *others), first.shape[0]
        if len(self._keys) < self.capacity:
            self._take_room(columns)
        if keys is None:
            keys = (self._awake().bit_generator.random_raw(count) >> TOP_BIT).view(np.int64)
        self.seen += count
        free = min(self.capacity - self._size, count)
        if free:
            self._size += free
            self._store(np.arange(self._size - free, self._size), np.arange(free), keys, columns)
        if free < count and keys.max() > self._least:
            self._compete(free + np.flatnonzero(keys[free:] > self._least), keys, columns)

    def columns(self) -> list[Tensor]:
        """Return the kept entries, largest key first (the prefix of any length is uniform too)."""
        order = torch.from_numpy(np.argsort(-self._keys[: self._size], kind="stable"))
        return [column[order.to(column.device)] for column in self._columns]

    def rows(self, places: Tensor) -> list[Tensor]:
        """Return the entries at these places, which chance has filled; others are not read."""
        return [column[places.to(column.device)] for column in self._columns]

    def keys(self) -> np.ndarray:
        """Return the kept entries' keys, largest first."""
        return -np.sort(-self._keys[: self._size], kind="stable")

    @property
    def least(self) -> int:
        """The key an entry must exceed to be kept; -1 while there is room for any."""
        return self._least

    def nbytes(self) -> int:
        """Return the bytes of the kept entries and their keys."""
        rows = sum(c[: self._size].nbytes for c in self._columns)
        return rows + self._keys[: self._size].nbytes

    def absorb(self, other: "Reservoir") -> None:
        """Take in another reservoir: of all entries those with the largest keys stay.

        They are a uniform sample of all that was ever added to either; the other must not have
        been able to keep fewer entries than this one.
        """
        if other.capacity < self.capacity:
            self.thin(other.capacity)
        self.seen += other.seen
        if not len(other):
            return
        keys = np.concatenate([self.keys(), other.keys()])
        order = np.argsort(-keys, kind="stable")[: self.capacity]
        own = self.columns() or [column[:0] for column in other.columns()]
        rows = torch.from_numpy(order)
        self._columns = [
            torch.cat([mine, theirs.to(mine.device)])[rows.to(mine.device)]
            for mine, theirs in zip(own, other.columns(), strict=True)
        ]
        self._keys, self._size = keys[order], len(order)
        self._note_least()

    def rename(self, column: int, old: int, new: int) -> None:
        """Put a number in the place of another in one column."""
        kept = self._columns[column] if self._columns else torch.empty(0)
        kept[: self._size][kept[: self._size] == old] = new

    def thin(self, capacity: int) -> None:
        """Keep no more than so many entries, from now on: those with the largest keys.

        Any entry ever added is as likely to be among them as any other, now and later.
        """
        if capacity >= self.capacity:
            return
        if capacity < self._size:
            self._columns = [column[:capacity].clone() for column in self.columns()]
            self._keys = self.keys()[:capacity].copy()
            self._size = capacity
        self.capacity = capacity
        self.rest()
        self._note_least()

    def rest(self) -> None:
        """Give back the memory that is not in use; the next entries take it again."""
        if len(self._keys) > self._size:
            self._keys = self._keys[: self._size].copy()
            self._columns = [column[: self._size].clone() for column in self._columns]
        if not isinstance(self._generator, dict):
            self._generator = numpy_state(self._generator)

    def state_dict(self) -> State:
        drawn = self._generator
        return {
            "seen": self.seen,
            "keys": torch.from_numpy(self._keys[: self._size].copy()),
            "columns": [column[: self._size].clone() for column in self._columns],
            "generator": dict(drawn) if isinstance(drawn, dict) else numpy_state(drawn),
        }

    def load_state_dict(self, state: State) -> None:
        self.seen = state["seen"]
        self._size = len(state["keys"])
        self._keys = state["keys"].cpu().numpy().copy()
        self._columns = [kept.clone() for kept in state["columns"]]
        self._generator = dict(state["generator"])
        self._note_least()

    def _take_room(self, columns: Columns) -> None:
        room = [_room(column, self.capacity) for column in columns]
        for wide, kept in zip(room, self._columns, strict=False):
            wide[: self._size] = kept[: self._size]
        keys = np.empty(self.capacity, dtype=np.int64)
        keys[: self._size] = self._keys[: self._size]
        self._columns, self._keys = room, keys

    def _awake(self) -> np.random.Generator:
        if isinstance(self._generator, dict):
            state, self._generator = self._generator, numpy_generator(0)
            restore_numpy(self._generator, state)
        return self._generator

    def _compete(self, rivals: np.ndarray, keys: np.ndarray, columns: Columns) -> None:
        if not len(rivals):
            return
        if len(rivals) <= FEW:
            taken = {}
            for row in rivals.tolist():
                place = int(self._keys.argmin())
                if keys[row] > self._keys[place]:
                    self._keys[place] = keys[row]
                    taken[place] = row
            slots, rows = np.array(list(taken)), np.array(list(taken.values()))
            self._store(slots, rows, keys, columns)
        else:
            union = np.concatenate([self._keys, keys[rivals]])
            losers = np.argpartition(union, len(rivals))[: len(rivals)]
            evicted = losers[losers < self.capacity]
            rejected = losers[losers >= self.capacity] - self.capacity
            admitted = np.delete(rivals, rejected)
            self._store(np.sort(evicted), admitted, keys, columns)

    def _store(
        self, slots: np.ndarray, rows: np.ndarray, keys: np.ndarray, columns: Columns
    ) -> None:
        self._keys[slots] = keys[rows]
        for kept, offered in zip(self._columns, columns, strict=True):
            _write(kept, slots, offered, rows)
        self._note_least()

    def _note_least(self) -> None:
        full = self._size == self.capacity
        self._least = int(self._keys.min()) if full else -1


def _room(column: Tensor | int, capacity: int) -> Tensor:
    if isinstance(column, int):
        return torch.empty(capacity, dtype=torch.int32)
    dtype = torch.int32 if column.dtype == torch.int64 else column.dtype
    return column.new_empty((capacity, *column.shape[1:]), dtype=dtype)


def _write(kept: Tensor, slots: np.ndarray, offered: Tensor | int, rows: np.ndarray) -> None:
    """Copy rows of one column to their places; on the host that is numpy's, which is quicker."""
    near = kept.is_cpu and kept.dtype != torch.bfloat16
    if isinstance(offered, int):
        (kept.numpy() if near else kept)[slots] = offered
    elif near and offered.is_cpu:
        kept.numpy()[slots] = offered.numpy()[rows]
    else:
        chosen = offered[torch.from_numpy(rows).to(offered.device)]
        kept[torch.from_numpy(slots).to(kept.device)] = chosen.to(kept.device, kept.dtype)
