"""The figures of accuracies: against the number of tasks, and of the selector against C_s."""

import re
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from tame.bench.drawing import MUTED, SMOOTHED, STRICT, WITHIN, origin_colour
from tame.bench.paper import measures
from tame.bench.paper.canvas import Absent, Plate
from tame.bench.paper.measures import Spread, measured, spread
from tame.bench.paper.published import SELECTOR_ON_CIFAR, SETS, TABLE_1, TABLE_1_SETS
from tame.bench.paper.results import Group, Results
from tame.bench.presets import read_preset

_CIFAR = "split-cifar100-20"
_WIDEST = 3.0  # inches of one panel


def tasks_plate(results: Results) -> Plate | Absent:
    """Return Figure 3 (a-c): average accuracy while more and more segments have come."""
    title = "Figure 3 (a-c): average accuracy against the number of tasks"
    groups = {data: _with_anytime(results, data) for data in TABLE_1_SETS}
    panels = {data: found for data, found in groups.items() if found}
    if not panels:
        return Absent(title, "no result has the field `anytime`")

    def draw(figure: Figure) -> None:
        row = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, (data, found) in zip(row, panels.items(), strict=True):
            for group in found:
                _anytime_lines(axes, group)
            axes.set(title=SETS[data], xlabel="segments seen")
            axes.xaxis.set_major_locator(MaxNLocator(steps=[1, 2, 5, 10], integer=True))
            axes.legend(loc="lower left")
        row[0].set_ylabel("accuracy on the segments seen (%)")

    left = [SETS[data] for data in TABLE_1_SETS if data not in panels]
    caption = (
        "Mean over runs and its 95 % interval, read from "
        + ", ".join(f"`{group.name}`" for found in panels.values() for group in found)
        + (f". Not there yet: {', '.join(left)}." if left else ".")
    )
    width = 1.2 + _WIDEST * len(panels)
    return Plate("figure-3-tasks", title, caption, (width, 3.0), draw)


def capacity_plate(results: Results) -> Plate | Absent:
    """Return Figure 3 (d): the selector's accuracy against the samples it may keep."""
    title = "Figure 3 (d): selector accuracy against C_s, Split CIFAR-100 (20)"
    groups = _capacities(results)
    found = {size: measured(group, measures.selector) for size, group in groups.items()}
    sizes = sorted(size for size, value in found.items() if value is not None)
    if not any(groups[size].name != _CIFAR for size in sizes):
        return Absent(title, f"no result `{_CIFAR}.cs<k>`")

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        _line(axes, sizes, [found[size] for size in sizes], SMOOTHED, "ours")
        axes.axhline(SELECTOR_ON_CIFAR, color=MUTED, linewidth=1, linestyle=(0, (2, 2)))
        where: dict[str, Any] = {
            "xycoords": axes.get_yaxis_transform(),
            "textcoords": "offset points",
        }
        text = f"the paper at its C_s: about {SELECTOR_ON_CIFAR} %"
        axes.annotate(text, (0, SELECTOR_ON_CIFAR), (4, 3), **where, color=MUTED)
        axes.margins(y=0.12)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.set(xlabel="C_s (samples kept for the selector)", ylabel="selector accuracy (%)")

    caption = f"Read from {', '.join(f'`{groups[size].name}`' for size in sizes)}."
    return Plate("figure-3d-selector", title, caption, (4.6, 3.0), draw)


def _capacities(results: Results) -> dict[int, Group]:
    """Return the runs of each C_s; the preset's own are those of Table 1."""
    pattern = re.compile(re.escape(_CIFAR) + r"\.cs(\d+)")
    matches = [(pattern.fullmatch(name), group) for name, group in results.groups.items()]
    found = {int(match[1]): group for match, group in matches if match}
    own = results.get(_CIFAR)
    if own is not None:
        found.setdefault(read_preset(f"paper/{_CIFAR}")["selector"]["memory"], own)
    return found


def _with_anytime(results: Results, data: str) -> list[Group]:
    methods = [row.method for rows in TABLE_1.values() for row in rows]
    names = [data, *(f"{data}.{method}" for method in methods)]
    groups = [group for group in map(results.get, names) if group and group.method in methods]
    return [group for group in groups if any(run.get("anytime") for run in group.runs)]


def _anytime_lines(axes: Axes, group: Group) -> None:
    ours = group.method == "tame"
    place = [row.method for rows in TABLE_1.values() for row in rows].index(group.method)
    kinds = {"within_segment": "within segment", "strict": "strict"}
    if group.labels == "shared":
        kinds = {"strict": "accuracy"}
    for field, label in kinds.items():
        rows = _anytime(group, field)
        colour = {"within_segment": WITHIN, "strict": STRICT}[field]
        colour = colour if ours else origin_colour(place + 1)
        name = label if ours else f"{group.method}, {label}"
        if rows:
            _line(axes, list(rows), list(rows.values()), colour, name)


def _anytime(group: Group, field: str) -> dict[int, Spread | None]:
    entries = [entry for run in group.runs for entry in run.get("anytime") or []]
    known = [entry for entry in entries if entry.get(field) is not None]
    places = sorted({entry["segments"] for entry in known})
    return {
        k: spread([100 * entry[field] for entry in known if entry["segments"] == k]) for k in places
    }


def _line(
    axes: Axes, x: Sequence[int], values: Sequence[Spread | None], colour: str, label: str
) -> None:
    known = [(place, value) for place, value in zip(x, values, strict=True) if value is not None]
    means = [value.mean for _, value in known]
    below = [min(value.half or 0.0, value.mean) for _, value in known]
    above = [min(value.half or 0.0, 100 - value.mean) for _, value in known]
    style: dict[str, Any] = {
        "color": colour,
        "linewidth": 1.4,
        "marker": "o",
        "markersize": 3,
        "capsize": 2,
    }
    places = [place for place, _ in known]
    axes.errorbar(places, means, [below, above], elinewidth=0.8, label=label, **style)
