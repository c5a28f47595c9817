"""Choosing settings: as many trials for every method, judged on training samples held back.

A trial trains a row on the first segments of a stream of a seed that the grid does not use, without
a share of their samples, consolidates, and is judged by the mean accuracy on those, told what the
method declares. The best of a row's trials is its choice; the test samples are never read.
"""

import hashlib
import itertools
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tame.bench.experiment import from_table
from tame.bench.grid import Plan
from tame.bench.held_back import HeldBack
from tame.bench.preparation import prepare
from tame.bench.store import read_json, write_text
from tame.bench.sweep import DONE, Audience, Crew, Task, locked
from tame.bench.telling import Telling, answers
from tame.bench.unfinished import StopRequestedError
from tame.config import build, dump, merge
from tame.errors import ConfigError

RESULT = "result.json"
_MARK = "trial"


@dataclass(frozen=True)
class Tuning:
    """How a grid is tuned; a trial that takes more than `minutes` counts as failed.

    `passes` is how often a trial shows each sample at most; 0 is as often as the grid does.
    """

    trials: int = 8
    segments: int = 3
    seed: int = 1000
    share: float = 0.1
    passes: int = 0
    minutes: float = 8.0

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise ValueError(f"share is between 0 and 1, not {self.share}")


@dataclass(frozen=True)
class Trial:
    """One candidate of a row on a stream."""

    row: str
    stream: str
    values: Mapping[str, Any]
    table: Mapping[str, Any]
    minutes: float

    @property
    def name(self) -> str:
        """What people call it."""
        said = ", ".join(f"{key} {value}" for key, value in self.values.items())
        return f"{self.row} on {self.stream}: {said}"

    def result(self, root: Path) -> Path:
        """Return the file of its result."""
        text = json.dumps(self.table, sort_keys=True)
        key = hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
        return root / "tuning" / self.stream / self.row / key / RESULT


def trials(plan: Plan, changes: Sequence[Mapping[str, Any]] = ()) -> list[Trial]:
    """Return all trials of a grid; refuse a row that has more or fewer than the others."""
    tuning = build(Tuning, dict(plan.table.get("tuning", {})), "tuning")
    return [trial for row in plan.rows for trial in _of_row(plan, row, tuning, changes)]


def _of_row(
    plan: Plan, row: str, tuning: Tuning, changes: Sequence[Mapping[str, Any]]
) -> Iterator[Trial]:
    wanted = plan.wanted(row)
    candidates = combinations(plan.rows[row].get("tune", {}))
    if candidates and len(candidates) != tuning.trials:
        raise ConfigError(
            f"'{row}' has {len(candidates)} combinations to try; every row that is tuned has "
            f"{tuning.trials}, no more and no fewer"
        )
    if any(tuning.seed in seeds for seeds in wanted.values()):
        raise ConfigError(f"tuning has a seed of its own, and {tuning.seed} is one of '{row}'")
    for stream, values in itertools.product(wanted, candidates):
        own = [*changes, nested(values), {"seed": tuning.seed}]
        table = plan.experiment(row, stream, own).table()
        if 0 < tuning.passes < table["stream"].get("passes", 1):
            table = merge(table, {"stream": {"passes": tuning.passes}})
        table |= {_MARK: dump(tuning)}
        yield Trial(row, stream, values, table, plan.minutes(row, stream))


