"""What the runs of a row made of the changes in their stream, summed up over seeds."""

import math
from collections.abc import Callable, Sequence
from statistics import fmean, median, stdev
from typing import Any, NamedTuple

from tame.bench.leaderboard import Board, Measure, Row, Run, headline
from tame.bench.paper.measures import share, spread
from tame.bench.wording import DASH

SOON = 3  # batches within which a return should be as good as new


def over_all(row: Row, key: str) -> list[float]:
    """Return what every run has under a list of `detection`, one after the other."""
    return [value for run in row.runs for value in run["detection"].get(key, [])]


def total(row: Row, key: str) -> int | None:
    """Return the sum of a count of `detection`; nothing where a run has none."""
    found = [run["detection"].get(key) for run in row.runs]
    return None if None in found else sum(found)


def changes(row: Row) -> int:
    """Return how many true changes there were in all runs."""
    return len(over_all(row, "delays")) + (total(row, "missed") or 0)


def leaking(board: Board) -> bool:
    """Say whether labels give any change of the stream away."""
    return any(run["detection"].get("leaks") for row in board.rows for run in row.runs)


def prequential(run: Run) -> float | None:
    """Return the share of samples answered rightly before they were learned, in per cent."""
    found = run.get("course", {}).get("prequential")
    return None if found is None else 100.0 * found


def misplaced(row: Row) -> float | None:
    """Return the share of samples in the wrong reservoir, over all runs, in per cent."""
    found = [run.get("reservoirs") for run in row.runs]
    known = [one for one in found if one is not None]
    kept = sum(one["kept"] for one in known)
    return 100.0 * sum(one["misplaced"] for one in known) / kept if kept else None


def middle(values: Sequence[float]) -> str:
    """Return the median and, in brackets, the largest.

    >>> middle([0, 3, 1]), middle([])
    ('1 (3)', '—')
    """
    return f"{median(values):g} ({max(values):g})" if values else DASH


class Column(NamedTuple):
    """A figure of the table: its heading, and how it is written for a row."""

    title: str
    write: Callable[[Row], str]


def _missed(row: Row) -> str:
    return f"{total(row, 'missed')} of {changes(row)}"


def _count(key: str) -> Callable[[Row], str]:
    def write(row: Row) -> str:
        found = total(row, key)
        return DASH if found is None else str(found)

    return write


def _experts(row: Row) -> str:
    found = [run["detection"].get("expert_error") for run in row.runs]
    known = [one for one in found if one is not None]
    if not known:
        return DASH
    return f"{fmean(known):+.1f}, exact {sum(one == 0 for one in known)} of {len(known)}"


def _middle(key: str) -> Callable[[Row], str]:
    return lambda row: middle(over_all(row, key))


def _share(measure: Measure) -> Callable[[Row], str]:
    return lambda row: share(row.over_seeds(measure))


def _wrong(row: Row) -> str:
    found = misplaced(row)
    return DASH if found is None else f"{found:.2f}"


COLUMNS = (
    Column("alarm", _middle("delays")),
    Column("in samples", _middle("sample_delays")),
    Column("sure", _middle("commit_delays")),
    Column("in samples", _middle("commit_sample_delays")),
    Column("missed", _missed),
    Column("false", _count("false_alarms")),
    Column("withdrawn", _count("withdrawn")),
    Column("wrong reuse", _count("wrong_reuse")),
    Column("wrong recruits", _count("wrong_recruits")),
    Column("experts off", _experts),
    Column("ARI", _share(lambda run: run.get("expert_agreement"))),
    Column("strict", _share(headline)),
    Column("prequential", _share(prequential)),
    Column("misplaced", _wrong),
)


class Gap(NamedTuple):
    """How much larger a measure is in one row than in another, seed by seed."""

    mean: float
    error: float | None  # the standard error; none for one seed
    n: int

    @property
    def is_within(self) -> bool | None:
        """Whether it is no more than one standard error; unknown for one seed."""
        return None if self.error is None else self.mean <= self.error

    def __str__(self) -> str:
        error = "" if self.error is None else f" ± {self.error:.2f}"
        return f"{self.mean:+.2f}{error}"


def gap(row: Row, other: Row, measure: Measure) -> Gap | None:
    """Return how far a row is above another, over the seeds of both, with its standard error."""
    against = {run["seed"]: measure(run) for run in other.runs}
    pairs = [(measure(run), against.get(run["seed"])) for run in row.runs]
    found = [a - b for a, b in pairs if a is not None and b is not None]
    if not found:
        return None
    error = stdev(found) / math.sqrt(len(found)) if len(found) > 1 else None
    return Gap(fmean(found), error, len(found))


def best(board: Board, measure: Measure) -> Row | None:
    """Return the row of the highest mean."""
    scored = [(row, row.over_seeds(measure)) for row in board.rows]
    known = [(row, found.mean) for row, found in scored if found is not None]
    return max(known, key=lambda pair: pair[1])[0] if known else None


def named(board: Board, name: str | None) -> Row | None:
    """Return the row of a name, if the board has it."""
    return next((row for row in board.rows if row.name == name), None)


def recovered(row: Row, *, returned: bool) -> str:
    """Return how soon a row was right again after changes to something new, or that returned."""
    told: list[dict[str, Any]] = [
        one
        for run in row.runs
        for one in run.get("course", {}).get("recoveries", [])
        if one["returned"] == returned
    ]
    if not told:
        return DASH
    times = [one["batches"] for one in told if one["batches"] is not None]
    soon = sum(time <= SOON for time in times)
    never = f", never {len(told) - len(times)}" if len(times) < len(told) else ""
    return f"{middle(times)}; {soon} of {len(told)} within {SOON}{never}"


def pooled(boards: Sequence[Board]) -> dict[str, list[Row]]:
    """Return each row that is on all streams whose labels do not leak, stream by stream."""
    fair = [board for board in boards if not leaking(board)]
    rows: dict[str, list[Row]] = {}
    for board in fair:
        for row in board.rows:
            rows.setdefault(row.name, []).append(row)
    return {name: found for name, found in rows.items() if len(found) == len(fair)}


def over_streams(rows: Sequence[Row], measure: Measure) -> str:
    """Return the mean over streams of what a row has on average over seeds."""
    found = [spread.mean for row in rows if (spread := row.over_seeds(measure)) is not None]
    return f"{fmean(found):.2f}" if found else DASH


def false_rate(row: Row) -> float | None:
    """Return commitments that belong to no change, in a thousand batches."""
    batches = sum(run["samples"] / run["stream"]["batch"] for run in row.runs)
    found = total(row, "false_alarms")
    return None if found is None or not batches else 1000.0 * found / batches


def average(values: Sequence[float]) -> str:
    """Return a mean over streams with its standard error, in points.

    >>> average([1.0, 3.0]), average([2.0]), average([])
    ('+2.00 ± 1.00', '+2.00', '—')
    """
    found = spread(values)
    if found is None:
        return DASH
    error = f" ± {stdev(values) / math.sqrt(len(values)):.2f}" if len(values) > 1 else ""
    return f"{found.mean:+.2f}{error}"
