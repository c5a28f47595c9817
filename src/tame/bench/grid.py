"""A grid of experiments: methods x streams x seeds, each a cell with a folder of its own."""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from tame.bench.experiment import Experiment, from_table
from tame.bench.grids import grids, read_choices
from tame.bench.presets import read_preset
from tame.config import Table, convert, merge
from tame.errors import ConfigError, suggest
from tame.registry import METHODS

_KEYS = ("about", "seeds", "streams", "methods", "all", "tuning", "detection")
# what a method's table says beside its settings
_OF_ROWS = ("method", "settings", "seeds", "streams", "on", "minutes", "tune", "tuned")
_COMPARED = ("default", "paper", "without_rollback")  # rows that `detection` may name
_OF_STREAMS = ("stream", "run", "seed", "device", "deterministic", "preset", "method")
_NAME = re.compile(r"\w[\w+.@' -]*")
_FOLLOWED = {"run": {"matrix": True, "threads": 1}}  # unless a grid says otherwise


@dataclass(frozen=True)
class Cell:
    """One experiment of a grid: a row of the table, on a stream, with a seed."""

    row: str
    stream: str
    experiment: Experiment
    minutes: float = 0.0  # how long it is thought to take: the longest are begun first

    @property
    def seed(self) -> int:
        """The seed that fixes class order, data order and first weights."""
        return self.experiment.seed

    @property
    def key(self) -> str:
        """A digest of the resolved configuration, without what came later and changes nothing."""
        text = json.dumps(self.experiment.table(whole=False), sort_keys=True)
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
    about: str = ""
    detection: Mapping[str, str] | None = None  # which rows are compared, where that is its matter

    def remarked(self, remark: str) -> "Grid":
        """Return the same grid with something more said of it."""
        return replace(self, about=f"{self.about} {remark}".strip())

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
    return grid_of(read_plan(name), changes)


@dataclass(frozen=True)
class Plan:
    """What a grid's file says, and what was chosen for its rows by tuning, if anything was."""

    source: str  # the name or file it was read by
    table: Table
    chosen: Table
    among: tuple[str, ...] = ()  # streams to run; all if there are none
    instead: tuple[int, ...] = ()  # seeds in place of those the file names

    @property
    def name(self) -> str:
        """What the grid is called."""
        return Path(self.source).stem

    @property
    def about(self) -> str:
        """The regime, in words."""
        return " ".join(str(self.table.get("about", "")).split())

    @property
    def streams(self) -> dict[str, Table]:
        """The table of every stream."""
        return _named(self.table, "streams")

    @property
    def rows(self) -> dict[str, Table]:
        """The table of every row."""
        return _named(self.table, "methods")

    @property
    def detection(self) -> dict[str, str] | None:
        """The rows that a grid of shift detection compares, by their part in it."""
        said = self.table.get("detection")
        for part in said or ():
            if part not in _COMPARED:
                raise ConfigError(f"unknown key 'detection.{part}'{suggest(part, _COMPARED)}")
        return said

    def only(
        self, rows: Sequence[str], streams: Sequence[str] = (), seeds: Sequence[int] = ()
    ) -> "Plan":
        """Return the plan of some rows and streams alone, with these seeds; of all, if none."""
        for kind, asked, known in (("row", rows, self.rows), ("stream", streams, self.streams)):
            for name in asked:
                if name not in known:
                    raise ConfigError(f"no {kind} named '{name}'{suggest(name, known)}")
        chosen = {name: given for name, given in self.rows.items() if not rows or name in rows}
        table = {**self.table, "methods": chosen}
        instead = _seeds(list(seeds)) if seeds else ()
        return replace(self, table=table, among=tuple(streams), instead=instead)

    def wanted(self, row: str) -> dict[str, tuple[int, ...]]:
        """Return the seeds of a row on each of its streams: the row's own, the stream's or all."""
        given, all_seeds = self.rows[row], self.table.get("seeds", [0])
        return {
            name: self.instead
            or _seeds(given.get("seeds", self.streams[name].get("seeds", all_seeds)))
            for name in _streams(row, given, self.streams)
            if not self.among or name in self.among
        }

    def tuned(self, row: str, stream: str) -> Table:
        """Return what was chosen for a row, or for the row it takes its choice from."""
        whose = self.rows[row].get("tuned", row)
        found: Table = self.chosen.get(stream, {}).get(whose, {})
        return found

    def experiment(self, row: str, stream: str, changes: Sequence[Mapping[str, Any]]) -> Experiment:
        """Return the experiment of a row on a stream, with changes on top."""
        given = self.rows[row]
        own = [dict(self.table.get("all", {})), *_own(given, stream)]
        return _resolve(row, given, self.streams[stream], [*own, *changes])

    def minutes(self, row: str, stream: str) -> float:
        """Return how long a cell is thought to take."""
        said = self.rows[row].get("minutes", 0.0)
        return float(said.get(stream, 0.0) if isinstance(said, dict) else said)


