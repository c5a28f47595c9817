"""A grid of experiments: methods x streams x seeds, each a cell with a folder of its own."""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tame.bench.experiment import Experiment, from_table
from tame.bench.grids import grids
from tame.bench.presets import read_preset
from tame.config import Table, convert, merge
from tame.errors import ConfigError, suggest
from tame.registry import METHODS

_KEYS = ("seeds", "streams", "methods", "all")
_OF_ROWS = ("method", "seeds", "streams", "on")  # what a method's table says beside its settings
_NAME = re.compile(r"\w[\w+.@' -]*")
_FOLLOWED = {"run": {"matrix": True, "threads": 1}}  # unless a grid says otherwise


@dataclass(frozen=True)
class Cell:
    """One experiment of a grid: a row of the table, on a stream, with a seed."""

    row: str
    stream: str
    experiment: Experiment

    @property
    def seed(self) -> int:
        """The seed that fixes class order, data order and first weights."""
        return self.experiment.seed

    @property
    def key(self) -> str:
        """A digest of the resolved configuration."""
        text = json.dumps(self.experiment.table(), sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()

    @property
    def name(self) -> str:
        """What people call it."""
        return f"{self.row} on {self.stream}, seed {self.seed}"

    def folder(self, root: Path) -> Path:
        """Return the folder of its run."""
        return siblings(root, self) / f"seed{self.seed}-{self.key}"


def siblings(root: Path, cell: Cell) -> Path:
    """Return the folder of all cells of a cell's row and stream."""
    return root / "cells" / cell.stream / cell.row


@dataclass(frozen=True)
class Grid:
    """A named grid and its cells, in the order they are run."""

    name: str
    cells: tuple[Cell, ...]

    @property
    def rows(self) -> list[str]:
        """The names of the table's rows."""
        return list(dict.fromkeys(cell.row for cell in self.cells))

    @property
    def streams(self) -> list[str]:
        """The names of the streams."""
        return list(dict.fromkeys(cell.stream for cell in self.cells))


def read_grid(name: str, changes: Sequence[Mapping[str, Any]] = ()) -> Grid:
    """Return a packaged grid, or that of a TOML file, every cell resolved and checked.

    >>> [cell.name for cell in read_grid("digits").cells][:2]
    ['finetune on split, seed 0', 'joint on split, seed 0']
    """
    path = Path(name)
    try:
        table = tomllib.loads(_text(name))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name} is not valid TOML: {error}") from error
    for key in table:
        if key not in _KEYS:
            raise ConfigError(f"unknown key '{key}' in grid {name}{suggest(key, _KEYS)}")
    return Grid(path.stem, tuple(_cells(table, changes)))


def _text(name: str) -> str:
    if Path(name).suffix == ".toml":
        if not Path(name).is_file():
            raise ConfigError(f"there is no file {name}")
        return Path(name).read_text(encoding="utf-8")
    known = dict(grids())
    if name not in known:
        raise ConfigError(f"no grid named '{name}'{suggest(name, known)}")
    return known[name].read_text(encoding="utf-8")


def _cells(table: Table, changes: Sequence[Mapping[str, Any]]) -> Iterator[Cell]:
    streams, rows = _named(table, "streams"), _named(table, "methods")
    seeds = _seeds(table.get("seeds", [0]))
    wanted = {row: _wanted(row, given, streams, seeds) for row, given in rows.items()}
    everywhere = dict(table.get("all", {}))
    for seed in dict.fromkeys(seed for _, own in wanted.values() for seed in own):
        for stream, setting in streams.items():
            for row, given in rows.items():
                if stream in wanted[row][0] and seed in wanted[row][1]:
                    own = [everywhere, *_own(given, stream), *changes, {"seed": seed}]
                    yield Cell(row, stream, _resolve(row, given, setting, own))


def _resolve(
    row: str, given: Table, setting: Table, own: Sequence[Mapping[str, Any]]
) -> Experiment:
    """Return the experiment of a cell; of the preset only what the method knows is taken."""
    method = given.get("method", row)
    preset = setting.get("preset", "embedded-split")
    table = merge(read_preset(preset), {k: v for k, v in setting.items() if k != "preset"})
    knows = {f.name for f in fields(METHODS.get(method).settings_type)}
    knows |= {f.name for f in fields(Experiment)} - {"settings"}
    table = merge(_FOLLOWED, {key: value for key, value in table.items() if key in knows})
    for change in (*own, {"method": method}):
        table = merge(table, change)
    return from_table(table, preset)


def _own(given: Table, stream: str) -> list[Table]:
    return [
        {k: v for k, v in given.items() if k not in _OF_ROWS},
        given.get("on", {}).get(stream, {}),
    ]


def _named(table: Table, key: str) -> dict[str, Table]:
    found = table.get(key, {})
    if not isinstance(found, dict) or not found:
        raise ConfigError(f"a grid needs a table [{key}.NAME] for each of its {key}")
    for name, given in found.items():
        if not _NAME.fullmatch(name) or not isinstance(given, dict):
            raise ConfigError(
                f"[{key}] holds tables named by letters, digits and + . @ -: {name!r}"
            )
    return found


def _wanted(
    row: str, given: Table, streams: Mapping[str, Table], seeds: tuple[int, ...]
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the streams and seeds of a row: all, unless it names some."""
    chosen = convert(tuple[str, ...], given.get("streams", list(streams)), f"{row}.streams")
    for name in (*chosen, *given.get("on", {})):
        if name not in streams:
            raise ConfigError(f"'{row}' names stream '{name}'{suggest(name, streams)}")
    return chosen, _seeds(given.get("seeds", list(seeds)))


def _seeds(value: Any) -> tuple[int, ...]:
    found: tuple[int, ...] = convert(tuple[int, ...], value, "seeds")
    if not found or len(set(found)) < len(found):
        raise ConfigError(f"seeds are one or more different numbers, not {value!r}")
    return found
