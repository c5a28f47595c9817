"""The result files of the paper's runs: read, checked, and grouped over seeds."""

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tame.bench.record import FORMAT, Record, Trace
from tame.bench.store import read_json, read_remark
from tame.errors import RunError

_NAMED = re.compile(r"(?P<name>.+)-seed(?P<seed>\d+)")
_NEEDED: dict[str, type | tuple[type, ...]] = {
    "method": str,
    "stream": dict,
    "seed": int,
    "accuracy": dict,
    "detection": dict,
    "segments": list,
    "shifts": list,
    "expert_table": list,
    "per_segment": list,
    "parameters": dict,
}
_SHARED = ("permute", "domains")  # streams whose segments have the same labels by nature


@dataclass(frozen=True)
class Group:
    """All runs of one configuration, which differ in nothing but their seed, in its order."""

    name: str
    runs: tuple[dict[str, Any], ...]

    @property
    def first(self) -> dict[str, Any]:
        """Return the run of the lowest seed."""
        return self.runs[0]

    @property
    def method(self) -> str:
        """Return the method that learned."""
        return str(self.first["method"])

    @property
    def changes(self) -> list[str]:
        """Return what was set differently from the preset."""
        return list(self.first.get("changes") or [])

    @property
    def data(self) -> str:
        """Return the preset without its folder and its variant: what the paper calls a data set."""
        preset = str(self.first.get("preset") or self.name).removeprefix("paper/")
        return preset.removesuffix("-one-pass").removesuffix("-global").removesuffix("-one-norm")

    @property
    def labels(self) -> str:
        """Return the form of the labels: local, global, or shared by all segments."""
        stream = self.first["stream"]
        return "shared" if stream.get("name") in _SHARED else str(stream.get("labels", "global"))

    @property
    def shortened(self) -> bool:
        """Say whether consolidation was cut short, so that no accuracy means anything."""
        return any(".epochs=" in change for change in self.changes)


@dataclass(frozen=True)
class Results:
    """Every group of a folder by its name, the traces beside them, and what is said of all."""

    folder: Path
    groups: dict[str, Group]
    remark: str = ""

    def get(self, name: str) -> Group | None:
        """Return the group of a name, if it was run."""
        return self.groups.get(name)

    def record(self, name: str, seed: int = 0) -> Record | None:
        """Return the run of a seed with its trace, if that was kept."""
        path = self.folder / f"{name}-seed{seed}.events.jsonl.gz"
        group = self.get(name)
        runs = [run for run in group.runs if run["seed"] == seed] if group else []
        if not runs or not path.exists():
            return None
        return Record(runs[0], _read_trace(path))


def read_results(folder: Path) -> Results:
    """Return the groups of a folder of NAME-seedN.json; refuse one that mixes configurations."""
    if not folder.is_dir():
        raise RunError(f"there is no folder {folder}; name one that holds results with --results")
    found: dict[str, list[tuple[Path, dict[str, Any]]]] = defaultdict(list)
    for path in sorted(folder.glob("*-seed*.json")):
        result = _read(path)
        match = _NAMED.fullmatch(path.stem)
        found[result.get("name") or (match["name"] if match else path.stem)].append((path, result))
    if not found:
        raise RunError(f"{folder} holds no result named like split-mnist-seed0.json")
    groups = {name: _grouped(name, entries) for name, entries in found.items()}
    return Results(folder, groups, read_remark(folder))


def _read(path: Path) -> dict[str, Any]:
    result = read_json(path)
    if result.get("format") != FORMAT:
        raise RunError(f"{path} has format {result.get('format')!r}; this version reads {FORMAT}")
    for key, kind in _NEEDED.items():
        if not isinstance(result.get(key), kind):
            raise RunError(f"{path}: '{key}' is missing or cannot be {result.get(key)!r:.60}")
    return result


def _grouped(name: str, entries: Iterable[tuple[Path, dict[str, Any]]]) -> Group:
    ordered = sorted(entries, key=lambda entry: entry[1]["seed"])
    first, model = ordered[0]
    seen: dict[int, Path] = {}
    for path, run in ordered:
        for field, value in _configuration(run).items():
            if value != _configuration(model)[field]:
                raise RunError(
                    f"{first.name} and {path.name} are both called '{name}' but differ in {field}: "
                    f"{_configuration(model)[field]!r} and {value!r}"
                )
        if run["seed"] in seen:
            other = seen[run["seed"]].name
            raise RunError(f"{other} and {path.name} are both seed {run['seed']} of '{name}'")
        seen[run["seed"]] = path
    return Group(name, tuple(run for _, run in ordered))


def _configuration(run: dict[str, Any]) -> dict[str, Any]:
    return {
        "method": run["method"],
        "stream": run["stream"],
        "preset": run.get("preset"),
        "changes": run.get("changes") or [],
        "versions.tame": (run.get("versions") or {}).get("tame"),
    }


def _read_trace(path: Path) -> Trace:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            trace = Trace.of([json.loads(line) for line in lines])
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path} is no trace of tame's: {error!r}") from error
    if not len(trace.step):
        raise RunError(f"{path} holds no event")
    return trace
