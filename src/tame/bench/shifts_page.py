"""A grid of shift detection as text and a picture: every stream, and how the default stands."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tame.bench.grid import Grid
from tame.bench.leaderboard import Board, Measure, Row, headline
from tame.bench.paper.canvas import save
from tame.bench.paper.layout import table
from tame.bench.shifts import (
    COLUMNS,
    SOON,
    average,
    best,
    changes,
    gap,
    leaking,
    misplaced,
    named,
    over_streams,
    pooled,
    prequential,
    recovered,
    total,
)
from tame.bench.shifts_figure import trade_off
from tame.bench.store import write_text
from tame.bench.wording import DASH

NOTES = {
    "alarm, sure": "median (longest) number of batches from the first that holds any sample of a "
    "new segment to the alarm, and to the switch or recruit it led to for good; in samples: all "
    "of those batches",
    "missed": "changes that led to no commitment before the next, of all changes of all seeds",
    "false": "switches and recruits that belong to no change, all seeds together",
    "withdrawn": "suspicions that came to nothing, which is right where nothing changed",
    "wrong reuse": "switches to an expert that stands for another origin",
    "wrong recruits": "recruits while there was an expert for that origin",
    "experts off": "experts in the end less origins, mean; in how many runs the number is exact",
    "ARI": "adjusted Rand index of the expert that learned a batch and its origins",
    "strict": "share of held-out samples given their own label, mean over origins (within the "
    "segment where labels are local and nobody routes)",
    "prequential": 'each batch predicted with when="now" before it is learned',
    "misplaced": "per cent of the samples in the experts' reservoirs that are another origin's, or "
    "a burst's",
    "±": "in the tables of streams half of the 95 % interval over seeds; elsewhere one standard "
    "error, of differences seed by seed",
}

_TOGETHER = ("alarm", "sure", "missed", "false", "wrong reuse", "wrong recruits", "experts off")


def write_shifts(grid: Grid, boards: Sequence[Board], root: Path) -> Path:
    """Write `detection.md` and its picture, `detection.svg` and `.png`; return the text's place."""
    compared = grid.detection or {}
    plate = trade_off(boards)
    if plate is not None:
        save(plate, root)
    path = root / "detection.md"
    write_text(path, markdown(grid.name, boards, compared, grid.about, picture=plate is not None))
    return path


def markdown(
    name: str,
    boards: Sequence[Board],
    compared: Mapping[str, str],
    about: str = "",
    *,
    picture: bool = False,
) -> str:
    """Return all tables as Markdown."""
    parts = [f"# {name}: shifts", about]
    for measure, what in ((headline, "strict"), (prequential, "prequential")):
        parts += [f"## The default, by {what} accuracy", *_standing(boards, compared, measure)]
    if picture:
        parts += ["## Delay against false alarms", "![delay against false alarms](detection.svg)"]
    parts += [*_all_rows(boards), *_recovery(boards), *_rollback(boards, compared)]
    parts += [part for board in boards for part in _stream(board)]
    parts += ["## What each number means", "\n".join(f"- **{k}**: {v}" for k, v in NOTES.items())]
    return "\n\n".join(part for part in parts if part) + "\n"


def _all_rows(boards: Sequence[Board]) -> Iterator[str]:
    """Yield what every row did on all streams whose labels do not leak, taken together."""
    found = pooled(boards)
    if not found:
        return
    yield "## Every row, over all streams whose labels do not leak"
    together = [column for column in COLUMNS if column.title in _TOGETHER]
    head = ["row", *(column.title for column in together), "strict", "prequential"]
    lines = [
        [
            name,
            *(column.write(row) for column in together),
            *(over_streams(found[name], measure) for measure in (headline, prequential)),
        ]
        for name, row in _joined(found).items()
    ]
    yield table(head, lines)
    yield "Accuracies are means over streams; all else is over all changes of all runs."


def _joined(found: Mapping[str, Sequence[Row]]) -> dict[str, Row]:
    return {
        name: Row(name, tuple(run for row in rows for run in row.runs))
        for name, rows in found.items()
    }


def _stream(board: Board) -> Iterator[str]:
    yield f"## {board.stream}" + (" (labels leak)" if leaking(board) else "")
    if leaking(board):
        yield (
            "Segments bring labels that the one before did not have: `label-set` sees every such "
            "beginning by construction, so no headline figure comes from here."
        )
    head = ["row", "n", *(column.title for column in COLUMNS)]
    lines = [
        [row.name, str(len(row.runs)), *(column.write(row) for column in COLUMNS)]
        for row in board.rows
    ]
    yield table(head, lines)


