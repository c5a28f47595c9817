"""The first samples of each class of each task, equally many, in fixed memory."""

import torch
from torch import Tensor

from tame.types import State


class Exemplars:
    """Keeps `capacity` samples in all: the first of every class of every task.

    When classes come, each one's share shrinks, and its latest samples go.

    >>> kept = Exemplars(4)
    >>> kept.add(torch.arange(6.0)[:, None], torch.tensor([0, 0, 0, 0, 0, 1]), task=0)
    >>> kept.of(0)
    (tensor([[0.],
            [1.],
            [5.]]), tensor([0, 0, 1]))
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._kept: dict[tuple[int, int], Tensor] = {}  # by task and slot

    def __len__(self) -> int:
        return sum(len(x) for x in self._kept.values())

    def add(self, x: Tensor, slots: Tensor, task: int) -> None:
        """Take from a batch what classes still have room for."""
        known = len(self._kept)
        for slot in slots.unique().tolist():
            self._kept.setdefault((task, slot), x[:0].clone())
        share = max(1, self.capacity // len(self._kept))
        if len(self._kept) > known:
            self._kept = {pair: old[:share].clone() for pair, old in self._kept.items()}
        for slot in slots.unique().tolist():
            old = self._kept[task, slot]
            if len(old) < share:
                more = x[slots == slot][: share - len(old)]
                self._kept[task, slot] = torch.cat([old, more])

    def tasks(self) -> list[int]:
        """Return all tasks, in the order they came."""
        return list(dict.fromkeys(task for task, _ in self._kept))

    def of(self, task: int) -> tuple[Tensor, Tensor]:
        """Return a task's samples and their slots."""
        x, slots, _ = self._columns([pair for pair in self._kept if pair[0] == task])
        return x, slots

    def draw(
        self, count: int, other_than: int, generator: torch.Generator
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Draw samples of other tasks, none twice: inputs, slots and tasks."""
        pairs = [pair for pair in self._kept if pair[0] != other_than]
        x, slots, tasks = self._columns(pairs)
        rows = torch.randperm(len(slots), generator=generator)[:count]
        return x[rows], slots[rows], tasks[rows]

    def nbytes(self) -> int:
        """Return the bytes of all samples with their labels."""
        return sum(x.nbytes + 8 * len(x) for x in self._kept.values())

    def state_dict(self) -> State:
        return {"pairs": [list(pair) for pair in self._kept], "x": list(self._kept.values())}

    def load_state_dict(self, state: State) -> None:
        kept = zip(state["pairs"], state["x"], strict=True)
        self._kept = {(task, slot): x.cpu().clone() for (task, slot), x in kept}

    def _columns(self, pairs: list[tuple[int, int]]) -> tuple[Tensor, Tensor, Tensor]:
        if not pairs:
            empty = torch.empty(0, dtype=torch.int64)
            return empty, empty, empty
        x = torch.cat([self._kept[pair] for pair in pairs])
        sizes = torch.tensor([len(self._kept[pair]) for pair in pairs])
        tasks, slots = torch.tensor(pairs).T
        return x, slots.repeat_interleave(sizes), tasks.repeat_interleave(sizes)
