"""A memory of fixed size with as many samples of each label as it can have: GDumb's sampler."""

from collections.abc import Sequence

import torch
from torch import Tensor

from tame.engine.randomness import numpy_generator, numpy_state, restore_numpy
from tame.types import State


class Balanced:
    """Takes a sample if its label has less than its share; a full memory then gives one up.

    The share is the capacity over the number of labels seen. What is given up is a random sample
    of the label that has most.

    >>> memory = Balanced(capacity=4, seed=0)
    >>> memory.add(torch.arange(9), torch.tensor([0, 0, 0, 0, 0, 0, 1, 1, 1]))
    >>> memory.columns()[1].sort().values
    tensor([0, 0, 1, 1])
    """

    def __init__(self, capacity: int, seed: int) -> None:
        if capacity < 1:
            raise ValueError(f"a memory holds 1 sample or more, not {capacity}")
        self.capacity = capacity
        self._generator = numpy_generator(seed)
        self._x: Tensor | None = None
        self._slots: list[int] = []
        self._places: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, x: Tensor, slots: Tensor) -> None:
        """Offer samples one after the other; what is kept is copied at the end, at once."""
        taken: dict[int, int] = {}
        for row, slot in enumerate(slots.tolist()):
            place = self._place(slot)
            if place is not None:
                taken[place] = row
        if self._x is None:
            self._x = x.new_empty((self.capacity, *x.shape[1:]))
        if taken:
            self._copy(list(taken), x, list(taken.values()))

    def columns(self) -> tuple[Tensor, Tensor]:
        """Return the samples kept and their slots."""
        if self._x is None:
            raise RuntimeError("nothing was offered yet")
        return self._x[: len(self)], torch.tensor(self._slots)

    def nbytes(self) -> int:
        """Return the bytes of the samples kept and their slots."""
        return sum(column.nbytes for column in self.columns()) if len(self) else 0

    def state_dict(self) -> State:
        return {
            "x": None if self._x is None else self._x[: len(self)].clone(),
            "slots": list(self._slots),
            "places": [[slot, *places] for slot, places in self._places.items()],
            "generator": numpy_state(self._generator),
        }

    def load_state_dict(self, state: State) -> None:
        self._slots = list(state["slots"])
        self._places = {slot: list(places) for slot, *places in state["places"]}
        restore_numpy(self._generator, state["generator"])
        kept, self._x = state["x"], None
        if kept is not None:
            self._x = kept.new_empty((self.capacity, *kept.shape[1:]))
            self._x[: len(kept)] = kept

    def _place(self, slot: int) -> int | None:
        """Return where a sample of this label goes, or None if it is not taken."""
        own = self._places.setdefault(slot, [])
        if len(own) >= self.capacity / len(self._places):
            return None
        if len(self) < self.capacity:
            place = len(self)
            self._slots.append(slot)
        else:
            most = max(self._places.values(), key=len)
            place = most.pop(int(self._generator.integers(len(most))))
            self._slots[place] = slot
        own.append(place)
        return place

    def _copy(self, places: Sequence[int], x: Tensor, rows: Sequence[int]) -> None:
        if self._x is not None:
            chosen = x[torch.tensor(rows, device=x.device)]
            self._x[torch.tensor(places, device=self._x.device)] = chosen.to(self._x.device)
