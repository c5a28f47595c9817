"""The samples of experts at rest, by expert."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Self

import numpy as np

from tame.core.joined import Joined
from tame.core.reservoir import Reservoir
from tame.types import State

BLOCK = 2**24


class Memories:
    """The reservoirs of many experts, by id, in blocks of sixteen MiB or of one expert.

    A reservoir of its own costs two kilobytes beside its entries; here it costs seventy bytes, and
    to put one in or take one out moves one block.
    """

    def __init__(self) -> None:
        self._blocks: list[tuple[np.ndarray, Joined]] = []

    def put(self, numbers: Sequence[int], reservoirs: Sequence[Reservoir]) -> None:
        """Take in the reservoirs of experts that have none here."""
        for number, reservoir in zip(numbers, reservoirs, strict=True):
            self._append(np.array([number]), Joined.alone(reservoir))
        self._join_blocks()

    def take(self, number: int, capacity: int) -> Reservoir:
        """Return a copy of an expert's reservoir."""
        place, row = self._find(number)
        return self._blocks[place][1].take(row, capacity)

    def drop(self, number: int) -> None:
        """Forget an expert's reservoir."""
        place, row = self._find(number)
        numbers, joined = self._blocks[place]
        rest = [(joined, other) for other in range(len(joined)) if other != row]
        self._blocks[place] = np.delete(numbers, row), Joined.gathered(rest)
        self._join_blocks()

    def thin(self, capacity: int) -> None:
        """Keep no more than so many entries of each, those with the largest keys."""
        blocks, self._blocks = self._blocks, []
        for numbers, joined in blocks:
            room = max(capacity, int(joined.sizes.max()))
            reservoirs = [joined.take(row, room) for row in range(len(joined))]
            for reservoir in reservoirs:
                reservoir.thin(capacity)
            self._append(numbers, Joined.of(reservoirs))
        self._join_blocks()

    def nbytes(self) -> int:
        """Return the bytes of all kept entries and their keys."""
        return sum(joined.nbytes() for _, joined in self._blocks)

    def samples(self) -> int:
        """Return how many entries are kept."""
        return sum(len(joined.keys) for _, joined in self._blocks)

    def state(self, numbers: Sequence[int]) -> State:
        """Return the reservoirs of these experts, in this order."""
        where = {
            number: (joined, row)
            for owners, joined in self._blocks
            for row, number in enumerate(owners.tolist())
        }
        return Joined.gathered([where[number] for number in numbers]).state()

    @classmethod
    def restore(cls, state: State, numbers: np.ndarray) -> Self:
        """Return the reservoirs of these experts from what `state` returned.

        What fits in one block is shared with the state, as it never changes.
        """
        memories, whole = cls(), Joined.restore(state)
        if len(whole) != len(numbers):
            raise ValueError(f"{len(whole)} reservoirs for {len(numbers)} experts")
        if whole.nbytes() <= BLOCK:
            memories._append(numbers, whole)
            memories._join_blocks()
            return memories
        each = whole.nbytes() // max(1, len(whole.keys))
        blocks = whole.begins[:-1] * each // BLOCK
        cuts = [0, *np.flatnonzero(np.diff(blocks)) + 1, len(whole)]
        for first, last in pairwise(cuts):
            memories._append(numbers[first:last], whole.between(first, last))
        return memories

    def _find(self, number: int) -> tuple[int, int]:
        for place, (numbers, _) in enumerate(self._blocks):
            rows = np.flatnonzero(numbers == number)
            if len(rows):
                return place, int(rows[0])
        raise KeyError(number)

    def _append(self, numbers: np.ndarray, joined: Joined) -> None:
        self._blocks.append((numbers, joined))

    def _join_blocks(self) -> None:
        """Make one of neighbouring blocks that are not too large together."""
        runs: list[list[tuple[np.ndarray, Joined]]] = []
        size = BLOCK
        for block in self._blocks:
            if runs and size + block[1].nbytes() <= BLOCK:
                runs[-1].append(block)
                size += block[1].nbytes()
            elif len(block[0]):
                runs.append([block])
                size = block[1].nbytes()
        self._blocks = [_one(run) for run in runs]


def _one(run: Sequence[tuple[np.ndarray, Joined]]) -> tuple[np.ndarray, Joined]:
    if len(run) == 1:
        return run[0]
    rows = [(joined, row) for _, joined in run for row in range(len(joined))]
    return np.concatenate([numbers for numbers, _ in run]), Joined.gathered(rows)
