"""The pictures of a run: losses against the threshold, experts over time, accuracy."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from numpy.typing import NDArray

from tame.bench.drawing import (
    ACROSS,
    BOUNDARY,
    CARD,
    INK,
    LEFT,
    LOSS,
    MUTED,
    ORACLE,
    POINTS,
    STRICT,
    THRESHOLD,
    WIDTH,
    WITHIN,
    drawn,
    envelope,
    fitting,
    key,
    origin_colour,
)
from tame.bench.drawing import SMOOTHED as BOLD
from tame.bench.marks import MOST_MARKS, SIGNS, draw_marks, marks_of, points_across, thinned
from tame.bench.markup import Markup, joined
from tame.bench.record import NOBODY, SMOOTHED, Record
from tame.bench.wording import DASH

MOST_BARS = 600  # in one row of the timeline
MOST_ROWS = 40  # in the plot of accuracies

_NAMES = 0.27  # the most that names may take of the width of a figure
_DECADES = 6
_FEW_DECADES = 2.5
_SEPARATE = 100  # bars in a row that a gap still sets apart without hiding them


class Line(NamedTuple):
    """A column of the trace and how it is drawn."""

    name: str
    label: str
    colour: str
    width: float
    kind: str = "line"


_LOSS = Line("loss", "loss of the batch", LOSS, 0.8)
_ALONE = Line("loss", "loss of the batch", BOLD, 0.8)
_THRESHOLD = Line("threshold", "threshold", THRESHOLD, 1.2, kind="dashed")
_LOSS_HEIGHT, _OTHER_HEIGHT = 3.7, 1.3  # inches


def loss_figure(record: Record) -> Markup:
    """Return the loss of every batch and what is held against the threshold, with all changes.

    What is in units of the loss is drawn over it, what is not below it.
    """
    panels, marks = _panels(record), marks_of(record)

    def draw(figure: Figure) -> None:
        axes = [_panel(figure, record, *one) for one in zip(panels, _shares(panels), strict=True)]
        for upper in axes[:-1]:
            upper.set_xlabel("")
            upper.tick_params(labelbottom=False)
        _name_segments(axes[0], record)
        draw_marks(axes[0], record, marks)

    legend = [(line.kind, line.colour, line.label) for panel in panels for line in panel]
    if len(record.result["segments"]) > 1:
        legend.append(("upright", BOUNDARY, "true boundary"))
    legend += [(SIGNS[kind][1], MUTED, kind) for kind in dict.fromkeys(m.kind for m in marks)]
    description = "Loss of every batch on a logarithmic scale, with threshold and changes"
    height = _LOSS_HEIGHT + _OTHER_HEIGHT * (len(panels) - 1)
    return joined([key(legend), drawn("losses", description, height, draw)])


def _panels(record: Record) -> list[list[Line]]:
    """Return the lines of each panel, the upper first."""
    over = record.compares == SMOOTHED
    judged = [Line("smoothed", record.compares, BOLD if over else INK, 1.5), _THRESHOLD]
    judged = [line for line in judged if np.isfinite(getattr(record.trace, line.name)).any()]
    if not judged:
        return [[_ALONE]]
    return [[_LOSS, *judged]] if over else [[_ALONE], judged]


def _shares(panels: Sequence[Any]) -> list[tuple[float, float]]:
    """Return where panels begin and end in height, as shares of what there is."""
    return [(0.0, 1.0)] if len(panels) == 1 else [(0.36, 1.0), (0.0, 0.29)]


def _panel(
    figure: Figure, record: Record, lines: Sequence[Line], share: tuple[float, float]
) -> Axes:
    """Draw lines over the steps, on a logarithmic scale, into a share of a figure."""
    height = figure.get_figheight()
    foot, room = 0.48 / height, 1 - 0.89 / height
    axes = _over_steps(figure, record, foot + share[0] * room, (share[1] - share[0]) * room)
    low, high = _limits([getattr(record.trace, line.name) for line in lines])
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    _log_ticks(axes, low, high)
    for line in lines:
        _plot(axes, record, line)
    starts = [segment["start"] for segment in record.result["segments"]]
    style: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "color": BOUNDARY}
    axes.vlines(thinned(starts[1:], MOST_MARKS), 0, 1, linewidth=0.8, zorder=0.6, **style)
    return axes


def timeline_figure(record: Record) -> Markup:
    """Return which expert learned at each step, below the segment that really came."""
    segments = record.result["segments"]
    rows = [("truth", [s["start"] for s in segments], [s["origin"] for s in segments])]
    if record.has_experts:
        expert = record.trace.expert
        changed = np.flatnonzero(np.diff(expert, prepend=expert[0] - 1))
        starts = record.trace.step[changed].tolist()
        rows.append(("experts", starts, expert[changed].tolist()))

    def draw(figure: Figure) -> None:
        foot = 0.5 / figure.get_figheight()
        axes = _over_steps(figure, record, bottom=foot, height=0.98 - foot)
        for index, (title, starts, keys) in enumerate(rows):
            _bars(axes, record, title, index, _spans(starts, keys, record.end))
        axes.set_ylim(len(rows) - 0.45, -0.55)
        axes.set_yticks(range(len(rows)), [title for title, *_ in rows])
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(visible=False)

    description = "The true segments and the active expert over the steps of the stream"
    return drawn("timeline", description, 0.75 + 0.38 * len(rows), draw)


def accuracy_figure(record: Record) -> Markup:
    """Return the accuracies on each segment as grouped bars, the worst where they are many."""
    rows = worst(record.result["per_segment"])
    kinds = [("strict", STRICT, "strict"), ("within_segment", WITHIN, "within segment")]
    kinds += [("oracle", ORACLE, "oracle routing")] if record.has_experts else []
    thick = 0.8 / len(kinds)

    def draw(figure: Figure) -> None:
        height = figure.get_figheight()
        left = min(_NAMES, 0.04 + 0.0085 * max(len(str(row["name"])) for row in rows))
        axes = figure.add_axes((left, 0.35 / height, 0.97 - left, 1 - 0.45 / height))
        for index, (field, colour, _) in enumerate(kinds):
            places = np.arange(len(rows)) + (index - (len(kinds) - 1) / 2) * thick
            values = [_hundred(row[field]) for row in rows]
            axes.barh(places, np.nan_to_num(values), height=thick * 0.88, color=colour)
            _write_values(axes, places, values)
        _name_rows(axes, [str(row["name"]) for row in rows])

    legend = [("block", colour, label) for _, colour, label in kinds]
    height = 0.45 + len(rows) * 0.18 * len(kinds)
    return joined([key(legend), drawn("accuracy", "Accuracy on each segment", height, draw)])


def worst(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return all rows where they fit a picture, else those of lowest strict accuracy."""
    return rows if len(rows) <= MOST_ROWS else sorted(rows, key=_strictness)[:MOST_ROWS]


