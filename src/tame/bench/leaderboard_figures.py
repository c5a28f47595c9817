"""The leaderboard's pictures: accuracy against bytes, and accuracy after each segment."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from tame.bench.drawing import BOUNDARY, INK, LEFT, WIDTH, drawn, fitting, origin_colour, swatch
from tame.bench.leaderboard import Board, Row, headline, kept
from tame.bench.markup import Markup, joined, tag
from tame.bench.paper.measures import Spread, spread
from tame.bench.wording import size

_SIGNS = "osD^vP*X"
_AIR = 2.5


def bytes_figure(board: Board) -> Markup:
    """Return mean accuracy, with its interval, against the bytes each method keeps."""

    def draw(figure: Figure) -> None:
        axes = _axes(figure)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: size(value)))
        axes.xaxis.set_minor_formatter(FuncFormatter(lambda _, __: ""))
        for number, row in enumerate(board.rows):
            _point(axes, row, number)
        weights = [max(kept(run), 1.0) for row in board.rows for run in row.runs]
        axes.set_xlim(min(weights) / _AIR, max(weights) * _AIR)  # apart even if all are equal

    return drawn(f"bytes-{board.stream}", "Accuracy against bytes kept", 3.6, draw)


def segments_figure(board: Board) -> Markup:
    """Return the mean accuracy on what had come, after each segment, for each method."""

    def draw(figure: Figure) -> None:
        axes = _axes(figure)
        for number, row in enumerate(board.rows):
            means = [found.mean for found in _after_each(row)]
            if means:
                places = range(1, len(means) + 1)
                colour, sign = origin_colour(number), _SIGNS[number % len(_SIGNS)]
                axes.plot(places, means, markersize=4, linewidth=1.4, color=colour, marker=sign)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("segments learned")

    legend = [
        tag("li", swatch(origin_colour(number)), " ", row.name)
        for number, row in enumerate(board.rows)
    ]
    picture = drawn(f"after-{board.stream}", "Accuracy after each segment", 3.6, draw)
    return joined([tag("ul.key", *legend), picture])


def _axes(figure: Figure) -> Axes:
    axes = figure.add_axes((LEFT, 0.14, 0.9, 0.8))
    axes.set_ylim(-3, 103)
    axes.set_yticks(range(0, 101, 20), [f"{share} %" for share in range(0, 101, 20)])
    axes.grid(axis="y", linewidth=0.6)
    return axes


def _point(axes: Axes, row: Row, number: int) -> None:
    found, weight = row.over_seeds(headline), row.over_seeds(kept)
    if found is None or weight is None:
        return
    colour, sign = origin_colour(number), _SIGNS[number % len(_SIGNS)]
    axes.errorbar(
        max(weight.mean, 1.0), found.mean, yerr=found.half, fmt=sign, color=colour,
        ecolor=BOUNDARY, markersize=6, capsize=2,
    )  # fmt: skip
    label = fitting(row.name, WIDTH * 20)
    place = (max(weight.mean, 1.0), found.mean)
    axes.annotate(label, place, (7, 5), textcoords="offset points", color=INK, parse_math=False)


def _after_each(row: Row) -> list[Spread]:
    """Return the mean accuracy over seeds after each segment, in per cent."""
    courses = [run.get("course", {}).get("after_each", []) for run in row.runs]
    columns = zip(*courses, strict=False)
    found = [spread([100 * value for value in column]) for column in columns]
    return [one for one in found if one is not None]
