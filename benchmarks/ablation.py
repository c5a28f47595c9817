"""What each part of a preset is worth, judged on training data held back in each segment.

    python benchmarks/ablation.py PRESET --data DIR [--seeds 3] [--device cpu] [--out FILE]
        [--set KEY=VALUE ...] --try "NAME:KEY=VALUE[;KEY=VALUE]" [--try ...]

Runs the preset as it is and with each set of changes, on the stream of a tenth less training data;
that tenth, not the test set, is what it is judged on. So anything may be chosen by these figures.
"""

import argparse
import json
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

from tame.bench.experiment import Experiment, resolve
from tame.bench.machine import hardware, versions
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


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("preset")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--try", action="append", default=[], dest="tries")
    return parser.parse_args()


def compare(asked: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """Return the figures of each variant, a row a seed."""
    fixed = [{"device": asked.device}, *map(assignment, asked.set)]
    variants = {"as it is": ""} | dict(text.split(":", 1) for text in asked.tries)
    rows: dict[str, list[dict[str, Any]]] = {}
    for name, change in variants.items():
        changes = [*fixed, *(assignment(one) for one in change.split(";") if one)]
        seeds = range(asked.seeds)
        rows[name] = [measured(held_back(asked.preset, [*changes, {"seed": s}])) for s in seeds]
        means = {key: statistics.fmean(row[key] for row in rows[name]) for key in FIGURES}
        print(name, {key: round(value, 5) for key, value in means.items()}, flush=True)
    return rows


def main() -> None:
    """Run one study."""
    asked = options()
    if asked.data:
        os.environ["TAME_DATA"] = str(asked.data)
    rows = compare(asked)
    if asked.out:
        heading = {"preset": asked.preset, "set": asked.set, "try": asked.tries}
        told = {**heading, "hardware": hardware(asked.device), "versions": versions()}
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text(json.dumps({**told, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
