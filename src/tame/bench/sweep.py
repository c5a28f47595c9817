"""Working through a grid: what is done stays done, what fails is told, the rest goes on."""

import fcntl
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tame.bench.experiment import read_experiment
from tame.bench.grid import Cell, Grid, siblings
from tame.bench.store import RunFolder, write_text
from tame.errors import ConfigError, RunError

ERROR = "error.txt"
DONE, FAILED, STOPPED = "done", "failed", "stopped"


class Task(NamedTuple):
    """A cell as a worker gets it: plain data that can be sent anywhere."""

    name: str
    folder: str
    table: dict[str, Any]


class Audience(Protocol):
    """Shown how a grid gets on; `ended` with `done`, `failed` or `stopped`, and why."""

    def begun(self, name: str) -> None: ...
    def progress(self, name: str, phase: str, done: int, total: int) -> None: ...
    def ended(self, name: str, outcome: str, why: str) -> None: ...
    def stop_asked(self) -> bool: ...


class Crew(Protocol):
    """Whoever does the work: each task ends `done`, `failed` or `stopped`."""

    def work(self, tasks: Sequence[Task], audience: Audience) -> None: ...


@dataclass
class Sweep:
    """What became of a grid's cells."""

    before: list[Cell] = field(default_factory=list)
    done: list[Cell] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    stopped: bool = False

    @property
    def finished(self) -> list[Cell]:
        """Every cell that has a result."""
        return [*self.before, *self.done]


def sweep(grid: Grid, root: Path, crew: Crew, audience: Audience) -> Sweep:
    """Run the cells of a grid that have no result yet, those thought to take longest first."""
    with locked(root):
        refuse_mixtures(grid.cells, root)
        found = Sweep(before=[c for c in grid.cells if RunFolder(c.folder(root)).result.exists()])
        waiting = [cell for cell in grid.cells if cell not in found.before]
        left = {cell.name: cell for cell in sorted(waiting, key=lambda cell: -cell.minutes)}
        tasks = [Task(c.name, str(c.folder(root)), c.experiment.table()) for c in left.values()]
        crew.work(tasks, _Secretary(found, left, root, audience))
    order = [cell.name for cell in grid.cells]
    found.done.sort(key=lambda cell: order.index(cell.name))
    return found


class _Secretary:
    """Notes every ending, beside the cell and in the sweep, and passes everything on."""

    def __init__(self, found: Sweep, left: Mapping[str, Cell], root: Path, to: Audience) -> None:
        self._found, self._left, self._root, self._to = found, left, root, to
        self.begun = to.begun
        self.progress = to.progress
        self.stop_asked = to.stop_asked

    def ended(self, name: str, outcome: str, why: str) -> None:
        cell = self._left[name]
        error = cell.folder(self._root) / ERROR
        error.unlink(missing_ok=True)
        if outcome == DONE:
            self._found.done.append(cell)
        elif outcome == FAILED:
            self._found.failed[name] = why
            write_text(error, why)
        else:
            self._found.stopped = True
        self._to.ended(name, outcome, why)


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Hold a folder for one grid at a time; a process that dies lets go of it."""
    root.mkdir(parents=True, exist_ok=True)
    with (root / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise RunError(f"another tame bench is at work in {root}") from error
        yield


def refuse_mixtures(cells: Sequence[Cell], root: Path) -> None:
    """Refuse a folder that holds a row's cells under other settings than the grid's."""
    for cell in cells:
        ours = cell.experiment.table()
        for config in sorted(siblings(root, cell).glob("*/run.toml")):
            differing = differences(ours, _resolved(config))
            if differing:
                raise RunError(
                    f"{config.parent} holds '{cell.row}' on '{cell.stream}' with other settings "
                    f"({'; '.join(differing)}); a table never mixes two under one name: choose "
                    "another --out, rename the row, or remove that folder"
                )


def differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """Return where two configurations differ, their seeds apart.

    >>> differences({"seed": 1, "a": {"b": 2}}, {"seed": 2, "a": {"b": 3}})
    ['a.b is 3 there, 2 here']
    """
    here, there = dict(_flat(ours)), dict(_flat(theirs))
    keys = [key for key in {**here, **there} if key != "seed" and here.get(key) != there.get(key)]
    return [f"{key} is {there.get(key)!r} there, {here.get(key)!r} here" for key in keys]


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _resolved(config: Path) -> dict[str, Any]:
    """Return a run's configuration, with settings that came later as they would be now."""
    try:
        return read_experiment(RunFolder(config.parent)).table()
    except ConfigError:  # of another time: what it says is what there is
        return _read(config)


def _read(config: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(config.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise RunError(f"{config} cannot be read: {error}") from error
