"""Delay against false alarms: what each detector and conduct trades for what."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from tame.bench.drawing import origin_colour
from tame.bench.leaderboard import Board, Row
from tame.bench.paper.canvas import Plate
from tame.bench.shifts import false_rate, over_all, pooled, total

MOST = 100  # batches: what a missed change counts as
_SIGNS = "osD^vP*X"
_LEAST = 0.01  # of false alarms in a thousand batches, on an axis that has to show none


class Trade(NamedTuple):
    """A row over all fair streams: false alarms in 1,000 batches, mean delay, share missed.

    A delay of over 100 batches counts as 100, and so does a change that was missed.
    """

    row: str
    false: float
    delay: float
    missed: float


def trades(boards: Sequence[Board]) -> list[Trade]:
    """Return the trade of every row that is on all streams whose labels do not leak."""
    return [_trade(name, found) for name, found in pooled(boards).items()]


def _trade(name: str, rows: Sequence[Row]) -> Trade:
    late = [min(delay, MOST) for row in rows for delay in over_all(row, "delays")]
    missed = sum(total(row, "missed") or 0 for row in rows)
    rates = [rate for row in rows if (rate := false_rate(row)) is not None]
    every = [*late, *[MOST] * missed]
    delay = fmean(every) if every else 0.0
    return Trade(name, fmean(rates) if rates else 0.0, delay, missed / max(1, len(every)))


def trade_off(boards: Sequence[Board]) -> Plate | None:
    """Return the figure, or nothing where no row is on all fair streams."""
    found = trades(boards)
    if not found:
        return None

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        axes.set_xscale("symlog", linthresh=_LEAST, linscale=0.3)
        axes.set_yscale("symlog", linthresh=1.0)
        first, rest = _words(found)
        for one in found:
            kind, _, manner = one.row.partition(" ")
            look: dict[str, Any] = {
                "color": origin_colour(first.index(kind)),
                "markersize": 6,
                "clip_on": False,
            }
            label = f"{one.row}: {100 * one.missed:.0f} % missed"
            sign = _SIGNS[rest.index(manner) % len(_SIGNS)]
            axes.plot([one.false], [one.delay], sign, label=label, **look)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_xlim(0, max(1.0, *(2 * one.false for one in found)))
        axes.set_ylim(0, MOST)
        axes.set_xlabel("false switches and recruits in 1,000 batches")
        axes.set_ylabel(f"mean delay of the alarm, batches (missed: {MOST})")
        figure.legend(loc="outside right upper")

    caption = f"All streams whose labels do not leak; missed or later counts as {MOST} batches."
    return Plate("detection", "Delay against false alarms", caption, (8.0, 4.4), draw)


def _words(found: Sequence[Trade]) -> tuple[list[str], list[str]]:
    """Return the detectors and the conducts, each once, in order."""
    parts = [one.row.partition(" ") for one in found]
    return list(dict.fromkeys(p[0] for p in parts)), list(dict.fromkeys(p[2] for p in parts))
