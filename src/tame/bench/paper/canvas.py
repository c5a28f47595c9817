"""A figure of the paper as files: SVG and PNG on white, the same bytes every time."""

import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from tame.bench.drawing import BOUNDARY, GRID, INK, MUTED
from tame.errors import StorageError

DOTS = 150  # per inch, of a PNG
_STYLE = {
    "svg.fonttype": "path",  # the file stands alone: it must not depend on a reader's fonts
    "font.size": 8,
    "text.color": INK,
    "axes.edgecolor": BOUNDARY,
    "axes.labelcolor": MUTED,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
}
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


class Plate(NamedTuple):
    """A figure: its file's name, what it shows, its size in inches, and who draws it."""

    name: str
    title: str
    caption: str
    size: tuple[float, float]
    draw: Callable[[Figure], None]


class Absent(NamedTuple):
    """A figure that cannot be drawn, and what is missing."""

    title: str
    reason: str


def save(plate: Plate, folder: Path) -> None:
    """Write a figure as NAME.svg and NAME.png."""
    style = {**_STYLE, "svg.hashsalt": plate.name}
    with matplotlib.style.context(style, after_reset=True), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=plate.size)
        plate.draw(figure)
        vector, pixels = io.BytesIO(), io.BytesIO()
        figure.savefig(vector, format="svg", metadata=_NO_METADATA)
        figure.savefig(pixels, format="png", dpi=DOTS, metadata={"Software": None})
    for suffix, content in (("svg", vector), ("png", pixels)):
        path = folder / f"{plate.name}.{suffix}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.getvalue())
        except OSError as error:
            raise StorageError(f"could not write {path}: {error}") from error


def over_steps(axes: Axes, first: int, end: int) -> None:
    """Make the steps of a stream the x axis."""
    axes.set_xlim(first, end)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10], integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlabel("step (batches seen)")
