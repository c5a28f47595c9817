"""What each part of a preset is worth, judged on training data held back in each segment.

    python benchmarks/ablation.py PRESET --data DIR [--seeds 3] [--device cpu] [--jobs 1]
        [--out FILE] [--set KEY=VALUE ...] [--try "NAME:KEY=VALUE[;KEY=VALUE]" ...]

Runs the preset as it is and with each change of `ablation.toml` (or with those to `--try`), on the
stream of a tenth less training data; that tenth, not the test set, is what it is judged on. So
anything may be chosen by these figures. A file that has some of the runs already is gone on with.
Changes of the decision alone, or of the share of the selector's network in what it says, train
nothing: they are read off the run of the preset as it is.
"""

import argparse
import json
import multiprocessing
import statistics
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import variants

from tame.bench.course import copied
from tame.bench.run import Run, Unwatched, start
from tame.bench.store import RunFolder
from tame.config import assignment
from tame.registry import DETECTORS, Entry

STUDIES = Path(__file__).with_suffix(".toml")
BASE = "as it is"
FIGURES = ("strict", "oracle", "selector", "nonzero", "bytes", "experts", "false_alarms")
Row = dict[str, Any]


def register() -> None:
    """Make the blind detector known, in this process."""
    DETECTORS.entries()["blind"] = Entry("blind:Blind", "looks at nothing")


def measured(preset: str, forms: dict[str, list[Row]]) -> dict[str, Row]:
    """Run an experiment and return its figures, and those under other decisions."""
    (first, changes), *others = forms.items()
    with tempfile.TemporaryDirectory() as folder:
        experiment = variants.held_back(preset, changes)
        rows = {first: figures(start(experiment, folder, Unwatched(), overwrite=True))}
        for name, other in others:
            run = Run(variants.held_back(preset, other), RunFolder(folder), Unwatched())
            run.restore()
            run.learner = copied(run.learner, run.experiment.learner)
            rows[name] = figures(run.complete())
    return rows


def figures(result: Row) -> Row:
    """Return what a study keeps of a result."""
    return {
        "seed": result["seed"],
        "strict": result["accuracy"]["strict"],
        "within_segment": result["accuracy"]["within_segment"],
        "oracle": result["accuracy"]["oracle"],
        "selector": result["selector_accuracy"],
        "nonzero": result["parameters"]["nonzero"],
        "bytes": result["bytes"]["samples"],
        "experts": result["experts"],
        "false_alarms": result["detection"]["false_alarms"],
        "missed": result["detection"]["missed"],
        "seconds": result["seconds"],
    }


def tries(asked: argparse.Namespace) -> dict[str, list[Row]]:
    """Return every variant by name: the changes it makes."""
    if asked.tries:
        pairs = (text.split(":", 1) for text in asked.tries)
        return {BASE: []} | {name: variants.changes(change) for name, change in pairs}
    study = tomllib.loads(STUDIES.read_text()).get(Path(asked.preset).stem, {})
    return {BASE: []} | {name: [change] for name, change in study.items()}


def missing(asked: argparse.Namespace, rows: dict[str, list[Row]]) -> Iterator[Row]:
    """Go through the runs that are not there yet, seed by seed, all variants of one first."""
    fixed = [{"device": asked.device}, *map(assignment, asked.set)]
    for seed in range(asked.seeds):
        for group in together(tries(asked)):
            if any(all(row["seed"] != seed for row in rows.get(name, [])) for name in group):
                forms = {
                    name: [*fixed, *changes, *drawn(changes, seed), {"seed": seed}]
                    for name, changes in group.items()
                }
                yield {"preset": asked.preset, "forms": forms}


def together(chosen: dict[str, list[Row]]) -> Iterator[dict[str, list[Row]]]:
    """Put with the preset as it is what changes its answers alone; the others stand alone."""
    after = {
        name: changes
        for name, changes in chosen.items()
        if changes and all(map(trains_nothing, changes))
    }
    yield {BASE: chosen[BASE], **after}
    for name, changes in chosen.items():
        if name != BASE and name not in after:
            yield {name: changes}


def trains_nothing(change: Row) -> bool:
    """Say whether a change is one of how opinions are weighed."""
    return set(change) == {"decision"} or (
        set(change) == {"selector"} and set(change["selector"]) == {"share"}
    )


def drawn(changes: list[Row], seed: int) -> list[Row]:
    """Let boundaries at random be others for every seed."""
    blind = any("blind" in str(change.get("detector")) for change in changes)
    return [{"detector": {"seed": seed}}] if blind else []


def known(asked: argparse.Namespace) -> dict[str, list[Row]]:
    """Return the runs a file has already, if it is of the same study."""
    if not asked.out or not asked.out.exists():
        return {}
    found = json.loads(asked.out.read_text())
    same = {"preset": asked.preset, "set": variants.told(asked.set)}
    if any(found[key] != value for key, value in same.items()):
        raise SystemExit(f"{asked.out} holds another study: {found['preset']} {found['set']}")
    rows: dict[str, list[Row]] = found["rows"]
    return rows


def compare(asked: argparse.Namespace) -> None:
    """Run what is missing, so many at a time, and write the file anew after each."""
    rows = known(asked)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(asked.jobs, context, register) as pool:
        for run in as_completed([pool.submit(measured, **run) for run in missing(asked, rows)]):
            for name, row in run.result().items():
                others = [one for one in rows.get(name, []) if one["seed"] != row["seed"]]
                rows[name] = sorted([*others, row], key=lambda one: one["seed"])
                print(name, {key: row[key] for key in ("seed", *FIGURES)}, flush=True)
            ordered = {one: rows[one] for one in tries(asked) if one in rows}
            variants.write(asked, {"seeds": asked.seeds}, ordered)
    for name, found in rows.items():
        told = {key: mean([row[key] for row in found]) for key in FIGURES}
        print(f"{name}, n = {len(found)}:", told)


def mean(values: list[float | None]) -> float | None:
    """Return the mean of what there is, rounded for a line of text."""
    there = [value for value in values if value is not None]
    return round(statistics.fmean(there), 5) if there else None


def parser() -> argparse.ArgumentParser:
    """Return the options of a study."""
    made = variants.parser(__doc__)
    made.add_argument("--seeds", type=int, default=3)
    made.add_argument("--jobs", type=int, default=1)
    return made


def main() -> None:
    """Run one study."""
    register()
    compare(variants.asked(parser()))


if __name__ == "__main__":
    main()
