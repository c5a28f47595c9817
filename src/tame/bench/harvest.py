"""What is kept of a grid once its checkpoints are gone: one small file a cell."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tame.bench.grid import Cell, Grid
from tame.bench.store import RunFolder, read_json, write_text
from tame.bench.sweep import DONE, Audience
from tame.config import Table, build, dump
from tame.errors import ConfigError, RunError
from tame.registry import METHODS

DIGITS = 6
_ODD = re.compile(r"[^\w.+-]+")  # in the name of a file
_LEFT_OUT = ("shifts", "segments", "expert_table", "pruning_attempts")
_NEEDED = ["grid", "row", "stream_name", "seed", "key", "method", "settings"]
_NEEDED += ["accuracy", "told", "parameters", "bytes"]


def harvest(grid: Grid, cells: Iterable[Cell], root: Path, out: Path) -> list[Path]:
    """Write the results of finished cells to OUT/GRID/STREAM.ROW-seedN.json; return where."""
    return [
        _keep(grid, cell, RunFolder(cell.folder(root)), _place(grid, cell, out)) for cell in cells
    ]


class Keeper:
    """Keeps each cell of a grid when it ends, so that a grid cut off has lost none; an audience."""

    def __init__(self, grid: Grid, root: Path, out: Path, to: Audience) -> None:
        self._grid, self._root, self._out, self._to = grid, root, out, to
        self._cells = {cell.name: cell for cell in grid.cells}
        self.begun = to.begun
        self.progress = to.progress
        self.stop_asked = to.stop_asked

    def ended(self, name: str, outcome: str, why: str) -> None:
        if outcome == DONE:
            harvest(self._grid, [self._cells[name]], self._root, self._out)
        self._to.ended(name, outcome, why)


def read_harvest(folder: Path) -> list[dict[str, Any]]:
    """Return every kept cell below a folder; refuse two configurations under one name."""
    found = [_read(path) for path in sorted(folder.glob("*/*-seed*.json"))]
    known: dict[tuple[str, ...], str] = {}
    for cell in found:
        name = (cell["grid"], cell["stream_name"], cell["row"])
        settings = json.dumps({**_distinguishing(cell), "seed": None}, sort_keys=True)
        if known.setdefault(name, settings) != settings:
            raise RunError(f"{folder} holds cells of {' / '.join(name)} with different settings")
    return found


def replant(grid: Grid, root: Path, kept: Path) -> int:
    """Give cells that were kept, with these very settings, their result back; return how many."""
    count = 0
    for cell in grid.cells:
        run, path = RunFolder(cell.folder(root)), _place(grid, cell, kept)
        if path.exists() and not run.result.exists() and _read(path)["key"] == cell.key:
            write_text(run.config, cell.experiment.to_toml())
            write_text(run.result, path.read_text(encoding="utf-8"))
            count += 1
    return count


def _place(grid: Grid, cell: Cell, kept: Path) -> Path:
    return kept / grid.name / f"{cell.stream}.{_ODD.sub('_', cell.row)}-seed{cell.seed}.json"


def _keep(grid: Grid, cell: Cell, run: RunFolder, path: Path) -> Path:
    result = run.read_result()
    if result.get("key") == cell.key:  # it was kept before, and given back
        write_text(path, json.dumps(result) + "\n")
        return path
    kept: dict[str, Any] = {
        "grid": grid.name,
        "row": cell.row,
        "stream_name": cell.stream,
        "key": cell.key,
        **{name: value for name, value in result.items() if name not in _LEFT_OUT},
        "alarms": len(result["shifts"]),
        "device": cell.experiment.device,
        "net": cell.experiment.net,
        "settings": dump(cell.experiment.settings),
    }
    write_text(path, json.dumps(rounded(kept)) + "\n")
    return path


def rounded(value: Any) -> Any:
    """Return a result, or a part of one, as kept cells have it: no longer than it need be."""
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list | tuple) else value


def _distinguishing(cell: Mapping[str, Any]) -> Table:
    """Return what a cell's settings say, but for what came later and changes nothing.

    Nothing is filled in: a cell from before a setting that does something is another.
    """
    written: Table = cell["settings"]
    try:
        settings = build(METHODS.get(cell["method"]).settings_type, written)
    except ConfigError:  # of another time: what it says is what there is
        return written
    return _within(written, dump(settings, whole=False))


def _within(table: Table, other: Table) -> Table:
    """Return those entries of a table that another one has, too, table by table."""
    return {
        key: _within(value, other[key]) if isinstance(value, dict) else value
        for key, value in table.items()
        if key in other
    }


def _read(path: Path) -> dict[str, Any]:
    found = read_json(path)
    for key in _NEEDED:
        if key not in found:
            raise RunError(f"{path} is no kept cell of a grid: it has no '{key}'")
    return found
