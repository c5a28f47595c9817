"""A grid's results as rows: grouped by what they were told, summed up over seeds, compared."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tame.bench.grid import Cell
from tame.bench.paper import measures
from tame.bench.paper.measures import Spread, number, share, signed, spread
from tame.bench.store import RunFolder
from tame.bench.wording import DASH, size, whole

Run = dict[str, Any]
Measure = Callable[[Run], float | None]
BOTH, TRAINING, NOTHING = (
    "told in training and in testing",
    "told in training",
    "told nothing",
)
_WORDS = {
    "BOUNDARY": "boundaries",
    "TRAIN_TASK": "task in training",
    "TEST_TASK": "task in testing",
    "TASK_COUNT": "number of tasks",
    "TEST_GROUP": "20 samples share a task",
}


@dataclass(frozen=True)
class Row:
    """All runs of one method on one stream; they differ in nothing but their seed."""

    name: str
    runs: tuple[Run, ...]

    @property
    def group(self) -> str:
        """When it was told something beyond the labelled stream."""
        told = self.runs[0]["told"]
        return BOTH if told["testing"] else TRAINING if told["training"] else NOTHING

    @property
    def told(self) -> str:
        """What it was told, in words."""
        return ", ".join(_WORDS.get(hint, hint) for hint in self.runs[0]["hints"]) or "nothing"

    @property
    def unbounded(self) -> bool:
        """Whether its memory grows with the stream."""
        return bool(self.runs[0]["unbounded"])

    def over_seeds(self, measure: Measure) -> Spread | None:
        """Return mean, interval and number of a measure; runs without it do not count."""
        found = [measure(run) for run in self.runs]
        return spread([value for value in found if value is not None])


@dataclass(frozen=True)
class Board:
    """The rows of one stream, grouped as told."""

    stream: str
    rows: tuple[Row, ...]

    @property
    def groups(self) -> list[tuple[str, list[Row]]]:
        """The rows by what they were told, most first."""
        found = [
            (name, [r for r in self.rows if r.group == name]) for name in (BOTH, TRAINING, NOTHING)
        ]
        return [(name, rows) for name, rows in found if rows]

    @property
    def best(self) -> Row | None:
        """The row of highest mean accuracy whose memory is bounded, or of all if none is."""
        scored = [(row, row.over_seeds(headline)) for row in self.rows]
        known = [(row, found.mean) for row, found in scored if found is not None]
        bounded = [pair for pair in known if not pair[0].unbounded]
        return max(bounded or known, key=lambda pair: pair[1])[0] if known else None

    def to_best(self, row: Row) -> Spread | None:
        """Return how far a row is from the best, seed by seed over the seeds of both."""
        best = self.best
        if best is None or best is row:
            return None
        return paired(row.runs, best.runs, headline)


def boards(cells: Sequence[Cell], root: Path) -> list[Board]:
    """Return the results of finished cells, a board for each stream."""
    found: dict[str, dict[str, list[Run]]] = {}
    for cell in cells:
        run = RunFolder(cell.folder(root)).read_result()
        found.setdefault(cell.stream, {}).setdefault(cell.row, []).append(run)
    return [
        Board(stream, tuple(Row(name, tuple(runs)) for name, runs in rows.items()))
        for stream, rows in found.items()
    ]


def paired(runs: Sequence[Run], others: Sequence[Run], measure: Measure) -> Spread | None:
    """Return the mean difference of a measure over the seeds that both have, with its interval."""
    against = {run["seed"]: measure(run) for run in others}
    pairs = [(measure(run), against.get(run["seed"])) for run in runs]
    return spread([a - b for a, b in pairs if a is not None and b is not None])


class Column(NamedTuple):
    """A figure of the table: its heading, how it is read off a run and how it is written."""

    title: str
    measure: Measure
    form: Callable[[Spread | None], str]


def _path(*keys: str, scale: float = 1.0) -> Measure:
    def measure(run: Run) -> float | None:
        value: Any = run
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return None if value is None else scale * value

    return measure


def _hundred(*keys: str) -> Measure:
    return _path(*keys, scale=100.0)


def headline(run: Run) -> float | None:
    """Return strict accuracy in per cent; where labels are local and nobody routes, within."""
    strict = run["accuracy"]["strict"]
    found = run["accuracy"]["within_segment"] if strict is None else strict
    return None if found is None else 100.0 * found


def kept(run: Run) -> float:
    """Return all bytes a learner keeps: model, samples, and what it needs to go on learning."""
    sizes = run["bytes"]
    return float(sizes["model"] + sizes["samples"] + sizes["training_state"])


def _routed(measure: Measure) -> Measure:
    """Return a measure of learners that have experts; of others there is none."""
    return lambda run: measure(run) if run.get("experts") else None


def pace(run: Run) -> float | None:
    """Return how many samples a second were learned while the stream ran."""
    spent = run["seconds"].get("stream")
    return run["samples"] / spent if spent else None


def time_spent(run: Run) -> float:
    """Return all seconds of a run, those of its measuring included."""
    return float(sum(run["seconds"].values()))


def plain_mean(form: Callable[[float], str]) -> Callable[[Spread | None], str]:
    """Return a form that writes the mean alone."""
    return lambda value: DASH if value is None else form(value.mean)


ACCURACY = (
    Column("strict", _hundred("accuracy", "strict"), share),
    Column("one sample, untold", _hundred("untold_accuracy"), share),
    Column("within segment", _hundred("accuracy", "within_segment"), share),
    Column("ACC", _hundred("course", "average_accuracy"), share),
)
EXPERTS = (
    Column("oracle routing", _routed(measures.oracle), share),
    Column("selector", _routed(measures.selector), share),
    Column("experts", _routed(measures.experts), number),
    Column("delay", _routed(measures.delay), number),
    Column("missed", _routed(measures.missed), number),
    Column("false alarms", _routed(measures.false_alarms), number),
)
OVER_TIME = (
    Column("BWT", _hundred("course", "backward_transfer"), signed),
    Column("FWT", _hundred("course", "forward_transfer"), signed),
    Column("forgetting", _hundred("course", "forgetting"), share),
    Column("average anytime", _hundred("course", "average_anytime"), share),
    Column("prequential", _hundred("course", "prequential"), share),
    Column("worst dip", _hundred("course", "worst_dip"), share),
)
MEANS = (
    Column("experts = segments (ARI)", _path("expert_agreement"), share),
    Column("calibration (ECE)", _hundred("calibration_error"), share),
    Column("parameters", _path("parameters", "nonzero"), plain_mean(whole)),
    Column("bytes kept", kept, plain_mean(size)),
    Column("MACs a prediction", _path("macs"), plain_mean(whole)),
    Column("samples/s", pace, plain_mean(whole)),
    Column("device-seconds", time_spent, plain_mean(whole)),
)
