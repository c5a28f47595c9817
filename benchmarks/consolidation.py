"""How long experts take to prune: one after another, and as `consolidate` prunes them.

    python benchmarks/consolidation.py [--device cpu] [--threads 1] [--rounds 3] [--out FILE]

The experts are LeNets, each with a full reservoir, recruited one after another by telling an
`oracle` so. `consolidate` prunes and retrains all that have learned since the last time: on a GPU
side by side, their steps recorded as branches of one CUDA graph; on a processor one by one, or in
`workers`, here one a core. Both ways take turns in one process; what counts is the ratio of each
round. A process of the workers' starts with torch to import, which is counted.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from speed import BATCH, parser, settings, spread, tell, timed

from tame import Batch, Settings
from tame.core.consolidate import compact
from tame.core.errand import prune_experts
from tame.engine.processes import Processes
from tame.methods.oracle import Oracle
from tame.streams.dataset import read
from tame.types import Hint

POOLS = {"cpu": (5,), "cuda": (5, 20)}
PASSES = 10


def learned(count: int, device: torch.device) -> Oracle:
    """Return a learner with so many experts that were never pruned, their reservoirs full.

    Each has gone a few times over embedded digits of its own drawing.
    """
    made = Oracle(net="lenet", settings=settings("lenet"), device=str(device))
    data, draws = read("embedded"), np.random.Generator(np.random.PCG64(0))
    batches = -(-made.settings.pruner.memory // BATCH)
    for task in range(count):
        made.inform(Hint(task=task))
        rows = draws.permutation(len(data.y))[: batches * BATCH].reshape(batches, BATCH)
        for part in np.tile(rows, (PASSES, 1)):
            made.observe(Batch(data.x[part], data.y[part]))
    return made


def pruning(made: Oracle, chosen: Settings, *, alone: bool) -> Callable[[int], None]:
    """Return the pruning of all experts, as `consolidate` does it or each for itself."""
    pool, intake = made._pool, made._intake  # noqa: SLF001 (measured from the inside)
    assert pool is not None  # noqa: S101 (something was observed)

    def work(_: int) -> None:
        experts = [pool.open(number) for number in pool.ids]
        for expert in experts:
            expert.compact = None
        if alone:
            for expert in experts:
                compact([expert], chosen.pruner, intake.ready, len(intake.labels))
        else:
            prune_experts(experts, chosen, intake)

    return work


def compare(count: int, device: torch.device, rounds: int) -> dict[str, Any]:
    """Let both ways take turns."""
    made = learned(count, device)
    on_gpu = device.type == "cuda"
    way = "side by side" if on_gpu else f"in {len(os.sched_getaffinity(0))} processes"
    chosen = replace(made.settings, workers=None if on_gpu else Processes())
    one_by_one = pruning(made, chosen, alone=True)
    all_at_once = pruning(made, chosen, alone=False)
    for work in (one_by_one, all_at_once):
        work(0)
    pairs = [(timed(one_by_one, 1, device), timed(all_at_once, 1, device)) for _ in range(rounds)]
    return {
        "samples of each": made.settings.pruner.memory,
        "one by one: s": spread([a for a, _ in pairs]),
        f"{way}: s": spread([b for _, b in pairs]),
        "speed relative to one by one": spread([a / b for a, b in pairs]),
    }


def main() -> None:
    """Measure and write what was found."""
    asked = parser(__doc__)
    asked.add_argument("--rounds", type=int, default=3)
    asked.add_argument("--pools", type=int, nargs="+")
    options = asked.parse_args()
    torch.set_num_threads(options.threads)
    device = options.device
    found: dict[str, Any] = {
        "command": f"python benchmarks/consolidation.py --device {device} "
        f"--threads {options.threads} --rounds {options.rounds}",
    }
    for count in options.pools or POOLS[device.type]:
        found[f"{count} experts"] = compare(count, device, options.rounds)
    tell(found, options)


if __name__ == "__main__":
    main()
