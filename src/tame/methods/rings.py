"""The newest samples of every label of every task, in one block of memory."""

from collections import deque

import torch
from torch import Tensor

from tame.types import State

Key = tuple[int, int]  # task, slot


class Rings:
    """Keeps the last samples of each (task, label): the newest takes the place of the oldest.

    With a `capacity` all rings together hold no more than so many samples and get equal shares: a
    ring below its share takes the oldest place of the longest one. With a share of `each` every
    ring holds that many, and memory grows with the number of labels.

    >>> rings = Rings(capacity=4)
    >>> rings.add(torch.arange(6), torch.zeros(6, dtype=torch.int64), task=0)
    >>> rings.add(torch.arange(6, 9), torch.ones(3, dtype=torch.int64), task=0)
    >>> rings.rows(torch.tensor(rings.places()))[0]
    tensor([4, 5, 7, 8])
    """

    def __init__(self, capacity: int = 0, each: int = 0) -> None:
        if (capacity > 0) == (each > 0):
            raise ValueError(f"a capacity or a share of each, not {capacity} and {each}")
        self.capacity = capacity
        self.each = each
        self._rings: dict[Key, deque[int]] = {}
        self._used = 0
        self._x = torch.empty(0)
        self._slots = torch.empty(0, dtype=torch.int32)
        self._tasks = torch.empty(0, dtype=torch.int32)
        self._others: tuple[int, Tensor] | None = None  # a task, and where those of others are

    def __len__(self) -> int:
        return self._used

    def add(self, x: Tensor, slots: Tensor, task: int) -> None:
        """Put the samples of a batch into their rings, in their order."""
        if self._others is not None and self._others[0] != task:
            self._others = None
        newest = {self._place((task, slot)): row for row, slot in enumerate(slots.tolist())}
        self._make_room(x)
        places, rows = torch.tensor(list(newest)), torch.tensor(list(newest.values()))
        self._x[places.to(self._x.device)] = x[rows.to(x.device)].to(self._x.device)
        self._slots[places] = slots[rows].to(torch.int32)
        self._tasks[places] = task

    def places(self, *, besides: int | None = None) -> list[int]:
        """Return where samples are, oldest of each ring first; of a task none, if one is named."""
        rings = (ring for (task, _), ring in self._rings.items() if task != besides)
        return [place for ring in rings for place in ring]

    def others(self, task: int) -> Tensor:
        """Return `places(besides=task)` as a tensor, made again only when it has changed."""
        if self._others is None or self._others[0] != task:
            self._others = (task, torch.tensor(self.places(besides=task), dtype=torch.int64))
        return self._others[1]

    def rows(self, places: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the samples at these places, their slots and their tasks."""
        x = self._x[places.to(self._x.device)]
        return x, self._slots[places].long(), self._tasks[places].long()

    def nbytes(self) -> int:
        """Return the bytes of what is kept."""
        parts = (self._x, self._slots, self._tasks)
        return sum(part[: self._used].nbytes for part in parts)

    def state_dict(self) -> State:
        return {
            "x": self._x[: self._used].clone(),
            "slots": self._slots[: self._used].clone(),
            "tasks": self._tasks[: self._used].clone(),
            "rings": [[*key, *places] for key, places in self._rings.items()],
        }

    def load_state_dict(self, state: State) -> None:
        self._x = state["x"].clone()
        self._slots, self._tasks = (state[name].cpu().clone() for name in ("slots", "tasks"))
        self._used = len(self._x)
        self._rings = {(task, slot): deque(places) for task, slot, *places in state["rings"]}
        self._others = None

    def _place(self, key: Key) -> int:
        """Return the place of the next sample of a ring, which is then its newest."""
        ring = self._rings.setdefault(key, deque())
        if len(ring) >= (self.each or max(1, self.capacity // len(self._rings))):
            place = ring.popleft()
        elif not self.capacity or self._used < self.capacity:
            place, self._used = self._used, self._used + 1
        else:
            longest = max(self._rings, key=lambda other: len(self._rings[other]))
            place = self._rings[longest].popleft()
            if longest[0] != key[0]:
                self._others = None
        ring.append(place)
        return place

    def _make_room(self, x: Tensor) -> None:
        if self._used <= len(self._slots) and self._x.shape[1:] == x.shape[1:]:
            return
        room = self.capacity or max(self._used, 2 * len(self._slots))
        wide = x.new_empty((room, *x.shape[1:]))
        if len(self._slots):
            wide[: len(self._x)] = self._x
        numbers = torch.zeros(2, room, dtype=torch.int32)
        numbers[0, : len(self._slots)], numbers[1, : len(self._tasks)] = self._slots, self._tasks
        self._x, self._slots, self._tasks = wide, numbers[0].clone(), numbers[1].clone()


def capacity_of(memory: int, memory_bytes: int, row: int) -> int:
    """Return how many entries of `row` bytes a memory holds: as many as said, or as fit the bytes.

    >>> capacity_of(200, 0, 800), capacity_of(200, 4000, 800)
    (200, 5)
    """
    return max(1, memory_bytes // row) if memory_bytes else memory
