"""How figures become part of a page: inline SVG whose colours follow the page's own."""

import io
import re
import warnings
from collections.abc import Callable, Sequence

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from tame.bench.markup import Markup, tag

WIDTH = 10.0  # inches; one width for all, so that the steps of two figures stand below each other
POINTS = 72
LEFT, ACROSS = 0.065, 0.9  # where the axis of steps begins and how far it goes, of WIDTH

# Each colour is drawn as it is named here and then handed to the page's variable of that name,
# which has a second value for dark screens.
INK = "#1d2330"
MUTED = "#6a7282"
GRID = "#e6e6e1"
CARD = "#fffffe"  # not quite white: white text on a bar stays white on dark screens
BOUNDARY = "#b3b6bd"
LOSS = "#b4c3da"
SMOOTHED = "#2a62b0"
THRESHOLD = "#c4611a"
STRICT = "#2a63b1"
WITHIN = "#8db4e0"
ORACLE = "#c8ccd4"
_VARIABLES = {
    INK: "ink",
    MUTED: "muted",
    GRID: "grid",
    CARD: "card",
    BOUNDARY: "boundary",
    LOSS: "loss",
    SMOOTHED: "smoothed",
    THRESHOLD: "threshold",
    STRICT: "strict",
    WITHIN: "within",
    ORACLE: "oracle",
}

# One colour for each origin, dark enough for white text and light enough for a dark page.
_ORIGINS = (
    "#3a6fb7",
    "#c2651f",
    "#2e8b57",
    "#b0447a",
    "#6d59b3",
    "#94721a",
    "#26848e",
    "#b54840",
    "#66752f",
    "#7a675f",
)
NO_ORIGIN = "#7d8593"

_STYLE = {
    "svg.fonttype": "none",
    "font.size": 8,
    "text.color": INK,
    "axes.edgecolor": BOUNDARY,
    "axes.labelcolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "axes.axisbelow": True,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "grid.color": GRID,
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
}
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def origin_colour(origin: int | None) -> str:
    """Return the colour that stands for an origin in every figure and table."""
    return NO_ORIGIN if origin is None else _ORIGINS[origin % len(_ORIGINS)]


def drawn(name: str, description: str, height: float, draw: Callable[[Figure], None]) -> Markup:
    """Return what `draw` puts on a figure as inline SVG; the name keeps its ids apart."""
    target = io.StringIO()
    style = {**_STYLE, "svg.hashsalt": name}
    with matplotlib.style.context(style, after_reset=True), warnings.catch_warnings():
        # The reader's own fonts show the text: what the measuring font lacks does not matter.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=(WIDTH, height))
        draw(figure)
        figure.savefig(target, format="svg", metadata=_NO_METADATA)
    svg = _part_of_a_page(target.getvalue(), name)
    label = {"class": "plot", "role": "img", "aria-label": description}
    return tag("div", svg, attributes=label)


def key(entries: Sequence[tuple[str, str, str]]) -> Markup:
    """Return a legend: for each entry its swatch (or sign), that one's colour, and a label."""
    return tag("ul.key", *(tag("li", _swatch(*entry[:2]), " ", entry[2]) for entry in entries))


def swatch(colour: str) -> Markup:
    """Return a small square of a colour."""
    return tag("span.swatch", attributes={"style": f"background:{colour}"})


def envelope(values: NDArray[np.float64], bins: int = 900) -> NDArray[np.int64]:
    """Return the indices of the lowest and highest value in each bin, all where they are few.

    A line through them looks like the line through all, peaks included.

    >>> envelope(np.array([5.0, 1.0, 2.0, 9.0, 3.0, 4.0]), bins=2)
    array([0, 1, 3, 4])
    """
    count = len(values)
    if count <= 2 * bins:
        return np.arange(count)
    width = -(-count // bins)
    padded = np.full(bins * width, np.nan)
    padded[:count] = values
    grid = padded.reshape(bins, width)
    lowest = np.where(np.isnan(grid), np.inf, grid).argmin(axis=1)
    highest = np.where(np.isnan(grid), -np.inf, grid).argmax(axis=1)
    first = np.arange(bins) * width
    picked = np.unique(np.concatenate([first + lowest, first + highest]))
    return picked[picked < count]


def fitting(label: str, width: float) -> str:
    """Return as much of a label as fits into a width in points, or nothing.

    >>> fitting("digits 0 and 1", 40.0), fitting("digits", 10.0)
    ('digits…', '')
    """
    most = int(width / 5.2)  # the mean width of a letter of eight points, with some air
    if len(label) <= most:
        return label
    return label[: most - 1].rstrip() + "…" if most > 3 else ""  # noqa: PLR2004 (letters)


def _swatch(kind: str, colour: str) -> Markup:
    style = {"style": f"color:var(--{_VARIABLES[colour]})"}
    if kind.isalpha():
        return tag(f"span.{kind}", attributes=style)
    return tag("span", kind, attributes=style)


def _part_of_a_page(svg: str, name: str) -> Markup:
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", svg, count=1, flags=re.DOTALL)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    return Markup(re.sub(r"#[0-9a-f]{6}\b", _variable, svg).strip())


def _variable(match: re.Match[str]) -> str:
    variable = _VARIABLES.get(match[0])
    return f"var(--{variable})" if variable else match[0]
