"""How long a whole stream takes, and whether both engines decide alike.

    python benchmarks/stream_speed.py paper/permuted-mnist --device cuda [--data DIR] [--out FILE]
    python benchmarks/stream_speed.py paper/permuted-mnist --device cuda --passes 1 --compare

A learner observes the stream of a preset, batch after batch, as it is drawn; nothing is
consolidated. Another one has observed its first batches before, and what that took in a fresh
process is told apart: torch loads libraries then, which takes seconds whatever comes after.
`--compare` lets the eager engine learn the same stream at the same precision, and tells whether
changes were noticed at the same batches, and how far losses were apart.
"""

import argparse
import os
import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from speed import parser, synchronise, tell

from tame.bench.experiment import resolve
from tame.streams.folder import VARIABLE
from tame.types import Change

QUANTILES = (0.05, 0.5, 0.95, 0.99, 1.0)
WARM_UP = 5  # batches


def watch(preset: str, changes: list[dict[str, Any]], device: torch.device) -> dict[str, Any]:
    """Let a learner observe a stream, and return how long it took and what it noticed."""
    experiment = resolve(preset, [*changes, {"device": str(device)}])
    stream, learner = experiment.open_stream(), experiment.learner()
    losses, shifts, each, samples = [], [], [], 0
    synchronise(device)
    begun = last = time.perf_counter()
    for batch in stream.batches():
        seen = learner.observe(batch)
        samples += len(batch)
        losses.append(seen.loss)
        if seen.change is not Change.NONE:
            shifts.append([seen.step, seen.change.value, seen.expert])
        now = time.perf_counter()
        each.append(now - last)
        last = now
    synchronise(device)
    seconds = time.perf_counter() - begun
    return {
        "seconds": seconds,
        "batches": len(losses),
        "samples": samples,
        "samples a second": samples / seconds,
        "ms a batch, quantiles": {
            str(q): 1000 * float(np.quantile(np.array(each), q)) for q in QUANTILES
        },
        "experts": len(learner.expert_ids),
        "segments": len(stream.truth().starts),
        "starts": list(stream.truth().starts),
        "shifts": shifts,
        "losses": losses,
    }


def warm_up(preset: str, device: torch.device) -> float:
    """Let a learner observe a few batches, and return the seconds that took."""
    experiment = resolve(preset, [{"device": str(device)}])
    stream, learner = experiment.open_stream(), experiment.learner()
    begun = time.perf_counter()
    for batch in islice(stream.batches(), WARM_UP):
        learner.observe(batch)
    synchronise(device)
    return time.perf_counter() - begun


def compare(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return how two engines differ."""
    away = np.abs(np.array(one["losses"]) - np.array(other["losses"]))
    return {
        "the same shifts": one["shifts"] == other["shifts"],
        "largest difference of losses in the first 100 batches": float(away[:100].max()),
        "mean difference of losses": float(away.mean()),
    }


def arguments() -> argparse.Namespace:
    """Return what was asked for."""
    asked = parser(__doc__)
    asked.add_argument("preset")
    asked.add_argument("--passes", type=int, default=0, help="0: as the preset says")
    asked.add_argument("--compare", action="store_true", help="run the eager engine too")
    asked.add_argument("--data", type=Path)
    return asked.parse_args()


def main() -> None:
    """Measure and write what was found."""
    options = arguments()
    torch.set_num_threads(options.threads)
    if options.data is not None:
        os.environ[VARIABLE] = str(options.data)
    changes = [{"stream": {"passes": options.passes}}] if options.passes else []
    command = f"python benchmarks/stream_speed.py {options.preset} --device {options.device}"
    command += f" --passes {options.passes}" if options.passes else ""
    command += " --compare" if options.compare else ""
    cold = warm_up(options.preset, options.device)
    found: dict[str, Any] = {"command": command, f"first {WARM_UP} batches of a process: s": cold}
    runs = {
        engine: watch(options.preset, [*changes, {"training": {"engine": engine}}], options.device)
        for engine in (["captured", "eager"] if options.compare else ["captured"])
    }
    if options.compare:
        found["compared"] = compare(*runs.values())
    for run in runs.values():
        run.pop("losses")
    tell(found | {"engines": runs}, options)


if __name__ == "__main__":
    main()
