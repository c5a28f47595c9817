"""Detection on seeds that no rule was ever adjusted on.

    python benchmarks/fresh_seeds.py [--out benchmarks/results/fresh_seeds.json] [--jobs 1]

Seeds 0 to 9 and 100 to 139 were looked at while the detector and the training step were written;
200 to 239 were not. Streams only, no consolidation: which experts were found, when, what was false.
"""

import argparse
import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

from tame.bench.episodes import Said, episodes, noticing
from tame.bench.experiment import resolve
from tame.bench.machine import versions
from tame.bench.preparation import prepare

ORDERS = {"split": ([], 5), "A-B-A": ([0, 1, 0], 2), "t1 t2 t3 t2 t4": ([0, 1, 2, 1, 3], 4)}
SEEDS = range(200, 240)


def measure(name: str, seed: int) -> dict[str, Any]:
    """Stream once and compare the alarms with what really happened."""
    order, wanted = ORDERS[name]
    experiment = resolve("embedded-split", [{"seed": seed, "stream": {"order": order}}])
    prepare(experiment)
    stream, learner = experiment.open_stream(), experiment.learner()
    seen = [learner.observe(batch) for batch in stream.batches()]
    said = [Said(one.step, one.change, one.expert, one.since) for one in seen]
    alarms = [one.alarm for one in episodes(said) if one.commit is not None]
    found = noticing(stream.truth(), said)
    experts = len(learner.expert_ids)
    exact = experts == wanted and not found["missed"] and not found["false_alarms"]
    row = {"stream": name, "seed": seed, "experts": experts, "exact": exact, "alarms": alarms}
    return {**row, **found}


def main() -> None:
    """Measure every order on every fresh seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/fresh_seeds.json"))
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    options = parser.parse_args()
    names, seeds = zip(*product(ORDERS, SEEDS), strict=True)
    with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
        rows = list(pool.map(measure, names, seeds))
    exact = {
        name: f"{sum(row['exact'] for row in rows if row['stream'] == name)} of {len(SEEDS)}"
        for name in ORDERS
    }
    document = {"exact": exact, "versions": versions(), "rows": rows}
    options.out.write_text(json.dumps(document, indent=1) + "\n")
    print(exact)


if __name__ == "__main__":
    main()
