"""The reservoirs of many experts as a few tensors, for a file that loads quickly."""

from collections.abc import Sequence

import torch
from torch import Tensor

from tame.core.reservoir import Reservoir
from tame.types import State

HALF = 64
LOW = 2**HALF - 1


def join(reservoirs: Sequence[Reservoir]) -> State:
    """Return the states of reservoirs whose entries have one form, joined.

    >>> one, two = Reservoir(3, seed=0), Reservoir(3, seed=1)
    >>> one.add(torch.arange(9))
    >>> [len(found) for found in split(join([one, two]), 3)]
    [3, 0]
    """
    states = [reservoir.state_dict() for reservoir in reservoirs]
    full = [state["columns"] for state in states if state["columns"]]
    return {
        "seen": torch.tensor([state["seen"] for state in states], dtype=torch.int64),
        "sizes": torch.tensor([len(state["keys"]) for state in states], dtype=torch.int64),
        "keys": torch.cat([state["keys"] for state in states] or [torch.zeros(0).long()]),
        "columns": [torch.cat(column) for column in zip(*full, strict=True)],
        "generators": torch.stack(
            [_numbers(state["generator"]) for state in states] or [torch.zeros(6).long()]
        )[: len(states)],
    }


def split(state: State, capacity: int) -> list[Reservoir]:
    """Return the reservoirs `join` was given, each with memory of its own."""
    sizes = state["sizes"].tolist()
    keys = state["keys"].split(sizes)
    columns = [column.split(sizes) for column in state["columns"]]
    reservoirs = []
    for number, seen in enumerate(state["seen"].tolist()):
        kept = {
            "seen": seen,
            "keys": keys[number],
            "columns": [column[number] for column in columns] if sizes[number] else [],
            "generator": _generator(state["generators"][number]),
        }
        reservoirs.append(Reservoir(capacity, seed=0))
        reservoirs[-1].load_state_dict(kept)
    return reservoirs


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
