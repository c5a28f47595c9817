"""What each part of a preset is worth, judged on training data held back in each segment.

    python benchmarks/ablation.py PRESET --data DIR [--seeds 3] [--device cpu] [--out FILE]
        [--set KEY=VALUE ...] --try "NAME:KEY=VALUE[;KEY=VALUE]" [--try ...]

Runs the preset as it is and with each set of changes, on the stream of a tenth less training data;
that tenth, not the test set, is what it is judged on. So anything may be chosen by these figures.
"""

import argparse
import statistics
import tempfile
from typing import Any

import variants

from tame.bench.experiment import Experiment, resolve
from tame.bench.run import Unwatched, start
from tame.config import assignment

FIGURES = ("strict", "oracle", "selector", "nonzero", "bytes", "experts", "false_alarms")


def held_back(preset: str, changes: list[dict[str, Any]]) -> Experiment:
    """Return an experiment on the same stream less a tenth of its training data."""
    data = resolve(preset, changes).stream.data
    return resolve(preset, [*changes, {"stream": {"data": f"held-back:{data}"}}])


def measured(experiment: Experiment) -> dict[str, Any]:
    """Run an experiment and return its figures."""
    with tempfile.TemporaryDirectory() as folder:
        result = start(experiment, folder, Unwatched(), overwrite=True)
    return {
        "seed": experiment.seed,
        "strict": result["accuracy"]["strict"],
        "oracle": result["accuracy"]["oracle"],
        "selector": result["selector_accuracy"],
        "nonzero": result["parameters"]["nonzero"],
        "bytes": result["bytes"]["samples"],
        "experts": result["experts"],
        "false_alarms": result["detection"]["false_alarms"],
        "missed": result["detection"]["missed"],
        "seconds": result["seconds"],
    }


def compare(asked: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """Return the figures of each variant, a row a seed."""
    fixed = [{"device": asked.device}, *map(assignment, asked.set)]
    tries = {"as it is": ""} | dict(text.split(":", 1) for text in asked.tries)
    rows: dict[str, list[dict[str, Any]]] = {}
    for name, change in tries.items():
        made = [*fixed, *variants.changes(change)]
        seeds = range(asked.seeds)
        rows[name] = [measured(held_back(asked.preset, [*made, {"seed": s}])) for s in seeds]
        means = {key: statistics.fmean(row[key] for row in rows[name]) for key in FIGURES}
        print(name, {key: round(value, 5) for key, value in means.items()}, flush=True)
    return rows


def main() -> None:
    """Run one study."""
    options = variants.parser(__doc__)
    options.add_argument("--seeds", type=int, default=3)
    asked = variants.asked(options)
    variants.write(asked, {"try": asked.tries}, compare(asked))


if __name__ == "__main__":
    main()
