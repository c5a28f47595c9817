"""Draw what the benchmarks of speed found, from their files: speed.svg and speed.png.

python benchmarks/speed_figure.py [--results benchmarks/results] [--out docs/figures]
"""

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tame.bench.drawing import MUTED, SMOOTHED, THRESHOLD, WITHIN
from tame.bench.paper.canvas import Plate, save

STEPS = {
    "LeNet\n1 thread": "speed-cpu-1",
    "LeNet\n2 threads": "speed-cpu-2",
    "LeNet\nH200": "speed-h200",
    "VGG11\nH200": "speed-vgg11-h200",
}
PLACES = {"processor": ("many_experts", SMOOTHED), "H200": ("many_experts-h200", THRESHOLD)}
SIZES = {
    "60,000 images at once": "predict, 60000 images at once",
    "batches of 128": "predict, 6000 images in batches of 128",
}
PRUNED = {"2 cores": "consolidation-cpu", "H200": "consolidation-h200"}
Spread = dict[str, float]


def read(folder: Path, name: str) -> dict[str, Any]:
    """Return a file of results."""
    found: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    return found


def whiskers(spreads: list[Spread]) -> tuple[list[float], list[list[float]]]:
    """Return medians, and how far the quartiles lie below and above."""
    middle = [spread["median"] for spread in spreads]
    below = [spread["median"] - spread["lower quartile"] for spread in spreads]
    above = [spread["upper quartile"] - spread["median"] for spread in spreads]
    return middle, [below, above]


def bars(axes: Axes, found: dict[str, Spread], digits: int) -> None:
    """Draw a bar for each, its median written on it."""
    middle, away = whiskers(list(found.values()))
    axes.bar(list(found), middle, 0.6, color=WITHIN, yerr=away, ecolor=MUTED)
    for place, value in enumerate(middle):
        axes.text(place, value / 2, f"{value:.{digits}f}", ha="center", va="center")
    axes.axhline(1, color=MUTED, linewidth=0.8)


def steps(axes: Axes, folder: Path) -> None:
    """Draw the share of the floor's speed."""
    key = "observe as a share of the floor"
    bars(axes, {label: read(folder, name)["steps"][key] for label, name in STEPS.items()}, 2)
    axes.set(title="observe: share of the raw step's speed", ylim=(0, 1.1))


def pools(axes: Axes, folder: Path) -> None:
    """Draw how prediction slows down as experts grow."""
    for place, (name, colour) in PLACES.items():
        for (size, key), line in zip(SIZES.items(), ("-", ":"), strict=True):
            found = read(folder, name)[key]
            ratios = [found[count]["speed relative to the smallest pool"] for count in found]
            middle, away = whiskers(ratios)
            counts = [int(count) for count in found]
            axes.errorbar(
                counts, middle, away, color=colour, linestyle=line, label=f"{place}, {size}"
            )
    axes.set(title="predict: speed relative to 5 experts", xlabel="experts", xscale="log")
    axes.set(ylim=(0, 1.1), xticks=counts, xticklabels=[f"{count:,}" for count in counts])
    axes.minorticks_off()
    axes.legend(loc="lower left")


def pruning(axes: Axes, folder: Path) -> None:
    """Draw how much faster many experts are pruned than one by one."""
    found: dict[str, Spread] = {}
    for place, name in PRUNED.items():
        for pool, told in read(folder, name).items():
            if pool.endswith(" experts"):
                found[f"{pool}\n{place}"] = told["speed relative to one by one"]
    bars(axes, found, 1)
    axes.set(title="consolidate: times as fast as one by one")


def draw(figure: Figure, folder: Path) -> None:
    """Draw all three."""
    left, middle, right = figure.subplots(1, 3)
    steps(left, folder)
    pools(middle, folder)
    pruning(right, folder)


def main() -> None:
    """Read, draw and write."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--results", type=Path, default=Path("benchmarks/results"))
    asked.add_argument("--out", type=Path, default=Path("docs/figures"))
    options = asked.parse_args()
    save(Plate("speed", "", "", (11.0, 3.2), partial(draw, folder=options.results)), options.out)


if __name__ == "__main__":
    main()