def combinations(given: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return every combination of the values of some settings; none where nothing is given.

    >>> combinations({"strength": [1, 2], "training.rate": [0.1]})
    [{'strength': 1, 'training.rate': 0.1}, {'strength': 2, 'training.rate': 0.1}]
    """
    if not given:
        return []
    return [dict(zip(given, row, strict=True)) for row in itertools.product(*given.values())]


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by dotted names as tables.

    >>> nested({"strength": 1, "training.rate": 0.1})
    {'strength': 1, 'training': {'rate': 0.1}}
    """
    table: dict[str, Any] = {}
    for path, value in values.items():
        part: Any = value
        for key in reversed(path.split(".")):
            part = {key: part}
        table = merge(table, part)
    return table


def untried(found: Sequence[Trial], before: Mapping[str, Any] | None) -> list[Trial]:
    """Return the trials of rows that a file of choices has not all of, tuned in the same way."""
    if before is None:
        return list(found)
    left = []
    for (stream, row), group in itertools.groupby(found, key=lambda t: (t.stream, t.row)):
        wanted = list(group)
        known = before.get("trials", {}).get(stream, {}).get(row, [])
        same = before.get("tuning") == wanted[0].table[_MARK]
        if not same or [trial["values"] for trial in known] != [dict(t.values) for t in wanted]:
            left += wanted
    return left


def tune(found: Sequence[Trial], root: Path, crew: Crew, audience: Audience) -> None:
    """Run the trials that have no result yet, those of the longest cells first."""
    with locked(root):
        left = [trial for trial in found if not trial.result(root).exists()]
        left.sort(key=lambda trial: -trial.minutes)
        folders = [str(trial.result(root).parent) for trial in left]
        crew.work(
            [Task(t.name, f, dict(t.table)) for t, f in zip(left, folders, strict=True)], audience
        )


def try_out(task: Task, watcher: Any) -> None:
    """Run a trial and write its score; one that breaks or takes too long has none."""
    begun = time.perf_counter()
    table = dict(task.table)
    tuning = build(Tuning, table.pop(_MARK), "tuning")
    try:
        found = _score(table, tuning, watcher, begun)
    except StopRequestedError:
        raise
    except Exception as error:  # noqa: BLE001 (settings that break are a result)
        found = {"score": None, "error": f"{type(error).__name__}: {error}"}
    found["seconds"] = round(time.perf_counter() - begun, 1)
    write_text(Path(task.folder) / RESULT, json.dumps(found) + "\n")


def _score(table: dict[str, Any], tuning: Tuning, watcher: Any, begun: float) -> dict[str, Any]:
    experiment = from_table(table, table["preset"])
    prepare(experiment)
    learner = experiment.learner()
    stream = HeldBack(experiment.open_stream(), tuning.segments, tuning.share)
    telling = Telling(learner.hints, stream.truth())
    watcher.phase("stream", len(stream), 0)
    for step, batch in enumerate(stream.batches()):
        telling.inform(learner, step)
        if len(batch):  # a small one may be held back whole
            watcher.step(learner.observe(batch))
        if watcher.stop_asked():
            raise StopRequestedError("stopped in the middle of a trial")
        if time.perf_counter() - begun > 60 * tuning.minutes:
            return {"score": None, "error": f"took longer than {tuning.minutes:g} minutes"}
    learner.consolidate(watcher.progress)
    shares = [
        float((answers(learner, part.x, part.origin).cpu() == part.y).double().mean())
        for part in stream.held_out()
    ]
    return {"score": round(sum(shares) / len(shares), 5), "by_segment": shares}


def choices(
    plan: Plan, found: Sequence[Trial], root: Path, before: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return all trials with a result, what they cost, and the best of each row that has all.

    Of what was chosen `before`, rows stay that have not all their trials here.
    """
    tried = {stream: dict(rows) for stream, rows in (before or {}).get("trials", {}).items()}
    chosen = {stream: dict(rows) for stream, rows in (before or {}).get("chosen", {}).items()}
    for (stream, row), group in itertools.groupby(found, key=lambda t: (t.stream, t.row)):
        trials_of = [_tried(trial, root) for trial in group]
        done = [trial for trial in trials_of if "seconds" in trial]
        if len(done) < len(trials_of) and row in chosen.get(stream, {}):
            continue
        tried.setdefault(stream, {})[row] = done
        chosen.setdefault(stream, {}).pop(row, None)
        if len(done) == len(trials_of) and (best := max(done, key=_rank))["score"] is not None:
            chosen[stream][row] = nested(best["values"])
    seconds = [t["seconds"] for rows in tried.values() for row in rows.values() for t in row]
    return {
        "command": f"tame bench {plan.name} --tune",
        "tuning": dump(build(Tuning, dict(plan.table.get("tuning", {})), "tuning")),
        "seconds": round(sum(seconds), 1),
        "trials": tried,
        "chosen": {stream: rows for stream, rows in chosen.items() if rows},
    }


def _tried(trial: Trial, root: Path) -> dict[str, Any]:
    path = trial.result(root)
    result = read_json(path) if path.exists() else {}
    return {"values": dict(trial.values), "device": trial.table["device"], **result}


def _rank(trial: Mapping[str, Any]) -> float:
    score = trial["score"]
    return -math.inf if score is None or not math.isfinite(score) else float(score)


class Tally:
    """Counts how trials ended, and passes everything on."""

    def __init__(self, to: Audience) -> None:
        self.done = 0
        self.failed: dict[str, str] = {}
        self._to = to
        self.begun = to.begun
        self.progress = to.progress
        self.stop_asked = to.stop_asked

    def ended(self, name: str, outcome: str, why: str) -> None:
        self.done += outcome == DONE
        if outcome == "failed":
            self.failed[name] = why
        self._to.ended(name, outcome, why)