def _standing(
    boards: Sequence[Board], compared: Mapping[str, str], measure: Measure
) -> Iterator[str]:
    """Yield how the default stands to the best row and to the paper's, stream by stream."""
    default, paper = compared.get("default", ""), compared.get("paper", "")
    yield (
        f"The default is `{default}`, the paper's rule `{paper}`. The best row is the best on the "
        "very runs that are compared, which flatters it."
    )
    head = ["stream", "labels leak", "best row", "default less best", "within one standard error"]
    head += ["default less paper", "wrong recruits: default, paper"]
    found = [(board, _line(board, default, paper, measure)) for board in boards]
    yield table(head, [line for _, line in found if line])
    fair = [board for board in boards if not leaking(board)]
    yield _summary(fair, default, paper, measure)


def _line(board: Board, default: str, paper: str, measure: Measure) -> list[str]:
    ours, theirs, top = named(board, default), named(board, paper), best(board, measure)
    if ours is None or top is None:
        return []
    behind = gap(top, ours, measure)
    within = None if behind is None else behind.is_within
    verdict = DASH if within is None else "yes" if within else "no"
    less = gap(ours, top, measure)
    over = None if theirs is None else gap(ours, theirs, measure)
    recruits = [
        DASH if row is None else str(total(row, "wrong_recruits")) for row in (ours, theirs)
    ]
    leaks = "yes" if leaking(board) else "no"
    is_best = top is ours
    return [
        board.stream,
        leaks,
        top.name,
        "best" if is_best else str(less or DASH),
        "yes" if is_best else verdict,
        str(over or DASH),
        ", ".join(recruits),
    ]


def _summary(boards: Sequence[Board], default: str, paper: str, measure: Measure) -> str:
    """Return the comparison with the paper's rule over all streams whose labels do not leak."""
    pairs = [(named(board, default), named(board, paper)) for board in boards]
    both = [(ours, theirs) for ours, theirs in pairs if ours is not None and theirs is not None]
    gaps = [gap(ours, theirs, measure) for ours, theirs in both]
    known = [one.mean for one in gaps if one is not None]
    if not known:
        return ""
    recruits = [sum(total(pair[place], "wrong_recruits") or 0 for pair in both) for place in (0, 1)]
    missed = [sum(total(pair[place], "missed") or 0 for pair in both) for place in (0, 1)]
    of = sum(changes(ours) for ours, _ in both)
    return (
        f"Over the {len(known)} streams whose labels do not leak: default less paper "
        f"{average(known)} points (mean and standard error over streams); wrong recruits "
        f"{recruits[0]} against {recruits[1]}; missed {missed[0]} against {missed[1]} of {of}."
    )


def _recovery(boards: Sequence[Board]) -> Iterator[str]:
    """Yield how soon every row was right again, on streams whose labels change their meaning."""
    for board in boards:
        kinds = {run["stream"]["name"] for row in board.rows for run in row.runs}
        if kinds != {"relabel"}:
            continue
        yield f"## {board.stream}: right again"
        yield (
            "Batches from a change to the first that, predicted for now before it is learned, "
            "comes to nine tenths of the last 20 before the change, by itself and with the two "
            f"after it: median (longest); how many of all within {SOON}. A meaning that is new has "
            "to be learned, one that returns to be found again."
        )
        lines = [
            [row.name, recovered(row, returned=True), recovered(row, returned=False)]
            for row in board.rows
        ]
        yield table(["row", "returned", "new"], lines)


def _rollback(boards: Sequence[Board], compared: Mapping[str, str]) -> Iterator[str]:
    """Yield the share of misplaced samples with rollback and without."""
    lines = []
    for board in boards:
        pair = [named(board, compared.get(part)) for part in ("default", "without_rollback")]
        found = [None if row is None else misplaced(row) for row in pair]
        if found[0] is None or found[1] is None:
            continue
        ratio = f"{found[0] / found[1]:.2f}" if found[1] else DASH
        lines.append([board.stream, f"{found[0]:.2f} %", f"{found[1]:.2f} %", ratio])
    if lines:
        yield "## Samples left in the wrong reservoir"
        yield table(["stream", "with rollback", "without", "ratio"], lines)
