"""Labels of points and lines, moved apart where they would lie on top of each other."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes

from tame.bench.drawing import BOUNDARY, INK, POINTS, fitting

LETTER, LINE = 4.6, 9.5  # points: how wide a letter is, and how high a line
OFF, END = 7.0, 22.0  # points from a mark to its label, and from a line's end
NEAR = 3.0  # points a label may be moved without a line that leads back
_LEADS = {
    "arrowstyle": "-", "color": BOUNDARY, "linewidth": 0.6,
    "shrinkA": 1, "shrinkB": 4, "relpos": (0.0, 0.5),
}  # fmt: skip


class Mark(NamedTuple):
    """A place in data coordinates, and what is written beside it."""

    x: float
    y: float
    label: str
    colour: str = INK


def spread_out(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return places `gap` apart or more, in rising order, as near to those wanted as can be.

    Neighbours that are too close are moved together, by least squares; nobody leaves low to high
    if there is room for all.

    >>> spread_out([1.0, 1.0, 5.0], 1.0, 0.0, 9.0)
    [0.5, 1.5, 5.0]
    >>> spread_out([8.9, 9.0], 1.0, 0.0, 9.0)
    [8.0, 9.0]
    """
    blocks: list[tuple[float, int]] = []  # means of places less the room before them, and how many
    for number, place in enumerate(wanted):
        mean, count = place - number * gap, 1
        while blocks and blocks[-1][0] > mean:
            before, more = blocks.pop()
            mean, count = (before * more + mean * count) / (more + count), more + count
        blocks.append((mean, count))
    top = high - (len(wanted) - 1) * gap
    free = [min(max(mean, low), max(top, low)) for mean, count in blocks for _ in range(count)]
    return [place + number * gap for number, place in enumerate(free)]


def beside(axes: Axes, marks: Sequence[Mark], width: float) -> None:
    """Write each label to the right of its mark, at most so many points wide."""
    for group in _neighbours(axes, marks, width):
        _write(axes, group, width, OFF)


def at_ends(axes: Axes, marks: Sequence[Mark], width: float) -> None:
    """Write the labels of lines that end at the right, at most so many points wide."""
    _write(axes, marks, width, END)


def _write(axes: Axes, marks: Sequence[Mark], width: float, off: float) -> None:
    ordered = sorted(marks, key=lambda mark: mark.y)
    wanted = [_points(axes, mark)[1] for mark in ordered]
    low, high = (edge * POINTS / axes.figure.dpi for edge in axes.get_window_extent().intervaly)
    for mark, was, now in zip(ordered, wanted, spread_out(wanted, LINE, low, high), strict=True):
        axes.annotate(
            fitting(mark.label, width), (mark.x, mark.y), (off, now - was), color=mark.colour,
            textcoords="offset points", va="center", parse_math=False, annotation_clip=False,
            arrowprops=_LEADS if abs(now - was) > NEAR or off > OFF else None,
        )  # fmt: skip


def _neighbours(axes: Axes, marks: Sequence[Mark], width: float) -> Iterator[list[Mark]]:
    """Go through marks from the left, those whose labels may meet together."""
    group: list[Mark] = []
    end = 0.0
    for mark in sorted(marks, key=lambda mark: mark.x):
        begin = _points(axes, mark)[0]
        if group and begin > end:
            yield group
            group = []
        group.append(mark)
        wide = OFF + LETTER * len(fitting(mark.label, width))
        end = max(end, begin + wide) if len(group) > 1 else begin + wide
    if group:
        yield group


def _points(axes: Axes, mark: Mark) -> tuple[float, float]:
    x, y = axes.transData.transform((mark.x, mark.y)) * POINTS / axes.figure.dpi
    return float(x), float(y)
