"""Whether a packed shelf that comes from a file can be opened."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tame.core.layout import Layout
from tame.core.terse import decode
from tame.types import State

COLUMNS = 7


def check_shelf(state: State) -> None:
    """Refuse, by a `ValueError`, what would fail or answer nonsense once it is asked."""
    ids, table = (state[name].cpu().numpy() for name in ("ids", "table"))
    if table.shape != (len(ids), COLUMNS) or (table < 0).any() or (np.diff(ids) <= 0).any():
        raise ValueError("the table of packed experts is damaged")
    for name, lengths in zip(("values", "gaps", "rest"), table.T, strict=False):
        if state[name].shape != (lengths.sum(),):
            found = tuple(state[name].shape)
            raise ValueError(f"packed {name} has shape {found}, not ({lengths.sum()},)")
    layouts = [Layout.restore(layout) for layout in state["layouts"]]
    if (table[:, 3] >= len(layouts)).any() or (table[:, 4] >= len(state["forms"])).any():
        raise ValueError("packed experts are of a kind that is not described")
    _check_places(state["gaps"].cpu().numpy(), table, layouts)
    _check_rest(state["rest"].cpu().numpy(), table, state["forms"])


def _check_places(gaps: np.ndarray, table: np.ndarray, layouts: list[Layout]) -> None:
    """See that every weight has a place, inside its network."""
    for row, packed in zip(table, _cut(gaps, table[:, 1]), strict=True):
        layout = layouts[row[3]]
        width, escape = (np.uint16, 0xFFFF) if layout.wide else (np.uint8, 0xFF)
        part = np.frombuffer(packed.tobytes(), width)
        named = np.count_nonzero(part != escape)
        reached = int(part.sum(dtype=np.int64)) + named
        if named != row[0] or reached > layout.size or (named and part[-1] == escape):
            raise ValueError("the places of packed weights are damaged")


def _check_rest(rest: np.ndarray, table: np.ndarray, forms: list[Any]) -> None:
    """See that what an expert has besides its weights can be read."""
    for row, part in zip(table, _cut(rest, table[:, 2]), strict=True):
        decode(forms[row[4]], part.tobytes())


def _cut(whole: np.ndarray, lengths: np.ndarray) -> Iterator[np.ndarray]:
    ends = np.cumsum(lengths, dtype=np.int64)
    return (whole[end - length : end] for end, length in zip(ends, lengths, strict=True))
