"""What `TAME()` reaches on measurements: vectors in units of their own, not images.

    python benchmarks/vectors.py [--seeds 3] [--jobs 2] [--out FILE]

Five streams that need no download, each of four worlds in the order 0 1 2 1 3 (or of five pairs of
digits), in batches of 32. Rows: `TAME()` as it is; the plain settings with a perceptron, which it
had before (`TAME(net="mlp")`); and one network that learns on, inputs standardised as ours are.
Accuracy is strict, on a thousand samples of each world that were never shown (digits: a fifth);
*at once* is that of `predict(x, when="now")` on every batch before it is learned. The settings were
chosen on seed 0; those here begin with 10.
"""

import argparse
import json
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.datasets import load_digits, make_classification

from tame import TAME, Batch
from tame.bench.machine import versions
from tame.core.defaults import ENOUGH
from tame.core.inputs import Inputs
from tame.methods.finetune import FineTune
from tame.methods.single import SingleSettings

OUT = Path("benchmarks/results/vectors.json")
FIRST, SHOWN, HELD, BATCH = 10, 3200, 1000, 32
Array = np.ndarray[Any, np.dtype[Any]]


class World(NamedTuple):
    """What is shown of one distribution, in order, and what is held out."""

    x: Array
    y: Array
    held_x: Array
    held_y: Array


def normal(seed: int, *, units: bool = False) -> list[World]:
    """Three states of twenty sensors, other ones in every world; each sensor in its own unit."""
    draws = np.random.default_rng(1000 + seed)
    unit = 10 ** draws.uniform(-2, 3, 20) if units else np.ones(20)
    zero = unit * draws.normal(size=20) * 3 if units else np.zeros(20)
    return [_normal(10 * seed + number, unit, zero) for number in range(4)]


def _normal(seed: int, unit: Array, zero: Array) -> World:
    draws = np.random.default_rng(seed)
    centres = draws.normal(size=(3, 20)) * 1.5 / np.sqrt(2)
    y = draws.integers(0, 3, SHOWN + HELD)
    return _cut((centres[y] + draws.normal(size=(len(y), 20))) * unit + zero, y)


def clusters(seed: int) -> list[World]:
    """Four classes of two clusters each among twenty features, eight of which tell anything."""
    form = {"n_features": 20, "n_informative": 8, "n_redundant": 4, "class_sep": 1.5}
    form |= {"n_classes": 4, "n_clusters_per_class": 2}
    seeds = range(10 * seed, 10 * seed + 4)
    return [_cut(*make_classification(SHOWN + HELD, random_state=one, **form)) for one in seeds]


def _cut(x: Array, y: Array) -> World:
    return World(x[:SHOWN], y[:SHOWN], x[SHOWN:], y[SHOWN:])


def digits(seed: int, *, permuted: bool) -> list[World]:
    """Scikit-learn's 8 x 8 digits as vectors: five pairs, or four orders of the pixels."""
    x, y = load_digits(return_X_y=True)
    draws = np.random.default_rng(seed)
    rows = draws.permutation(len(x))
    shown, held = np.split(rows, [len(x) * 4 // 5])
    worlds = []
    for number in range(4 if permuted else 5):
        own = np.ones(len(y), bool) if permuted else y // 2 == number
        order = draws.permutation(64) if permuted and number else np.arange(64)
        some, back = shown[own[shown]], held[own[held]]
        seen = np.concatenate([draws.permutation(some) for _ in range(4 if permuted else 16)])
        worlds.append(World(x[seen][:, order], y[seen], x[back][:, order], y[back]))
    return worlds


def standardised(seed: int) -> FineTune:
    """Return one network that goes on learning, with inputs as ours."""
    settings = SingleSettings(inputs=Inputs(standardise=ENOUGH))
    return FineTune(net="mlp", seed=seed, settings=settings)


STREAMS: dict[str, Callable[[int], list[World]]] = {
    "normal": normal,
    "normal, in units": lambda seed: normal(seed, units=True),
    "clusters": clusters,
    "digits, pairs": lambda seed: digits(seed, permuted=False),
    "digits, permuted": lambda seed: digits(seed, permuted=True),
}
ROWS: dict[str, Callable[[int], Any]] = {
    "TAME()": lambda seed: TAME(seed=seed),
    "plain settings": lambda seed: TAME(net="mlp", seed=seed),
    "one network": standardised,
}


def batches(worlds: list[World]) -> Iterator[Batch]:
    """Yield the stream."""
    for number in (0, 1, 2, 1, 3) if len(worlds) == 4 else range(len(worlds)):
        x, y, *_ = worlds[number]
        for start in range(0, len(x) - BATCH + 1, BATCH):
            rows = slice(start, start + BATCH)
            yield Batch(x[rows].astype(np.float32), y[rows].astype(np.int64))


def share(learner: Any, x: Any, y: Any, when: str = "ever") -> float:
    """Return how much of some samples a learner has right."""
    found = learner.predict(torch.as_tensor(np.asarray(x, np.float32)), when=when)
    return float((found == torch.as_tensor(y)).double().mean())


def run(task: tuple[str, str, int]) -> dict[str, Any]:
    """Run one row on one stream."""
    torch.set_num_threads(1)
    stream, row, seed = task
    worlds, learner = STREAMS[stream](seed), ROWS[row](seed)
    at_once = []
    for batch in batches(worlds):
        at_once.append(share(learner, batch.x, batch.y, "now"))
        learner.observe(batch)
    learner.consolidate()
    strict = [share(learner, world.held_x, world.held_y) for world in worlds]
    return {
        "stream": stream,
        "row": row,
        "seed": seed,
        "strict": round(float(np.mean(strict)), 5),
        "at_once": round(float(np.mean(at_once[1:])), 5),
        "experts": len(getattr(learner, "expert_ids", ())),
        "worlds": len(worlds),
        "nonzero": learner.sizes().nonzero,
    }


def table(runs: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the table of means."""
    yield "| stream | row | strict | at once | experts | non-zero |"
    yield "|---" * 6 + "|"
    for stream in STREAMS:
        for row in ROWS:
            own = [one for one in runs if (one["stream"], one["row"]) == (stream, row)]
            mean = {key: np.mean([one[key] for one in own]) for key in ("strict", "at_once")}
            exact = sum(one["experts"] == one["worlds"] for one in own)
            experts = f"exact in {exact} of {len(own)}" if own[0]["experts"] else ""
            counts = sorted(one["nonzero"] for one in own)
            cells = (f"{100 * mean['strict']:.1f}", f"{100 * mean['at_once']:.1f}", experts)
            yield f"| {stream} | {row} | {' | '.join(cells)} | {counts[0]:,} to {counts[-1]:,} |"


def main() -> None:
    """Run everything, write the file and print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--out", type=Path, default=OUT)
    asked = options.parse_args()
    seeds = range(FIRST, FIRST + asked.seeds)
    tasks = [(stream, row, seed) for stream in STREAMS for row in ROWS for seed in seeds]
    with ProcessPoolExecutor(asked.jobs, multiprocessing.get_context("spawn")) as pool:
        runs = list(pool.map(run, tasks))
    asked.out.write_text(json.dumps({"versions": versions(), "runs": runs}, indent=1) + "\n")
    print("\n".join(table(runs)))


if __name__ == "__main__":
    main()
