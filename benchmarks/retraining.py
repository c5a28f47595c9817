"""How well pruned experts do on training images they did not keep, by the recipe of retraining.

    python benchmarks/retraining.py PRESET --data DIR --work DIR [--device cpu] [--seed 0]
        [--out FILE] [--set KEY=VALUE ...] --try 'KEY=VALUE[;KEY=VALUE]' [--try ...]

The stream runs once; then its experts are pruned by the preset's recipe, and again with each set of
changes. Each is judged on 5,120 images of its own segment that are not in its reservoir: training
data, so that a recipe can be chosen without a look at the test set.
"""

import argparse
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import torch
import variants
from torch import Tensor

from tame.bench.experiment import Experiment, resolve
from tame.bench.preparation import prepare
from tame.config import assignment
from tame.core.learner import TAME
from tame.loading import load_run

BATCHES = 40


def learned(experiment: Experiment, path: Path) -> None:
    """Let a learner go through the stream once, and put it aside."""
    if path.exists():
        return
    learner = experiment.learner()
    for batch in experiment.open_stream().batches(0):
        learner.observe(batch)
    path.parent.mkdir(parents=True, exist_ok=True)
    learner.save(path)


def unkept(learner: TAME, experiment: Experiment) -> list[tuple[int, Tensor, Tensor]]:
    """Return each segment's expert, and images and labels of it that it does not keep."""
    stream = experiment.open_stream()
    pool = learner._pool  # noqa: SLF001 (a study of its insides)
    assert pool is not None  # noqa: S101 (it has seen data)
    found = []
    for expert, start in zip(pool.awake, stream.truth().starts, strict=True):
        pairs = [pair for _, pair in zip(range(BATCHES), stream.batches(start), strict=False)]
        x, y = (torch.cat(column) for column in zip(*pairs, strict=True))
        kept = _rows(expert.memory.columns()[0])
        fresh = torch.from_numpy(~np.isin(_rows(x), kept))
        found.append((expert.id, x[fresh], y[fresh]))
    return found


def _rows(x: Tensor) -> np.ndarray:
    flat = x.flatten(1).contiguous().cpu().numpy()
    return flat.view(f"V{flat.shape[1] * flat.itemsize}").ravel()


def judged(learner: TAME, data: list[tuple[int, Tensor, Tensor]]) -> list[float]:
    """Return the share of right answers of each expert."""
    shares = []
    for expert, x, y in data:
        right = learner.predict_by(x, expert).cpu() == y
        shares.append(float(right.double().mean()))
    return shares


def compare(asked: argparse.Namespace) -> dict[str, Any]:
    """Return what each recipe makes of the same experts."""
    fixed = [{"seed": asked.seed, "device": asked.device}, *map(assignment, asked.set)]
    experiment = resolve(asked.preset, fixed)
    prepare(experiment)
    aside = asked.work / f"{Path(asked.preset).name}-seed{asked.seed}.tame"
    learned(experiment, aside)
    rows: dict[str, Any] = {}
    for change in ["", *asked.tries]:
        learner: Any = load_run(aside, device=asked.device)[0]
        data = unkept(learner, experiment)
        dense = judged(learner, data)
        learner.settings = (
            resolve(asked.preset, [*fixed, *variants.changes(change)]).learner().settings
        )
        learner.consolidate()
        shares = judged(learner, data)
        rows[change or "as it is"] = {"dense": dense, "pruned": shares}
        print(f"{change or 'as it is'}: dense {statistics.mean(dense):.4f}", end=" ")
        print(f"pruned {statistics.mean(shares):.4f} least {min(shares):.4f}", flush=True)
    return rows


def main() -> None:
    """Run one study."""
    options = variants.parser(__doc__)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--work", type=Path, required=True)
    asked = variants.asked(options)
    variants.write(asked, {"seed": asked.seed}, compare(asked))


if __name__ == "__main__":
    main()
