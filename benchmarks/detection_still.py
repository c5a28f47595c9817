"""The whole default learner where nothing changes: suspicions, decisions and experts.

    TAME_DATA=... python benchmarks/detection_still.py [--steps 100000] [--data mnist]
        [--batches 8 32 128] [--seeds 5] [--jobs 2] [--out FILE]

`detection_null.py` replays losses to detectors alone. Here a LeNet learns all ten digits, drawn
anew in every pass, under the default detector and conduct, and whatever the conduct says is noted:
a suspicion held for a batch, a newcomer on probation, one that was recruited, a switch. Beside
that, how often the detector raised an alarm, how often a batch stood out in the loss, and how often
such a batch looked unlike those before. Runs the file holds already are not repeated.
"""

import argparse
import json
import multiprocessing
import time
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from tame.bench.experiment import Experiment, resolve
from tame.bench.machine import versions
from tame.core import looks
from tame.core.appearance import unlike
from tame.core.detectors.quorum import Quorum
from tame.types import Reading, Verdict

OUT = Path("benchmarks/results/detection/still.json")
Task = tuple[str, int, int, int]


class Counting:
    """Stands before `unlike` and counts what it is asked and answers."""

    def __init__(self) -> None:
        self.asked = self.strange = 0

    def __call__(self, *found: Any) -> bool:
        """Return what `unlike` says."""
        strange = unlike(*found)
        self.asked += 1
        self.strange += strange
        return strange


class Alarms:
    """Stands before a detector's `update` and counts the alarms, over all experts."""

    def __init__(self) -> None:
        self.raised = 0
        ask = Quorum.update

        def update(detector: Quorum, reading: Reading) -> Verdict:
            verdict = ask(detector, reading)
            self.raised += verdict.shift
            return verdict

        setattr(Quorum, "update", update)  # noqa: B010 (a method, for this process alone)


def experiment(data: str, batch: int, seed: int, steps: int) -> Experiment:
    """Return the default learner of the grids of detection on one segment of all labels."""
    stream = {"name": "split", "data": data, "classes": 10, "batch": batch, "lengths": [steps]}
    learner = {"detector": "quorum", "conduct": "careful", "training": {"start": "features"}}
    return resolve("bench/detection", [{"seed": seed, "stream": stream}, learner])


def run(task: Task) -> dict[str, Any]:
    """Return what a learner said in so many batches."""
    data, batch, seed, steps = task
    torch.set_num_threads(1)
    made, begun = experiment(*task), time.perf_counter()
    learner, said = made.learner(), Counter[str]()
    counting, alarms = Counting(), Alarms()
    setattr(looks, "unlike", counting)  # noqa: B010 (its own name there)
    loss = 0.0
    for one in made.open_stream().batches():
        seen = learner.observe(one)
        said[str(seen.change.value)] += 1
        loss += 0.01 * (seen.loss - loss)
    return {
        "data": data, "batch": batch, "seed": seed, "steps": steps,
        "said": {name: said[name] for name in ("suspected", "withdrawn", "recruited", "switched")},
        "experts": len(learner.expert_ids),
        "alarms": alarms.raised,
        "harder": counting.asked,
        "harder_and_strange": counting.strange,
        "last_loss": round(loss, 5),
        "seconds": round(time.perf_counter() - begun),
        "versions": versions(),
    }  # fmt: skip


def name_of(data: str, batch: int, seed: int, steps: int) -> str:
    """Return the name a run has in the file."""
    return f"{data} | batch {batch} | seed {seed} | {steps} batches"


def complete(tasks: list[Task], jobs: int, out: Path) -> None:
    """Run what the file does not hold yet, and write it after every run."""
    document: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
    document["command"] = "python benchmarks/detection_still.py"
    waiting = [task for task in tasks if name_of(*task) not in document]
    out.parent.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    with context.Pool(jobs, maxtasksperchild=1) as pool:
        for found in pool.imap_unordered(run, waiting):
            told = (found["data"], found["batch"], found["seed"], found["steps"])
            document[name_of(*told)] = found
            out.write_text(json.dumps(document, indent=1) + "\n")
            print(name_of(*told), {key: found[key] for key in list(found)[4:-1]}, flush=True)


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--data", default="mnist")
    parser.add_argument("--batches", nargs="*", type=int, default=[8, 32, 128])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    tasks = [
        (asked.data, batch, seed, asked.steps)
        for seed in range(asked.seeds)
        for batch in asked.batches
    ]
    complete(tasks, asked.jobs, asked.out)


if __name__ == "__main__":
    main()
