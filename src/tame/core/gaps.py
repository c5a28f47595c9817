"""Ascending places in a long row as gaps of 8 or 16 bits, whatever its length."""

import torch
from torch import Tensor

NARROW, WIDE = torch.uint8, torch.int16
ESCAPES = {NARROW: 0xFF, WIDE: 0xFFFF}  # as many places are passed, and none is named


def to_gaps(places: Tensor) -> Tensor:
    """Return the free places before each named one, in the width that takes fewer bytes.

    A longer gap is led in by escapes.

    >>> to_gaps(torch.tensor([2, 3, 300]))
    tensor([  2,   0, 255,  41], dtype=torch.uint8)
    >>> to_gaps(torch.tensor([2, 3, 70_000]))
    tensor([   2,    0,   -1, 4461], dtype=torch.int16)
    """
    before = torch.cat([places.new_full((1,), -1), places[:-1]])
    free = places - before - 1
    found = [_escaped(free, width) for width in (NARROW, WIDE)]
    return min(found, key=lambda gaps: gaps.nbytes)


def from_gaps(gaps: Tensor, lengths: Tensor, total: int) -> tuple[Tensor, Tensor]:
    """Return the row and the place of each entry; `lengths` tells how many gaps each row has.

    `total` is how many entries there are: as many as gaps, if none of them is an escape.

    >>> rows, places = from_gaps(to_gaps(torch.tensor([2, 3, 70_000])), torch.tensor([4]), 3)
    >>> places.tolist()
    [2, 3, 70000]
    """
    escape = ESCAPES[gaps.dtype]
    free = gaps.to(torch.int64) & escape
    is_escape = free == escape
    reached = torch.where(is_escape, free, free + 1).cumsum(0)
    rows = torch.arange(len(lengths), device=gaps.device)
    rows = rows.repeat_interleave(lengths, output_size=len(gaps))
    before = torch.cat([reached.new_zeros(1), reached])[lengths.cumsum(0) - lengths]
    places = reached - before[rows] - 1
    if total == len(gaps):
        return rows, places
    entry = torch.where(is_escape, total, (~is_escape).cumsum(0) - 1)
    found = reached.new_empty(2, total + 1)  # escapes go to the last column, which is cut off
    found[:, entry] = torch.stack([rows, places])
    return found[0, :-1], found[1, :-1]


def _escaped(free: Tensor, width: torch.dtype) -> Tensor:
    escape = ESCAPES[width]
    escapes = free.div(escape, rounding_mode="floor")
    gaps = free.new_full((len(free) + int(escapes.sum()),), escape)
    gaps[torch.arange(len(free), device=free.device) + escapes.cumsum(0)] = free % escape
    return gaps.to(width)
