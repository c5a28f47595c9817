"""Settled experts, packed: what is left of their weights in two tensors for all of them."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from tame.core.gaps import NARROW, WIDE, from_gaps
from tame.core.layout import Layout
from tame.core.terse import decode
from tame.engine.sending import sent
from tame.engine.together import Team, run_alone, run_together
from tame.types import State

OPEN_BYTES = 2**24
OPEN_LEAST = 8
Build = Callable[[int], nn.Module]
Kind = TypeVar("Kind", bound=Hashable)


class Record(NamedTuple):
    """One packed expert: the weights kept, the gaps between them and all else as bytes.

    `nonzero` counts its parameters that are not zero, `kept` the places inside its masks.
    """

    id: int
    layout: Layout
    values: Tensor
    gaps: Tensor
    form: str
    rest: bytes
    nonzero: int
    kept: int


class Shelf(nn.Module):
    """Any number of packed experts, oldest first; it never changes, others are made from it.

    A weight costs its own bytes and one or two for its place. `values` and `gaps` hold them for all
    experts, one after another; `rest` holds steps, label counts and detectors. An opened expert's
    weights stay open in a cache of sixteen MiB, or of eight experts if they are larger.
    """

    values: Tensor
    gaps: Tensor

    def __init__(self, state: State, build: Build, team: Team) -> None:
        super().__init__()
        self.team = team
        self.ids: np.ndarray = state["ids"].cpu().numpy()
        self._table: np.ndarray = state["table"].cpu().numpy()
        self.layouts = [Layout.restore(layout) for layout in state["layouts"]]
        self.forms: list[str] = list(state["forms"])
        self._rest: np.ndarray = state["rest"].cpu().numpy()
        self._frames = [layout.fitting(build(layout.slots).eval()) for layout in self.layouts]
        self._sizes = [sum(p.numel() for p in frame.parameters()) for frame in self._frames]
        self._ends: np.ndarray = np.cumsum(self._table[:, :3], axis=0, dtype=np.int64)
        self._open: OrderedDict[int, dict[str, Tensor]] = OrderedDict()
        self._source: tuple[Tensor, int] | None = None
        self.register_buffer("values", state["values"])
        self.register_buffer("gaps", state["gaps"])

    @classmethod
    def of(cls, records: Sequence[Record], build: Build, team: Team) -> Self:
        """Return a shelf of these experts."""
        records = sorted(records, key=lambda record: record.id)
        layouts = _numbered(record.layout for record in records)
        forms = _numbered(record.form for record in records)
        rows = [
            (*map(len, r[2:4]), len(r.rest), layouts[r.layout], forms[r.form], r.nonzero, r.kept)
            for r in records
        ]
        rest = np.frombuffer(b"".join(record.rest for record in records), np.uint8)
        state = {
            "ids": torch.tensor([record.id for record in records], dtype=torch.int64),
            "table": torch.tensor(rows, dtype=torch.int32).view(-1, 7),
            "layouts": [layout.state() for layout in layouts],
            "forms": list(forms),
            "rest": torch.from_numpy(rest.copy()),
            "values": _joined([record.values for record in records], torch.float32),
            "gaps": _joined([record.gaps for record in records], torch.uint8),
        }
        return cls(state, build, team)

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, number: int) -> bool:
        place = int(np.searchsorted(self.ids, number))
        return place < len(self.ids) and int(self.ids[place]) == number

    def row(self, number: int) -> int:
        """Return the row of the expert of that id."""
        if number not in self:
            raise KeyError(number)
        return int(np.searchsorted(self.ids, number))

    def state(self) -> State:
        """Return everything as tensors and plain values."""
        return {
            "ids": torch.from_numpy(self.ids),
            "table": torch.from_numpy(self._table),
            "layouts": [layout.state() for layout in self.layouts],
            "forms": self.forms,
            "rest": torch.from_numpy(self._rest),
            "values": self.values,
            "gaps": self.gaps,
        }

    def records(self) -> list[Record]:
        """Return its experts one by one, not to be changed."""
        return [self._record(row) for row in range(len(self))]

    def without(self, number: int) -> Self:
        """Return a shelf of all the others."""
        row, state = self.row(number), self.state()
        for column, name in enumerate(("values", "gaps", "rest")):
            begin, end = self._span(row, column)
            state[name] = torch.cat([state[name][:begin], state[name][end:]])
        for name in ("ids", "table"):
            state[name] = torch.cat([state[name][:row], state[name][row + 1 :]])
        frames = {
            layout.slots: frame for layout, frame in zip(self.layouts, self._frames, strict=True)
        }
        return type(self)(state, frames.__getitem__, self.team)

    def kind(self, row: int) -> int:
        """Return a number that experts of one layout have in common."""
        return int(self._table[row, 3])

    def kinds(self, rows: np.ndarray) -> np.ndarray:
        """Return the kind of each of many experts; where there is none (-1), -1."""
        return np.where(rows < 0, -1, self._table[rows, 3])

    def layout(self, row: int) -> Layout:
        """Return the layout of one expert's network."""
        return self.layouts[self.kind(row)]

    def rest(self, row: int) -> Any:
        """Return what an expert has besides its weights."""
        begin, end = self._span(row, 2)
        return decode(self.forms[int(self._table[row, 4])], self._rest[begin:end].tobytes())

    @cached_property
    def taught(self) -> np.ndarray:
        """Which slots each expert has been taught, a row each."""
        taught = np.zeros((len(self), 0), bool)
        for row in range(len(self)):
            counts = self.rest(row)["counts"]
            if counts["length"] > taught.shape[1]:
                taught = np.pad(taught, ((0, 0), (0, counts["length"] - taught.shape[1])))
            taught[row, counts["slots"]] = True
        return taught

    def counts(self, row: int) -> tuple[int, int, int]:
        """Return an expert's parameters that are not zero, places inside masks, and bytes."""
        values, gaps, rest, _, _, nonzero, kept = (int(n) for n in self._table[row])
        weight = self.values.element_size() * values + self.gaps.element_size() * gaps
        return nonzero, kept, weight + rest + self._table[row].nbytes + self.ids.itemsize

    def places(self, row: int) -> int:
        """Return how many parameters an expert's network has, zeros included."""
        return self._sizes[self.kind(row)]

    def dense(self, rows: Sequence[int]) -> Tensor:
        """Return the weights of experts of one layout, a row each, zeros included."""
        size = self.layout(rows[0]).size
        values = _cut(self.values, *self._spans(rows, 0))
        owner, place = self._places(rows, len(values))
        dense = values.new_zeros(len(rows) * size)
        dense[owner * size + place] = values
        return dense.view(len(rows), size)

    def kept(self, row: int) -> Tensor:
        """Say which places of an expert's row are kept."""
        begin, end = self._span(row, 0)
        _, place = self._places([row], end - begin)
        kept = torch.zeros(self.layout(row).size, dtype=torch.bool, device=self.gaps.device)
        kept[place] = True
        return kept

    def weights(self, row: int) -> dict[str, Tensor]:
        """Return the tensors of one expert's network, not to be changed."""
        self._check_source()
        if row in self._open:
            self._open.move_to_end(row)
            return self._open[row]
        layout = self.layout(row)
        found = layout.views(self.dense([row])[0])
        found |= self.others(row)
        room = OPEN_BYTES // max(1, layout.size * self.values.element_size())
        while len(self._open) >= max(OPEN_LEAST, room):
            self._open.popitem(last=False)
        self._open[row] = found
        return found

    def others(self, row: int) -> dict[str, Tensor]:
        """Return the tensors of an expert that are kept whole."""
        if not self.layout(row).others:
            return {}
        kept: dict[str, Tensor] = self.rest(row)["others"]
        return {name: value.to(self.values.device) for name, value in kept.items()}

    def ask(self, row: int, x: Tensor) -> Tensor:
        """Return one expert's outputs."""
        return run_alone(self.frame(row), self.weights(row), x)

    def ask_together(self, rows: Sequence[int], x: Tensor, *, shared: bool) -> Tensor:
        """Return (experts, samples, outputs) of experts of one layout, in one call."""
        layout = self.layout(rows[0])
        stacked = layout.views(self.dense(rows))
        others = [self.others(row) for row in rows] if layout.others else [{}]
        stacked |= {name: torch.stack([kept[name] for kept in others]) for name in others[0]}
        return run_together(self.frame(rows[0]), stacked, x, shared=shared)

    def frame(self, row: int) -> nn.Module:
        """Return a network of the expert's form, to be run with weights in place of its own."""
        self._check_source()
        return self._frames[self.kind(row)]

    def _places(self, rows: Sequence[int], total: int) -> tuple[Tensor, Tensor]:
        """Return the row and the place of all weights of experts of one layout."""
        width = WIDE if self.layout(rows[0]).wide else NARROW
        begins, ends = self._spans(rows, 1)
        gaps = _cut(self.gaps, begins, ends).view(width)
        return from_gaps(gaps, sent((ends - begins) // width.itemsize, gaps.device), total)

    def _spans(self, rows: Sequence[int], column: int) -> tuple[np.ndarray, np.ndarray]:
        ends = self._ends[rows, column]
        return ends - self._table[rows, column], ends

    def _span(self, row: int, column: int) -> tuple[int, int]:
        end = int(self._ends[row, column])
        return end - int(self._table[row, column]), end

    def _record(self, row: int) -> Record:
        spans = [self._span(row, column) for column in range(3)]
        values, gaps = self.values[slice(*spans[0])], self.gaps[slice(*spans[1])]
        form, rest = self.forms[int(self._table[row, 4])], self._rest[slice(*spans[2])].tobytes()
        nonzero, kept, _ = self.counts(row)
        return Record(int(self.ids[row]), self.layout(row), values, gaps, form, rest, nonzero, kept)

    def _check_source(self) -> None:
        """Close everything if the weights have been changed or moved since."""
        version = 0 if self.values.is_inference() else self.values._version  # noqa: SLF001
        if self._source is None or self._source[0] is not self.values or self._source[1] != version:
            self._open.clear()
            self._source = (self.values, version)
            for frame in self._frames:
                frame.to(self.values.device, self.values.dtype)


def _numbered(kinds: Iterable[Kind]) -> dict[Kind, int]:
    """Give each different kind a number, in order of first sight."""
    return {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}


def _cut(whole: Tensor, begins: np.ndarray, ends: np.ndarray) -> Tensor:
    """Return parts of a row one after another; neighbours are cut out in one piece."""
    apart = np.flatnonzero(begins[1:] != ends[:-1]) + 1
    firsts, lasts = begins[[0, *apart]].tolist(), ends[[*(apart - 1), -1]].tolist()
    parts = [whole[begin:end] for begin, end in zip(firsts, lasts, strict=True)]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _joined(parts: Sequence[Tensor], dtype: torch.dtype) -> Tensor:
    return torch.cat(list(parts)) if parts else torch.empty(0, dtype=dtype)
