"""Delay against false alarms: what each detector and conduct trades for what."""

import math
from collections.abc import Sequence
from statistics import fmean, median
from typing import NamedTuple

from matplotlib.figure import Figure

from tame.bench.drawing import INK, origin_colour
from tame.bench.leaderboard import Board, Row
from tame.bench.paper.canvas import Plate
from tame.bench.shifts import false_rate, leaking, over_all, total

_SIGNS = "osD^vP*X"
_LEAST = 0.01  # of false alarms in a thousand batches, on an axis that has to show none


class Trade(NamedTuple):
    """A row over all fair streams: false alarms in 1,000 batches, median delay, share missed.

    A change that was missed is later than any other; a delay of infinity is over half missed.
    """

    row: str
    false: float
    delay: float
    missed: float


def trades(boards: Sequence[Board]) -> list[Trade]:
    """Return the trade of every row that is on all streams whose labels do not leak."""
    fair = [board for board in boards if not leaking(board)]
    rows: dict[str, list[Row]] = {}
    for board in fair:
        for row in board.rows:
            rows.setdefault(row.name, []).append(row)
    return [_trade(name, found) for name, found in rows.items() if len(found) == len(fair)]


def _trade(name: str, rows: Sequence[Row]) -> Trade:
    late = [delay for row in rows for delay in over_all(row, "delays")]
    missed = sum(total(row, "missed") or 0 for row in rows)
    rates = [rate for row in rows if (rate := false_rate(row)) is not None]
    count = len(late) + missed
    middle = median([*late, *[math.inf] * missed]) if count else math.inf
    return Trade(name, fmean(rates) if rates else 0.0, middle, missed / max(1, count))


def trade_off(boards: Sequence[Board]) -> Plate | None:
    """Return the figure, or nothing where no row is on all fair streams."""
    found = trades(boards)
    if not found:
        return None

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        axes.set_xscale("symlog", linthresh=_LEAST)
        axes.set_yscale("symlog", linthresh=1)
        known = [one.delay for one in found if math.isfinite(one.delay)]
        top = 2 * max([*known, 1.0])
        first, rest = _words(found)
        for one in found:
            kind, _, manner = one.row.partition(" ")
            place = (one.false, min(one.delay, top))
            axes.plot(*place, _SIGNS[rest.index(manner) % len(_SIGNS)], markersize=6,
                      color=origin_colour(first.index(kind)), clip_on=False)  # fmt: skip
            label = f"{one.row}, {100 * one.missed:.0f} % missed"
            axes.annotate(label, place, (6, 4), textcoords="offset points", color=INK, fontsize=6)
        axes.set_xlim(left=0)
        axes.set_ylim(0, 1.3 * top)
        axes.set_xlabel("false switches and recruits in 1,000 batches")
        axes.set_ylabel("median delay of the alarm, batches (top: over half missed)")

    caption = "All streams whose labels do not leak; a missed change is later than any other."
    return Plate("detection", "Delay against false alarms", caption, (7.5, 4.6), draw)


def _words(found: Sequence[Trade]) -> tuple[list[str], list[str]]:
    """Return the detectors and the conducts, each once, in order."""
    parts = [one.row.partition(" ") for one in found]
    return list(dict.fromkeys(p[0] for p in parts)), list(dict.fromkeys(p[2] for p in parts))
