"""The leaderboard's pictures: accuracy against bytes, and accuracy after each segment."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from tame.bench.drawing import ACROSS, BOUNDARY, LEFT, POINTS, WIDTH, drawn, origin_colour
from tame.bench.labels import Mark, at_ends, beside
from tame.bench.leaderboard import Board, Row, headline, kept
from tame.bench.markup import Markup
from tame.bench.paper.measures import Spread, spread
from tame.bench.wording import size

_SIGNS = "osD^vP*X"
_AIR = 2.5
_LABELS = 150.0  # points, the room for a label
_LINE = 11.0  # points a line takes that has its label at its end
_STEP = 20


def bytes_figure(board: Board) -> Markup:
    """Return mean accuracy, with its interval, against the bytes each method keeps."""

    def draw(figure: Figure) -> None:
        axes = _axes(figure, ACROSS, 0)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: size(value)))
        axes.xaxis.set_minor_formatter(FuncFormatter(lambda _, __: ""))
        marks = [_point(axes, row, number) for number, row in enumerate(board.rows)]
        weights = [max(kept(run), 1.0) for row in board.rows for run in row.runs]
        axes.set_xlim(min(weights) / _AIR, max(weights) * _AIR)  # apart even if all are equal
        beside(axes, [mark for mark in marks if mark is not None], _LABELS)

    return drawn(f"bytes-{board.stream}", "Accuracy against bytes kept", 3.6, draw)


def segments_figure(board: Board) -> Markup:
    """Return the mean accuracy on what had come, after each segment, for each method."""
    courses = [[found.mean for found in _after_each(row)] for row in board.rows]
    lines = {number: means for number, means in enumerate(courses) if means}

    def draw(figure: Figure) -> None:
        lowest = min((mean for means in lines.values() for mean in means), default=0.0)
        axes = _axes(figure, ACROSS - _LABELS / POINTS / WIDTH, int(lowest // _STEP) * _STEP)
        ends = []
        for number, means in lines.items():
            places = range(1, len(means) + 1)
            colour, sign = origin_colour(number), _SIGNS[number % len(_SIGNS)]
            axes.plot(places, means, markersize=4, linewidth=1.4, color=colour, marker=sign)
            ends.append(Mark(len(means), means[-1], board.rows[number].name, colour))
        axes.margins(x=0.02)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("segments learned")
        at_ends(axes, ends, _LABELS)

    height = max(3.6, len(lines) * _LINE / POINTS + 1.0)
    return drawn(f"after-{board.stream}", "Accuracy after each segment", height, draw)


def _axes(figure: Figure, across: float, low: int) -> Axes:
    axes = figure.add_axes((LEFT, 0.14, across, 0.8))
    axes.set_ylim(low - 0.03 * (100 - low), 100 + 0.03 * (100 - low))
    shares = range(low, 101, _STEP if low == 0 else _STEP // 2)
    axes.set_yticks(shares, [f"{share} %" for share in shares])
    axes.grid(axis="y", linewidth=0.6)
    return axes


def _point(axes: Axes, row: Row, number: int) -> Mark | None:
    found, weight = row.over_seeds(headline), row.over_seeds(kept)
    if found is None or weight is None:
        return None
    colour, sign = origin_colour(number), _SIGNS[number % len(_SIGNS)]
    place = (max(weight.mean, 1.0), found.mean)
    axes.errorbar(
        *place, yerr=found.half, fmt=sign, color=colour, ecolor=BOUNDARY, markersize=6, capsize=2
    )
    return Mark(*place, row.name)


def _after_each(row: Row) -> list[Spread]:
    """Return the mean accuracy over seeds after each segment, in per cent."""
    courses = [run.get("course", {}).get("after_each", []) for run in row.runs]
    columns = zip(*courses, strict=False)
    found = [spread([100 * value for value in column]) for column in columns]
    return [one for one in found if one is not None]
