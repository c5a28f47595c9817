"""The figures of the README on the embedded digits.

    python benchmarks/embedded.py [--out benchmarks/results/embedded.json] [--seeds 10] [--jobs 1]

Runs the packaged preset over seeds, the two returning orders, and the returning orders again with
a consolidation after every segment; writes one row a run and the means with 95 % intervals.
"""

import argparse
import json
import math
import multiprocessing
import statistics
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from tame.bench.episodes import Said, learners, noticing
from tame.bench.experiment import Experiment, resolve
from tame.bench.metrics import evaluate, stands_for, summarise, teaching
from tame.bench.preparation import prepare
from tame.bench.run import Unwatched, start

ORDERS = {"A-B-A": [0, 1, 0], "t1 t2 t3 t2 t4": [0, 1, 2, 1, 3]}
EXPERTS = {"split": 5, "A-B-A": 2, "t1 t2 t3 t2 t4": 4}
STUDENT = {5: 2.776, 10: 2.262}
Form = Callable[[str, Experiment], dict[str, Any]]


def plain(name: str, experiment: Experiment) -> dict[str, Any]:
    """Run an experiment as `tame run` would."""
    with tempfile.TemporaryDirectory() as folder:
        result = start(experiment, folder, Unwatched(), overwrite=True)
    return row(name, experiment.seed, result["experts"], result["accuracy"], result)


def lifelong(name: str, experiment: Experiment) -> dict[str, Any]:
    """Consolidate after every segment; where they end only the benchmark knows."""
    prepare(experiment)
    stream, learner = experiment.open_stream(), experiment.learner()
    truth = stream.truth()
    events = []
    for step, batch in enumerate(stream.batches()):
        if step in truth.starts[1:]:
            learner.consolidate()
        events.append(learner.observe(batch))
    learner.consolidate()
    said = [Said(seen.step, seen.change, seen.expert, seen.since) for seen in events]
    stands = stands_for(truth, teaching(truth, learners(said)))
    rows = evaluate(learner, truth, stream.held_out(), stands)
    selector = statistics.fmean(part["selector"] for part in rows)
    found = {"detection": noticing(truth, said), "selector_accuracy": selector}
    return row(name, experiment.seed, len(learner.expert_ids), summarise(rows), found)


def row(
    name: str, seed: int, experts: int, accuracy: dict[str, Any], found: dict[str, Any]
) -> dict[str, Any]:
    """Return one line of the results."""
    return {
        "stream": name,
        "seed": seed,
        "experts": experts,
        **{key: round(value, 5) for key, value in accuracy.items()},
        "selector": round(found["selector_accuracy"], 5),
        **found["detection"],
        **({"seconds": found["seconds"]} if "seconds" in found else {}),
        **({"parameters": found["parameters"]} if "parameters" in found else {}),
    }


def summary(rows: list[dict[str, Any]], wanted: int) -> dict[str, Any]:
    """Return means, 95 % intervals (Student's t) and how many runs found just the right experts."""
    count = len(rows)
    exact = sum(r["experts"] == wanted and not r["missed"] for r in rows)
    found: dict[str, Any] = {"n": count, "right_experts": exact}
    for key in ("strict", "within_segment", "oracle", "selector"):
        values = [100 * r[key] for r in rows]
        spread = statistics.stdev(values) / math.sqrt(count) if count > 1 else 0.0
        found[key] = [
            round(statistics.fmean(values), 3),
            round(STUDENT.get(count, 1.96) * spread, 3),
        ]
    found["largest_delay"] = max((max(r["delays"], default=0) for r in rows), default=0)
    found["false_alarms"] = sum(r["false_alarms"] for r in rows)
    return found


def measure(task: tuple[str, Form, list[int], int]) -> dict[str, Any]:
    """Run one order with one seed."""
    name, form, order, seed = task
    found = form(name, resolve("embedded-split", [{"seed": seed, "stream": {"order": order}}]))
    print(found, flush=True)
    return found


def main() -> None:
    """Run everything and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/embedded.json"))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    options = parser.parse_args()
    forms: list[tuple[str, str, Form, list[int]]] = [("split", "split", plain, [])]
    for name, order in ORDERS.items():
        forms += [(name, name, plain, order), (f"{name}, lifelong", name, lifelong, order)]
    tasks = [(name, form, order, s) for name, _, form, order in forms for s in range(options.seeds)]
    with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
        rows = list(pool.map(measure, tasks))
    means = {}
    for name, kind, *_ in forms:
        means[name] = summary([row for row in rows if row["stream"] == name], EXPERTS[kind])
        print(name, means[name])
    table: Experiment = resolve("embedded-split")
    document = {"command": "python benchmarks/embedded.py", "means": means, "rows": rows}
    document["configuration"] = table.table()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
