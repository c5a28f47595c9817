"""The figures of losses: at a switch, with and without smoothing, on returns, on every stream."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from tame.bench.drawing import (
    BOUNDARY,
    INK,
    LOSS,
    MUTED,
    SMOOTHED,
    THRESHOLD,
    envelope,
    origin_colour,
)
from tame.bench.paper.canvas import Absent, Plate, over_steps
from tame.bench.paper.published import SETS, TABLE_1_SETS
from tame.bench.paper.results import Results
from tame.bench.record import Record

_BEFORE, _AFTER = 60, 90  # steps shown around a switch
_MOST_NAMES = 12  # of segments in a row
_POINTS = 3000  # of a line, beyond which only its extremes are drawn
_ROOM = 15.0  # points between axes and title for the names of segments
_LINES = (
    ("loss", "loss of the batch", LOSS, 0.9),
    ("smoothed", "smoothed loss", SMOOTHED, 1.3),
    ("threshold", "threshold", THRESHOLD, 1.1),
)


def switch_plate(results: Results) -> Plate | Absent:
    """Return Figure 1: the expert's loss leaves its threshold when the distribution changes."""
    title = "Figure 1: the loss at a switch"
    record = results.record("split-mnist")
    starts = [segment["start"] for segment in record.result["segments"]] if record else []
    if record is None or len(starts) < 2:  # noqa: PLR2004 (a change needs two segments)
        return Absent(title, "no trace `split-mnist-seed0`")

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        _lines(axes, record, *_around(record, starts[1]))
        axes.axvline(starts[1] - 0.5, color=BOUNDARY, linewidth=1, zorder=0.6)
        where: dict[str, Any] = {"textcoords": "offset points", "ha": "right", "color": INK}
        top = axes.get_xaxis_transform()
        axes.annotate("the segment changes", (starts[1], 0.95), (-8, 0), xycoords=top, **where)
        _mark_alarms(axes, record, *_around(record, starts[1]))
        axes.set_ylabel("loss of the active expert")
        axes.legend(loc="center left")

    caption = (
        "Split MNIST around its first change (trace `split-mnist-seed0`): the smoothed loss of the "
        "active expert leaves its threshold, and a new expert takes over, starts from the loss of "
        "a guess and learns; its threshold is wide while its loss falls."
    )
    return Plate("figure-1-switch", title, caption, (7.2, 2.9), draw)


def smoothing_plate(results: Results) -> Plate | Absent:
    """Return Figure 2: without smoothing single batches create experts."""
    title = "Figure 2: with and without smoothing"
    names = {"split-mnist": "smoothed", "split-mnist.unsmoothed": "not smoothed"}
    records = {label: results.record(name) for name, label in names.items()}
    known = {label: record for label, record in records.items() if record is not None}
    if len(known) < len(names):
        missing = [f"`{name}-seed0`" for name, label in names.items() if label not in known]
        return Absent(title, f"no trace {' and '.join(missing)}")

    def draw(figure: Figure) -> None:
        rows = figure.subplots(3, 1, sharex=True)
        for axes, (label, record) in zip(rows[:2], known.items(), strict=True):
            _lines(axes, record, record.first, record.end)
            _marked_segments(axes, record, named=False)
            axes.set(title=label, ylabel="loss", xlabel="")
        rows[0].legend(loc="upper right", bbox_to_anchor=(1, 1.22), ncols=3)
        styles = ((SMOOTHED, 3.0), (THRESHOLD, 1.2))  # the first stays visible under the second
        for style, (label, record) in zip(styles, known.items(), strict=True):
            _created(rows[2], record, *style, label)
        _marked_segments(rows[2], next(iter(known.values())), named=True)
        rows[2].set_title("experts created", pad=_ROOM)
        rows[2].set(ylabel="experts", ylim=(0, None))
        rows[2].yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        rows[2].legend(loc="upper left")
        over_steps(rows[2], 0, max(record.end for record in known.values()))

    caption = (
        "Split MNIST, a run each (traces `split-mnist-seed0` and `split-mnist.unsmoothed-seed0`): "
        "loss and threshold of the active expert, and how many experts were created by each step. "
        "Grey lines are the true changes."
    )
    return Plate("figure-2-smoothing", title, caption, (7.2, 5.4), draw)


def returns_plate(results: Results) -> Plate | Absent:
    """Return the two sequences in which segments come again."""
    title = "Figure 4: segments that return"
    wanted = {
        "returns-twice": "t1 t2 t3 t4 t5 t1 t2 t3 t4 t5",
        "returns-t2": "t1 t2 t3 t2 t4",
    }
    found = {name: results.record(name) for name in wanted}
    records = {name: record for name, record in found.items() if record is not None}
    if not records:
        return Absent(title, "no trace `returns-twice-seed0` or `returns-t2-seed0`")

    def draw(figure: Figure) -> None:
        rows = figure.subplots(len(records), 1, squeeze=False)[:, 0]
        for axes, (name, record) in zip(rows, records.items(), strict=True):
            _by_expert(axes, record, record.trace.loss)
            _marked_segments(axes, record, named=True)
            axes.set_title(wanted[name], pad=_ROOM)
            axes.set_ylabel("loss of the active expert")
            over_steps(axes, record.first, record.end)
        _expert_legend(figure, list(records.values()))

    traces = " and ".join(f"`{name}-seed0`" for name in records)
    caption = (
        f"Split MNIST (traces {traces}): the loss of the active expert, in that expert's colour; "
        "the classes of each true segment above it. A segment seen before gets its colour back."
    )
    return Plate("figure-4-returns", title, caption, (7.2, 2.7 * len(records)), draw)