def _strictness(row: dict[str, Any]) -> float:
    return row["strict"] if row["strict"] is not None else 2.0


def _hundred(share: float | None) -> float:
    return np.nan if share is None else 100 * share


def _write_values(axes: Axes, places: NDArray[np.floating[Any]], values: list[float]) -> None:
    for place, value in zip(places, values, strict=True):
        label = f"{value:.1f}" if np.isfinite(value) else DASH
        at = float(np.nan_to_num(value)) + 0.8
        axes.text(at, place, label, va="center_baseline", fontsize=7, color=MUTED)


def _name_rows(axes: Axes, names: list[str]) -> None:
    labels = [fitting(name, _NAMES * WIDTH * POINTS - 12) for name in names]
    axes.set_yticks(range(len(names)), labels, color=INK, parse_math=False)
    axes.set_ylim(len(names) - 0.45, -0.55)
    axes.set_xlim(0, 106)
    axes.set_xticks(range(0, 101, 20), [f"{share} %" for share in range(0, 101, 20)])
    axes.tick_params(length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", linewidth=0.6)


def _over_steps(figure: Figure, record: Record, bottom: float, height: float) -> Axes:
    axes = figure.add_axes((LEFT, bottom, ACROSS, height))
    axes.set_xlim(record.first, record.end)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=9, steps=[1, 2, 2.5, 5, 10], integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlabel("step (batches seen)")
    axes.tick_params(length=3, width=0.6)
    axes.grid(axis="y", linewidth=0.6)
    return axes


def _limits(lines: Sequence[NDArray[np.float64]]) -> tuple[float, float]:
    positive = [line[line > 0] for line in lines if (line > 0).any()]
    if not positive:
        return 0.1, 1.0
    high = max(line.max() for line in positive)
    # The first line is the raw loss, which may fall to nothing: the others decide what is seen.
    low = min(line.min() for line in (positive[1:] or positive))
    return float(max(low, high / 10**_DECADES) / 3), float(high * 1.5)


def _log_ticks(axes: Axes, low: float, high: float) -> None:
    few = np.log10(high / low) < _FEW_DECADES
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _plot(axes: Axes, record: Record, line: Line) -> None:
    values = getattr(record.trace, line.name)
    at = envelope(values)
    # A line through the extremes of many steps is a band, and a bold one would hide the others.
    width = line.width if len(at) == len(values) else 0.6 * line.width
    dashes: Any = (0, (4, 2)) if line.kind == "dashed" else "solid"
    # What has no logarithm is drawn, like all that is too low, as leaving the frame.
    bounded = np.maximum(values[at], axes.get_ylim()[0] / 10)
    axes.plot(record.trace.step[at], bounded, color=line.colour, linewidth=width, linestyle=dashes)


def _name_segments(axes: Axes, record: Record) -> None:
    segments = record.result["segments"]
    starts = [segment["start"] for segment in segments]
    for segment, (start, end) in zip(segments, pairwise([*starts, record.end]), strict=True):
        label = fitting(str(segment["name"]), points_across(record, end - start) - 8)
        if label:
            style: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "ha": "center"}
            style |= {"color": INK, "parse_math": False}
            paper = {"facecolor": CARD, "edgecolor": "none", "alpha": 0.8, "pad": 1.5}
            axes.text((start + end) / 2, 0.025, label, bbox=paper, **style)


