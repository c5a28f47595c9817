"""The cells of grids that were kept, as groups over seeds: competitors' rows of the tables."""

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tame.bench.harvest import read_harvest
from tame.bench.paper.published import BOTH, NOTHING, TRAINING
from tame.bench.paper.results import Group
from tame.bench.store import read_remark


@dataclass(frozen=True)
class Rivals:
    """Groups of kept cells by grid, stream and row, and what is said of a grid's cells."""

    groups: dict[tuple[str, str, str], Group] = field(default_factory=dict)
    remarks: dict[str, str] = field(default_factory=dict)

    def get(self, grid: str, stream: str, row: str) -> Group | None:
        """Return the cells of a row, if it was run."""
        return self.groups.get((grid, stream, row))

    def of(self, grid: str) -> dict[str, Group]:
        """Return the rows of a grid of one stream."""
        return {row: group for (name, _, row), group in self.groups.items() if name == grid}

    @property
    def grids(self) -> list[str]:
        """The names of the grids there are cells of."""
        return list(dict.fromkeys(name for name, _, _ in self.groups))


def read_rivals(folder: Path | None) -> Rivals:
    """Return the kept cells of every grid below a folder; none where there is no such folder."""
    if folder is None or not folder.is_dir():
        return Rivals()
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for cell in read_harvest(folder):
        found[cell["grid"], cell["stream_name"], cell["row"]].append(cell)
    groups = {
        key: Group(f"{key[0]}/{key[2]}", tuple(sorted(cells, key=lambda cell: cell["seed"])))
        for key, cells in found.items()
    }
    return Rivals(groups, {grid: read_remark(folder / grid) for grid, _, _ in groups})


def told_when(group: Group) -> str:
    """Return the paper's heading for what a row is told."""
    told = group.first["told"]
    return BOTH if "TEST_TASK" in told["testing"] else TRAINING if told["training"] else NOTHING


def untold(run: dict[str, Any]) -> float | None:
    """Return the accuracy of one sample at a time with nothing told, in per cent."""
    found = run.get("untold_accuracy")
    return None if found is None else 100.0 * found


def kept_bytes(run: dict[str, Any]) -> float | None:
    """Return all bytes a learner keeps."""
    sizes = run.get("bytes")
    return None if sizes is None else sizes["model"] + sizes["samples"] + sizes["training_state"]