def grid_of(plan: Plan, changes: Sequence[Mapping[str, Any]] = ()) -> Grid:
    """Return the grid a plan describes."""
    cells = tuple(_cells(plan, changes))
    if not cells:
        raise ConfigError(
            f"nothing to run: {', '.join(plan.rows)} of {plan.name} not on {', '.join(plan.among)}"
        )
    return Grid(plan.name, cells, plan.about, plan.detection)


def read_plan(name: str) -> Plan:
    """Return what a packaged grid or a TOML file says, with the choices of its tuning."""
    try:
        table = tomllib.loads(_text(name))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name} is not valid TOML: {error}") from error
    for key in table:
        if key not in _KEYS:
            raise ConfigError(f"unknown key '{key}' in grid {name}{suggest(key, _KEYS)}")
    return Plan(name, table, read_choices(name))


def _text(name: str) -> str:
    if Path(name).suffix == ".toml":
        if not Path(name).is_file():
            raise ConfigError(f"there is no file {name}")
        return Path(name).read_text(encoding="utf-8")
    known = dict(grids())
    if name not in known:
        raise ConfigError(f"no grid named '{name}'{suggest(name, known)}")
    return known[name].read_text(encoding="utf-8")


def _cells(plan: Plan, changes: Sequence[Mapping[str, Any]]) -> Iterator[Cell]:
    wanted = {row: plan.wanted(row) for row in plan.rows}
    every = (seeds for own in wanted.values() for seeds in own.values())
    for seed in dict.fromkeys(seed for seeds in every for seed in seeds):
        for stream in plan.streams:
            for row, own in wanted.items():
                if seed in own.get(stream, ()):
                    upon = [plan.tuned(row, stream), *changes, {"seed": seed}]
                    experiment = plan.experiment(row, stream, upon)
                    yield Cell(row, stream, experiment, plan.minutes(row, stream))


def _resolve(
    row: str, given: Table, setting: Table, own: Sequence[Mapping[str, Any]]
) -> Experiment:
    """Return the experiment of a cell; of presets only what the method knows is taken."""
    method = given.get("method", row)
    preset = setting.get("preset", "embedded-split")
    said = {k: v for k, v in setting.items() if k not in ("preset", "seeds")}
    table = merge(read_preset(preset), said)
    if "settings" in given:
        taken = read_preset(given["settings"])
        table = merge(table, {k: v for k, v in taken.items() if k not in _OF_STREAMS})
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


def _streams(row: str, given: Table, streams: Mapping[str, Table]) -> tuple[str, ...]:
    """Return the streams of a row: all, unless it names some."""
    chosen: tuple[str, ...] = convert(
        tuple[str, ...], given.get("streams", list(streams)), f"{row}.streams"
    )
    for name in (*chosen, *given.get("on", {})):
        if name not in streams:
            raise ConfigError(f"'{row}' names stream '{name}'{suggest(name, streams)}")
    return chosen


def _seeds(value: Any) -> tuple[int, ...]:
    found: tuple[int, ...] = convert(tuple[int, ...], value, "seeds")
    if not found or len(set(found)) < len(found):
        raise ConfigError(f"seeds are one or more different numbers, not {value!r}")
    return found