def _spans(starts: list[int], keys: list[int], end: int) -> list[tuple[int, int, int]]:
    """Return (start, end, key) of each bar; where they are too many, those at even steps."""
    if len(starts) > MOST_BARS:
        even = np.linspace(starts[0], end, MOST_BARS, endpoint=False).astype(int)
        keys = np.array(keys)[np.searchsorted(starts, even, side="right") - 1].tolist()
        starts = even.tolist()
    return [(*bounds, key) for bounds, key in zip(pairwise([*starts, end]), keys, strict=True)]


def _bars(
    axes: Axes, record: Record, title: str, row: int, spans: list[tuple[int, int, int]]
) -> None:
    truth = title == "truth"
    origins = [key if truth else record.stands_for.get(key) for *_, key in spans]
    axes.broken_barh(
        [(start, end - start) for start, end, _ in spans],
        (row - 0.38, 0.76),
        facecolors=[origin_colour(origin) for origin in origins],
        edgecolor=CARD,
        linewidth=1.0 if len(spans) <= _SEPARATE else 0.0,
    )
    for start, end, who in spans:
        room = points_across(record, end - start) - 2
        if who == NOBODY and not truth:
            continue
        name = record.names.get(who, str(who)) if truth else f"expert {who}"
        label = fitting(name, room) if truth or len(name) * 5.2 < room else fitting(str(who), room)
        if label:
            style: dict[str, Any] = {"ha": "center", "va": "center_baseline", "parse_math": False}
            axes.text((start + end) / 2, row, label, color="white", **style)