def supplement_plate(results: Results) -> Plate | Absent:
    """Return the supplement's losses and smoothed losses of all experts."""
    title = "Supplement: loss and smoothed loss"
    found = {name: results.record(name) for name in TABLE_1_SETS}
    records = {name: record for name, record in found.items() if record is not None}
    if not records:
        return Absent(title, f"no trace of {', '.join(f'`{name}-seed0`' for name in TABLE_1_SETS)}")

    def draw(figure: Figure) -> None:
        grid = figure.subplots(len(records), 2, squeeze=False, sharey="row")
        for row, (name, record) in zip(grid, records.items(), strict=True):
            for axes, column in zip(row, ("loss", "smoothed"), strict=True):
                _by_expert(axes, record, getattr(record.trace, column))
                _marked_segments(axes, record, named=False)
                label = "loss" if column == "loss" else "smoothed loss"
                axes.set_title(f"{SETS[name]}: {label}")
                over_steps(axes, record.first, record.end)
            row[0].set_ylabel("loss of the active expert")

    left = [f"`{name}-seed0`" for name in TABLE_1_SETS if name not in records]
    caption = (
        f"Traces {', '.join(f'`{name}-seed0`' for name in records)}; a colour is an expert "
        "(colours come again after ten), grey lines are the true changes."
        + (f" Not there yet: {', '.join(left)}." if left else "")
    )
    return Plate("supplement-losses", title, caption, (8.4, 2.5 * len(records)), draw)


def _lines(axes: Axes, record: Record, first: int, end: int) -> None:
    """Draw loss, smoothed loss and threshold, broken where another expert takes over."""
    trace = record.trace
    alone = np.allclose(trace.smoothed, trace.loss, equal_nan=True)
    # Where nothing is smoothed the loss is what is compared with the threshold.
    lines = _LINES[1:] if alone else _LINES
    for place, (name, label, colour, width) in enumerate(lines):
        text = "loss of the batch" if alone and not place else label
        style: dict[str, Any] = {"color": colour, "linewidth": 0.8 if alone else width}
        style["linestyle"] = (0, (4, 2)) if name == "threshold" else "solid"
        for _, part in _stretches(record, first, end):
            step, values = trace.step[part], getattr(trace, name)[part]
            at = _thinned(values, end - first)
            axes.plot(step[at], values[at], label=text, **style)
            text = "_again"  # matplotlib leaves such labels out of a legend
    over_steps(axes, first, end)


def _around(record: Record, step: int) -> tuple[int, int]:
    return max(record.first, step - _BEFORE), min(record.end, step + _AFTER)


def _mark_alarms(axes: Axes, record: Record, first: int, end: int) -> None:
    for shift in record.result["shifts"]:
        at = int(np.searchsorted(record.trace.step, shift["step"]))
        if first <= shift["step"] < end and at < len(record.trace.step):
            place = (shift["step"], float(record.trace.smoothed[at]))
            text = f"alarm: expert {shift['expert']} {shift['change']}"
            axes.plot(shift["step"], record.trace.loss[at], "o", color=LOSS, markersize=4)
            axes.plot(*place, "o", color=THRESHOLD, markersize=5)
            axes.annotate(text, place, (8, -3), textcoords="offset points", color=INK)


def _by_expert(axes: Axes, record: Record, values: NDArray[np.float64]) -> None:
    for expert, part in _stretches(record, record.first, record.end):
        at = _thinned(values[part], len(values))
        axes.plot(
            record.trace.step[part][at],
            values[part][at],
            color=origin_colour(expert),
            linewidth=0.7,
        )


def _stretches(record: Record, first: int, end: int) -> Iterator[tuple[int, slice]]:
    """Yield each expert and the steps whose loss is its own: it learned from the batch before."""
    learned = record.trace.expert
    measured = np.concatenate([learned[:1], learned[:-1]])
    low, high = np.searchsorted(record.trace.step, [first, end]).tolist()
    inside = np.flatnonzero(np.diff(measured[low:high])) + low + 1
    for start, stop in pairwise([low, *inside.tolist(), high]):
        yield int(measured[start]), slice(start, stop)


def _thinned(values: NDArray[np.float64], of: int | None = None) -> NDArray[np.int64]:
    bins = max(2, _POINTS // 2 * len(values) // max(of or len(values), 1))
    return envelope(values, bins)


def _created(axes: Axes, record: Record, colour: str, width: float, label: str) -> None:
    recruits = [s["step"] for s in record.result["shifts"] if s["change"] == "recruited"]
    steps = [record.first, *recruits, record.end]
    counts = [*range(1, len(recruits) + 2), len(recruits) + 1]
    axes.step(steps, counts, where="post", color=colour, linewidth=width, label=label)


def _marked_segments(axes: Axes, record: Record, *, named: bool) -> None:
    segments = record.result["segments"]
    starts = [segment["start"] for segment in segments]
    for start in starts[1:]:
        axes.axvline(start, color=BOUNDARY, linewidth=0.7, zorder=0.6)
    if named and len(segments) <= _MOST_NAMES:
        for segment, (start, end) in zip(segments, pairwise([*starts, record.end]), strict=True):
            style: dict[str, Any] = {
                "transform": axes.get_xaxis_transform(),
                "ha": "center",
                "fontsize": 7,
            }
            axes.text((start + end) / 2, 1.01, str(segment["name"]), color=MUTED, **style)


def _expert_legend(figure: Figure, records: list[Record]) -> None:
    experts = sorted(
        {int(expert) for record in records for expert in np.unique(record.trace.expert)}
    )
    axes = figure.axes[0]
    for expert in experts[:_MOST_NAMES]:
        axes.plot([], [], color=origin_colour(expert), linewidth=2, label=f"expert {expert}")
    figure.legend(loc="outside lower center", ncols=len(experts[:_MOST_NAMES]))
