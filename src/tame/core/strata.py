"""A sample balanced over kinds of entries: a small reservoir for each kind seen."""

import torch
from torch import Tensor

from tame.core.reservoir import Reservoir
from tame.engine.randomness import derive
from tame.types import State


class Strata:
    """Keeps `each` entries of every kind; the last two columns of an entry tell its kind.

    Its memory grows with the number of kinds, which a single reservoir's does not.

    >>> strata = Strata(each=2, seed=0)
    >>> strata.add(torch.arange(100), torch.arange(100) % 3, torch.zeros(100, dtype=torch.int64))
    >>> len(strata), strata.columns()[1].sort().values.tolist()
    (6, [0, 0, 1, 1, 2, 2])
    """

    def __init__(self, each: int, seed: int) -> None:
        self.each = each
        self.seen = 0
        self._seed = seed
        self._kinds: dict[tuple[int, int], Reservoir] = {}

    def __len__(self) -> int:
        return sum(len(reservoir) for reservoir in self._kinds.values())

    def add(self, first: Tensor, *others: Tensor | int) -> None:
        """Offer a batch of entries; a column may be one number for all of them."""
        count = first.shape[0]
        self.seen += count
        columns = [first, *(torch.full((count,), c) if isinstance(c, int) else c for c in others)]
        pairs, kind = torch.stack(columns[-2:], 1).unique(dim=0, return_inverse=True)
        for number, (slot, owner) in enumerate(pairs.tolist()):
            rows = (kind == number).nonzero().squeeze(1)
            self._of(slot, owner).add(*(column[rows] for column in columns))

    def rename(self, column: int, old: int, new: int) -> None:
        """Put a number in the place of another in the last column, which tells a kind."""
        for first, second in [kind for kind in self._kinds if kind[1] == old]:
            kept = self._kinds.pop((first, second))
            kept.rename(column, old, new)
            self._of(first, new).absorb(kept)

    def columns(self) -> list[Tensor]:
        """Return the kept entries, kind after kind."""
        parts = [reservoir.columns() for reservoir in self._kinds.values()]
        return [torch.cat(column) for column in zip(*parts, strict=True)]

    def nbytes(self) -> int:
        """Return the bytes of the kept entries and their keys."""
        return sum(reservoir.nbytes() for reservoir in self._kinds.values())

    def state_dict(self) -> State:
        kinds = [[*kind, kept.state_dict()] for kind, kept in self._kinds.items()]
        return {"seen": self.seen, "kinds": kinds}

    def load_state_dict(self, state: State) -> None:
        self.seen = state["seen"]
        self._kinds = {}
        for first, second, kept in state["kinds"]:
            self._of(first, second).load_state_dict(kept)

    def _of(self, first: int, second: int) -> Reservoir:
        kind = (first, second)
        if kind not in self._kinds:
            self._kinds[kind] = Reservoir(self.each, derive(self._seed, *kind))
        return self._kinds[kind]
