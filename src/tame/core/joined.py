"""Reservoirs at rest: many of them as a few tensors."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import torch
from torch import Tensor

from tame.core.reservoir import Reservoir
from tame.types import State

HALF = 64
LOW = 2**HALF - 1
NUMBERS = 6
ON_HOST = ("seen", "sizes", "keys", "generators")


@dataclass(frozen=True)
class Joined:
    """Reservoirs whose entries have one form, one after another; it never changes.

    >>> one, two = Reservoir(3, seed=0), Reservoir(3, seed=1)
    >>> one.add(torch.arange(9))
    >>> joined = Joined.of([one, two])
    >>> [len(joined.take(row, capacity=3)) for row in range(2)]
    [3, 0]
    """

    seen: Tensor
    sizes: Tensor
    keys: Tensor
    columns: list[Tensor]
    generators: Tensor

    @classmethod
    def of(cls, reservoirs: Iterable[Reservoir]) -> Self:
        """Return reservoirs, joined."""
        return cls.gathered([(cls.alone(reservoir), 0) for reservoir in reservoirs])

    @classmethod
    def alone(cls, reservoir: Reservoir) -> Self:
        """Return one reservoir in this form."""
        state = reservoir.state_dict()
        return cls(
            torch.tensor([state["seen"]], dtype=torch.int64),
            torch.tensor([len(state["keys"])], dtype=torch.int64),
            state["keys"],
            state["columns"] if len(state["keys"]) else [],
            _numbers(state["generator"]).view(1, NUMBERS),
        )

    @classmethod
    def gathered(cls, rows: Sequence[tuple["Joined", int]]) -> Self:
        """Return rows of one or more others, in memory of its own."""
        parts = [joined.part(row) for joined, row in rows]
        full = [columns for _, columns in parts if columns]
        seen = [int(joined.seen[row]) for joined, row in rows]
        generators = [joined.generators[row] for joined, row in rows]
        return cls(
            torch.tensor(seen, dtype=torch.int64),
            torch.tensor([len(keys) for keys, _ in parts], dtype=torch.int64),
            _cat([keys for keys, _ in parts]),
            [_cat(column) for column in zip(*full, strict=True)],
            _cat(generators).view(-1, NUMBERS),
        )

    @classmethod
    def restore(cls, state: State) -> Self:
        """Return what `state` described, or refuse parts that do not belong together."""
        seen, sizes, keys, numbers = (state[name].cpu() for name in ON_HOST)
        joined = cls(seen, sizes, keys, state["columns"], numbers)
        counts = {len(joined.seen), len(joined.generators), len(joined)}
        lengths = {len(column) for column in (joined.keys, *joined.columns)}
        whole = {int(joined.sizes.sum())}
        if len(counts) > 1 or lengths != whole or bool((joined.sizes < 0).any()):
            raise ValueError(f"the reservoirs of {len(joined)} experts are damaged")
        return joined

    def state(self) -> State:
        """Return everything as tensors."""
        return {name: getattr(self, name) for name in (*ON_HOST, "columns")}

    def __len__(self) -> int:
        return len(self.sizes)

    def take(self, row: int, capacity: int) -> Reservoir:
        """Return one of the reservoirs, with memory of its own."""
        keys, columns = self.part(row)
        reservoir = Reservoir(capacity, seed=0)
        drawn = _generator(self.generators[row])
        seen = int(self.seen[row])
        reservoir.load_state_dict(
            {"seen": seen, "keys": keys, "columns": columns, "generator": drawn}
        )
        return reservoir

    def between(self, first: int, last: int) -> Self:
        """Return the rows from the first to before the last, in memory of their own."""
        begin, end = int(self.begins[first]), int(self.begins[last])
        keys, columns = self.keys[begin:end], [column[begin:end] for column in self.columns]
        seen, sizes, numbers = (
            self.seen[first:last],
            self.sizes[first:last],
            self.generators[first:last],
        )
        copies = [part.clone() for part in columns]
        return type(self)(seen.clone(), sizes.clone(), keys.clone(), copies, numbers.clone())

    def nbytes(self) -> int:
        """Return the bytes of the kept entries and their keys."""
        return self.keys.nbytes + sum(column.nbytes for column in self.columns)

    @cached_property
    def begins(self) -> np.ndarray:
        """Where each reservoir's entries begin, and where the last one's end."""
        return np.concatenate([[0], self.sizes.cpu().numpy().cumsum()])

    def part(self, row: int) -> tuple[Tensor, list[Tensor]]:
        """Return the keys and the columns of one reservoir, not to be changed."""
        begin, end = int(self.begins[row]), int(self.begins[row + 1])
        columns = [column[begin:end] for column in self.columns] if end > begin else []
        return self.keys[begin:end], columns


def _cat(parts: Sequence[Tensor]) -> Tensor:
    """Join tensors where the first of them is."""
    if not parts:
        return torch.zeros(0, dtype=torch.int64)
    return torch.cat([part.to(parts[0].device) for part in parts])


def _numbers(generator: State) -> Tensor:
    """Return a generator's state, two numbers of 128 bits and two small ones, as whole numbers."""
    wide = [int(generator["state"][name]) for name in ("state", "inc")]
    halves = [_signed(part) for number in wide for part in (number >> HALF, number & LOW)]
    return torch.tensor([*halves, generator["has_uint32"], generator["uinteger"]])


def _generator(numbers: Tensor) -> State:
    first, second, third, fourth, has_half, half = (int(number) for number in numbers)
    state = ((first & LOW) << HALF) | (second & LOW)
    increment = ((third & LOW) << HALF) | (fourth & LOW)
    inner = {"state": str(state), "inc": str(increment)}
    return {"bit_generator": "PCG64", "state": inner, "has_uint32": has_half, "uinteger": half}


def _signed(part: int) -> int:
    return part - 2**HALF if part >= 2 ** (HALF - 1) else part
