"""Ascending places in a long row as 16-bit gaps, whatever its length."""

import torch
from torch import Tensor

ESCAPE = 0xFFFF  # as many places are passed, and none is named


def to_gaps(places: Tensor) -> Tensor:
    """Return the free places before each named one; a longer gap is led in by escapes.

    >>> to_gaps(torch.tensor([2, 3, 70_000])).tolist()
    [2, 0, -1, 4461]
    """
    before = torch.cat([places.new_full((1,), -1), places[:-1]])
    free = places - before - 1
    escapes = free.div(ESCAPE, rounding_mode="floor")
    gaps = places.new_full((len(places) + int(escapes.sum()),), ESCAPE)
    gaps[torch.arange(len(places), device=places.device) + escapes.cumsum(0)] = free % ESCAPE
    return gaps.to(torch.int16)


def from_gaps(gaps: Tensor, lengths: Tensor, total: int) -> tuple[Tensor, Tensor]:
    """Return the row and the place of each entry; `lengths` tells how many gaps each row has.

    `total` is how many entries there are: as many as gaps, if none of them is an escape.

    >>> rows, places = from_gaps(to_gaps(torch.tensor([2, 3, 70_000])), torch.tensor([4]), 3)
    >>> places.tolist()
    [2, 3, 70000]
    """
    free = gaps.to(torch.int64) & ESCAPE
    is_escape = free == ESCAPE
    reached = torch.where(is_escape, free, free + 1).cumsum(0)
    rows = torch.arange(len(lengths), device=gaps.device)
    rows = rows.repeat_interleave(lengths, output_size=len(gaps))
    before = torch.cat([reached.new_zeros(1), reached])[lengths.cumsum(0) - lengths]
    places = reached - before[rows] - 1
    if total == len(gaps):
        return rows, places
    return rows[~is_escape], places[~is_escape]
