"""What a finished run left behind, read from its folder and checked before anything is drawn."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tame.bench.store import read_json
from tame.errors import RunError

FORMAT = 1
SMOOTHED = "smoothed loss"  # what the paper's rule compares: it is in units of the loss
NOBODY = -1  # the expert of an event whose learner has none

_MAYBE = (int, float, NoneType)
_SHAPE: dict[str, Any] = {
    "method": object,
    "stream": object,
    "seed": object,
    "hints": [object],
    "accuracy": {"strict": _MAYBE, "within_segment": _MAYBE, "oracle": _MAYBE, "pooled": _MAYBE},
    "selector_accuracy": _MAYBE,
    "per_segment": [
        {
            "origin": int,
            "name": object,
            "samples": int,
            "strict": _MAYBE,
            "within_segment": _MAYBE,
            "oracle": _MAYBE,
            "selector": _MAYBE,
            "routed": {},
        }
    ],
    "experts": (int, NoneType),
    "expert_table": [{"id": int, "stands_for": (int, NoneType), "samples": (int, NoneType)}],
    "segments": [{"origin": int, "name": object, "start": int}],
    "shifts": [{"step": int, "change": str, "expert": (int, NoneType)}],
    "detection": {"delays": [_MAYBE], "false_alarms": int, "missed": int},
    "parameters": {},
    "bytes": {},
    "samples": int,
    "seconds": {},
}


@dataclass(frozen=True)
class Trace:
    """Every observation of a run as columns; what is not a finite number is NaN.

    >>> Trace.of([{"step": 0, "loss": 2.3, "smoothed": None, "threshold": None, "expert": 0}]).loss
    array([2.3])
    """

    step: NDArray[np.int64]
    loss: NDArray[np.float64]
    smoothed: NDArray[np.float64]
    threshold: NDArray[np.float64]
    expert: NDArray[np.int64]
    restarted: NDArray[np.bool_]

    @classmethod
    def of(cls, events: list[dict[str, Any]]) -> "Trace":
        """Return the columns of events as `events.jsonl` holds them."""
        experts = [event["expert"] for event in events]
        return cls(
            np.array([event["step"] for event in events], dtype=np.int64),
            _finite([event["loss"] for event in events]),
            _finite([event["smoothed"] for event in events]),
            _finite([event["threshold"] for event in events]),
            np.array([NOBODY if e is None else e for e in experts], dtype=np.int64),
            np.array([bool(event.get("restarted")) for event in events], dtype=np.bool_),
        )


@dataclass(frozen=True)
class Record:
    """A run's result and trace, with the few lookups that several parts of a report need."""

    result: dict[str, Any]
    trace: Trace

    @property
    def has_experts(self) -> bool:
        """Say whether the learner predicts through experts, so that routing can be shown."""
        return bool(self.result["experts"])

    @property
    def compares(self) -> str:
        """Return what was held against the threshold; results of old do not say."""
        return str(self.result.get("compares") or SMOOTHED)

    @property
    def first(self) -> int:
        """Return the first step of the trace, which must not be empty."""
        return int(self.trace.step[0])

    @property
    def end(self) -> int:
        """Return the step after the last."""
        return int(self.trace.step[-1]) + 1

    @cached_property
    def names(self) -> dict[int, str]:
        """Return what each origin is called."""
        rows = [*self.result["per_segment"], *self.result["segments"]]
        return {row["origin"]: str(row["name"]) for row in rows}

    @cached_property
    def stands_for(self) -> dict[int, int | None]:
        """Return the origin each expert stands for, if any."""
        return {row["id"]: row["stands_for"] for row in self.result["expert_table"]}


def read_record(folder: Path) -> Record:
    """Return what the run in a folder left; refuse a folder with a missing or broken file."""
    return Record(_read_result(folder / "result.json"), _read_trace(folder / "events.jsonl"))


def _read_result(path: Path) -> dict[str, Any]:
    result = read_json(path)
    if result.get("format") != FORMAT:
        raise RunError(f"{path} has format {result.get('format')!r}; this version reads {FORMAT}")
    for complaint in _complaints(result, _SHAPE, ""):
        raise RunError(f"{path}: {complaint}")
    return result


def _read_trace(path: Path) -> Trace:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"{path} cannot be read: {error}") from error
    try:
        return Trace.of([_event(path, *line) for line in enumerate(lines, start=1)])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise RunError(f"{path} holds an event that is none of tame's: {error!r}") from error


def _event(path: Path, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise RunError(f"{path}, line {number}, is not valid JSON: {error}") from error


def _complaints(value: Any, shape: Any, where: str) -> Iterator[str]:
    if isinstance(shape, dict):
        yield from _mapping_complaints(value, shape, where)
    elif isinstance(shape, list):
        if not isinstance(value, list):
            yield f"'{where}' should be a list, not {value!r:.60}"
            return
        for index, item in enumerate(value):
            yield from _complaints(item, shape[0], f"{where}[{index}]")
    elif not isinstance(value, shape):
        yield f"'{where}' cannot be {value!r:.60}"


def _mapping_complaints(value: Any, shape: Mapping[str, Any], where: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"'{where}' should be an object, not {value!r:.60}"
        return
    for key, inner in shape.items():
        path = f"{where}.{key}".lstrip(".")
        if key in value:
            yield from _complaints(value[key], inner, path)
        else:
            yield f"'{path}' is missing"


def _finite(column: list[float | None]) -> NDArray[np.float64]:
    values = np.array(column, dtype=np.float64)
    values[~np.isfinite(values)] = np.nan
    return values
