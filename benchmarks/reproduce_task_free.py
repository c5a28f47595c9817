"""Cells of the task-free methods' own tables, run again: CN-DPM, HCL and BGD on MNIST.

    python benchmarks/reproduce_task_free.py [--cell NAME ...] [--seeds 3] [--device cuda]
        [--share 1.0] [--steps 1.0] [--out FILE]

Needs MNIST (`tame data fetch mnist`, or TAME_DATA). `--share` shows only the first part of each
segment and `--steps` shortens the density's part of CN-DPM's sleep; a row made with either below 1
is a short version and says so. HCL has no public code: its rows are a reconstruction.
"""

import argparse
import json
import statistics
import time
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import torch

from tame.config import dump
from tame.methods.bgd import BGD, BGDSettings
from tame.methods.cndpm import CNDPM, CNDPMSettings
from tame.methods.hcl import HCL, HCLSettings
from tame.streams.permute import Permute
from tame.streams.split import Split
from tame.types import Change


@dataclass(frozen=True)
class Cell:
    """A published number and what we run for it."""

    published: float | None
    source: str
    learner: type
    settings: Any
    stream: Any
    net: Any = "mlp"
    reconstruction: bool = False


SPLIT = Split(data="mnist", classes=2, batch=32)
FLOW = HCLSettings(couplings=8, hidden=512)
CELLS = {
    "cndpm-split-mnist": Cell(
        93.23,
        "CN-DPM (2020), Split MNIST, one pass",
        CNDPM,
        CNDPMSettings(),
        replace(SPLIT, batch=10),
    ),
    "hcl-fr-split-mnist": Cell(
        90.89, "as the TAME paper quotes HCL-FR", HCL, FLOW, SPLIT, reconstruction=True
    ),
    "hcl-gr-split-mnist": Cell(
        84.65,
        "as the TAME paper quotes HCL-GR",
        HCL,
        replace(FLOW, guard="generative"),
        SPLIT,
        reconstruction=True,
    ),
    "bgd-permuted-mnist": Cell(
        None,
        "BGD (2018) shows a curve, no number; its settings for width 200, ten passes",
        BGD,
        BGDSettings(spread=0.02),
        Permute(data="mnist", segments=10, passes=10, batch=128),
        {"name": "mlp", "hidden": [200, 200]},
    ),
}


def shortened(settings: Any, steps: float) -> Any:
    """Return settings with the density's part of CN-DPM's sleep shortened.

    The classifier's is left alone: it is what finds a new label foreign, and recruits.
    """
    if steps == 1 or not isinstance(settings, CNDPMSettings):
        return settings
    count = max(1, round(steps * settings.rates.density_steps))
    return replace(settings, rates=replace(settings.rates, density_steps=count))


def run(name: str, seed: int, device: str, share: float, steps: float) -> dict[str, Any]:
    """Run one cell with one seed and return its row."""
    cell = CELLS[name]
    settings = shortened(cell.settings, steps)
    learner = cell.learner(net=cell.net, seed=seed, settings=settings, device=device)
    stream = cell.stream.open(seed)
    begun, changes = time.perf_counter(), []
    starts = [*stream.truth().starts, len(stream)]
    for start, end in pairwise(starts):
        shown = max(1, round(share * (end - start)))
        for batch in islice(stream.batches(start), shown):
            seen = learner.observe(batch)
            if seen.change is not Change.NONE:
                changes.append([seen.step, seen.change.value, seen.expert])
    learner.consolidate()
    parts = [(learner.predict(part.x).cpu() == part.y) for part in stream.held_out()]
    return {
        "cell": name,
        "seed": seed,
        "accuracy": round(100 * float(torch.cat(parts).float().mean()), 2),
        "by_segment": [round(100 * float(part.float().mean()), 2) for part in parts],
        "changes": changes,
        "parameters": learner.sizes().dense,
        "published": cell.published,
        "source": cell.source,
        "reconstruction": cell.reconstruction,
        "short": {"share": share, "steps": steps} if min(share, steps) < 1 else None,
        "seconds": round(time.perf_counter() - begun, 1),
        "device": device,
        "settings": dump(settings),
    }


def main() -> None:
    """Run the cells asked for and print a line for each run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cell", action="append", choices=list(CELLS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--steps", type=float, default=1.0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for name in given.cell or CELLS:
        for seed in range(given.seeds):
            rows.append(run(name, seed, given.device, given.share, given.steps))
            shown = {key: value for key, value in rows[-1].items() if key != "settings"}
            print(json.dumps(shown), flush=True)
        found = [row["accuracy"] for row in rows if row["cell"] == name]
        published = CELLS[name].published or "not given"
        print(f"{name}: {statistics.fmean(found):.2f} over {len(found)}; published {published}")
        if given.out:
            given.out.parent.mkdir(parents=True, exist_ok=True)
            given.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
