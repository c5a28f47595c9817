"""A uniform sample of what is different in a stream: a sample shown again counts once."""

import numpy as np
import torch
from torch import Tensor

from tame.core.codec import Codec
from tame.core.reservoir import KEY_RANGE, Reservoir
from tame.engine.randomness import numpy_generator
from tame.types import State

WORD = 8
MIX = np.uint64(0x9E3779B97F4A7C15)
HALF = np.uint64(32)


class Distinct:
    """A reservoir whose keys are drawn from what an entry holds, all of its columns.

    The same entry always draws the same key, so it is kept or refused as if seen once; which of
    the different ones are kept is still chance, by the seed. A stream that shows its samples in ten
    passes fills an ordinary reservoir with repetitions; it cannot fill this one. With a `codec` the
    first column holds images, and is kept as the codec writes them.

    >>> kept = Distinct(capacity=8, seed=0)
    >>> for _ in range(3):
    ...     kept.add(torch.arange(5).view(5, 1), torch.zeros(5, dtype=torch.int64), 0)
    >>> len(kept), kept.seen
    (5, 15)
    """

    def __init__(self, capacity: int, seed: int, codec: Codec | None = None) -> None:
        self.seen = 0
        self._seed = seed
        self._codec = codec
        self._shape: tuple[int, ...] = ()
        self._reservoir = Reservoir(capacity, seed)
        self._factors = np.empty(0, dtype=np.uint64)
        self._known: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self._reservoir)

    def add(self, first: Tensor, *others: Tensor | int) -> None:
        """Offer a batch of entries; those that are kept already change nothing."""
        self.check(first)
        self.seen += len(first)
        keys = self._keys(first, others)
        _, rows = np.unique(keys, return_index=True)
        rows = rows[keys[rows] > self._reservoir.least]
        rows = np.sort(rows[~self._holds(keys[rows])]) if len(rows) else rows
        if len(rows):
            chosen = [other if isinstance(other, int) else other[rows] for other in others]
            self._reservoir.add(self._written(first[rows]), *chosen, keys=keys[rows])
            self._known = None

    def check(self, first: Tensor) -> None:
        """Raise where a codec cannot keep such entries."""
        if self._codec is not None:
            self._codec.check(tuple(first.shape[1:]), first.dtype)

    def rename(self, column: int, old: int, new: int) -> None:
        """Put a number in the place of another in one column; keys stay as they were drawn.

        So an entry of the old number, shown again under the new one, counts as another.
        """
        self._reservoir.rename(column, old, new)

    def columns(self, most: int | None = None) -> list[Tensor]:
        """Return the kept entries, `most` of them or all, largest key first.

        The prefix of any length is a uniform sample too.
        """
        first, *others = (column[:most] for column in self._reservoir.columns())
        if self._codec is not None:
            first = self._codec.decode(first, self._shape)
        return [first, *others]

    def nbytes(self) -> int:
        """Return the bytes of the kept entries and their keys."""
        return self._reservoir.nbytes()

    def state_dict(self) -> State:
        kept = self._reservoir.state_dict()
        return {"seen": self.seen, "kept": kept, "shape": list(self._shape)}

    def load_state_dict(self, state: State) -> None:
        self.seen = state["seen"]
        self._reservoir.load_state_dict(state["kept"])
        self._shape = tuple(state["shape"])
        self._known = None

    def _holds(self, keys: np.ndarray) -> np.ndarray:
        """Say of each key whether an entry with it is kept."""
        if self._known is None:
            self._known = np.sort(self._reservoir.keys())
        if not len(self._known):
            return np.zeros(len(keys), dtype=bool)
        place = np.searchsorted(self._known, keys).clip(max=len(self._known) - 1)
        found: np.ndarray = self._known[place] == keys
        return found

    def _written(self, first: Tensor) -> Tensor:
        if self._codec is None:
            return first
        self._shape = tuple(first.shape[1:])
        return self._codec.encode(first)

    def _keys(self, first: Tensor, others: tuple[Tensor | int, ...]) -> np.ndarray:
        words = _words(first)
        if len(self._factors) != words.shape[1] + len(others):
            draws = numpy_generator(self._seed).integers(
                0, KEY_RANGE, words.shape[1] + len(others), dtype=np.int64
            )
            self._factors = draws.astype(np.uint64) * np.uint64(2) + np.uint64(1)
        width = words.shape[1]
        mixed = (words * self._factors[:width]).sum(1, dtype=np.uint64)
        for factor, other in zip(self._factors[width:], others, strict=True):
            told = np.full(1, other, np.uint64) if isinstance(other, int) else _whole(other)
            mixed = mixed + (told + np.uint64(1)) * factor
        mixed = (mixed ^ (mixed >> HALF)) * MIX
        mixed = (mixed ^ (mixed >> HALF)) * MIX
        keys: np.ndarray = (mixed >> np.uint64(1)).astype(np.int64)
        return keys


def _words(first: Tensor) -> np.ndarray:
    """Return the bytes of each entry as whole numbers of 64 bits."""
    flat = first.flatten(1).contiguous().cpu().view(torch.uint8).numpy()
    return np.pad(flat, ((0, 0), (0, -flat.shape[1] % WORD))).view(np.uint64)


def _whole(column: Tensor) -> np.ndarray:
    return column.cpu().numpy().astype(np.uint64)
