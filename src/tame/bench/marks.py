"""What is marked above the losses: each change at its step, named where there is room."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from tame.bench.drawing import ACROSS, INK, POINTS, WIDTH, origin_colour
from tame.bench.record import NOBODY, Record

MOST_MARKS = 300  # of one kind

# A kind of change: matplotlib's marker and the sign that looks like it in the legend.
SIGNS = {
    "recruited": ("v", "▼"),
    "switched": ("D", "◆"),
    "suspected": ("o", "●"),
    "withdrawn": ("X", "✖"),
    "merged": ("s", "■"),
    "restarted": ("P", "✚"),
}
_ABOVE = 1.04  # just over the axes, whose top is 1
_MARGIN = 20  # points to the right of the axes that a label may take


class Mark(NamedTuple):
    """Something that happened to an expert at a step."""

    step: int
    kind: str
    expert: int


def marks_of(record: Record) -> list[Mark]:
    """Return everything that is marked above the losses, in the order of the steps."""
    trace = record.trace
    shifts = [s for s in record.result["shifts"] if s["change"] in SIGNS]
    experts = [NOBODY if s["expert"] is None else s["expert"] for s in shifts]
    marks = [Mark(s["step"], s["change"], e) for s, e in zip(shifts, experts, strict=True)]
    again = np.flatnonzero(trace.restarted)
    marks += [Mark(int(trace.step[at]), "restarted", int(trace.expert[at])) for at in again]
    return sorted(marks)


def draw_marks(axes: Axes, record: Record, marks: list[Mark]) -> None:
    """Draw marks in the colours of the origins their experts stand for."""
    above = axes.get_xaxis_transform()
    for kind in dict.fromkeys(mark.kind for mark in marks):
        some = thinned([mark for mark in marks if mark.kind == kind], MOST_MARKS)
        colours = [origin_colour(record.stands_for.get(mark.expert)) for mark in some]
        style: dict[str, Any] = {"transform": above, "clip_on": False, "linewidths": 0, "s": 26}
        places, heights = [mark.step for mark in some], [_ABOVE] * len(some)
        axes.scatter(places, heights, c=colours, marker=SIGNS[kind][0], **style)
    _label(axes, record, marks)


def points_across(record: Record, steps: float) -> float:
    """Return how wide that many steps are in the figures over steps, in points."""
    return steps / (record.end - record.first) * ACROSS * WIDTH * POINTS


def thinned(items: list[Any], most: int) -> list[Any]:
    """Return every n-th item, so that no more than `most` are left."""
    return items[:: -(-len(items) // most)] if len(items) > most else items


def _label(axes: Axes, record: Record, marks: list[Mark]) -> None:
    """Write beside each mark what happened, where that hides no other mark."""
    steps = [*(mark.step for mark in marks), record.end]
    style: dict[str, Any] = {
        "xycoords": axes.get_xaxis_transform(),
        "xytext": (6, 0),
        "textcoords": "offset points",
        "annotation_clip": False,
        "va": "center_baseline",
        "fontsize": 7,
        "color": INK,
    }
    for mark, (here, following) in zip(marks, pairwise(steps), strict=True):
        margin = _MARGIN if following == record.end else 0
        room = points_across(record, following - here) + margin
        names = (f"expert {mark.expert} {mark.kind}", f"expert {mark.expert}")
        names = (mark.kind, "") if mark.expert == NOBODY else names
        label = next((name for name in names if len(name) * 4.2 + 12 < room), "")
        if label:
            axes.annotate(label, (mark.step, _ABOVE), **style)
