"""What a thousand experts cost: prediction, probing after an alarm, files, memory.

    python benchmarks/many_experts.py [--device cpu] [--threads 1] [--rounds 5] [--out FILE]

The experts are made, not trained: LeNets with random weights of which 98 % are pruned, each with a
full detector and one remembered sample; the selector is a LeNet with an output for each of them.
Of 60,000 images an equal number goes to each expert: the selector computes its answer, which is
thrown away, and the first two bytes of an image name its expert. Pools of every size take turns, so
that a busy machine slows all of them; what counts is the ratio of each round. Bytes of memory are
those a fresh process gains by loading a file; what selector and samples weigh is taken off.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from speed import BATCH, images, parser, spread, tell, timed
from torch import Tensor

from tame import TAME, Batch, Inputs, NetworkSelector, RoutedModel, Settings, load
from tame.core.prune import magnitude_masks
from tame.engine.fitting import apply_masks
from tame.engine.lesson import Lesson
from tame.types import Reading

POOLS = (5, 20, 100, 1000)
IMAGES = 60_000
SPARSITY = 0.98
A_WEIGHT, AN_EXPERT = 6, 2048  # bytes: the bound
SMALL = 128

FRESH = """
import gc, sys, torch, tame
torch.set_num_threads(1)
def resident():
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
tame.load(sys.argv[1]).model
gc.collect()
before = resident()
learner = tame.load(sys.argv[2])
learner.model
gc.collect()
print(resident() - before)
"""


class Evenly:
    """Lets the router compute, and sends each image where its first two bytes say."""

    def decide(self, model: RoutedModel, raw: Tensor, ready: Tensor) -> Tensor:
        return model.ask(ready, self.choose(model, raw, ready))

    def choose(self, model: RoutedModel, raw: Tensor, ready: Tensor) -> Tensor:
        model.router(raw, ready).argmax(1)
        return raw[:, 0, 0, 0].long() * 256 + raw[:, 0, 0, 1].long()


def addressed(count: int, device: torch.device) -> Tensor:
    """Return images of which an equal number names each expert, in mixed order."""
    x, _ = images(IMAGES, (1, 28, 28))
    draws = torch.Generator().manual_seed(1)
    expert = torch.randperm(IMAGES, generator=draws) % count
    x[:, 0, 0, 0], x[:, 0, 0, 1] = expert // 256, expert % 256
    return x.to(device)


def make(count: int, device: torch.device) -> TAME:
    """Return a learner with so many packed experts, and one more that is active."""
    settings = Settings(inputs=Inputs(mean=(0.1307,), std=(0.3081,)))
    learner = TAME(net="lenet", settings=settings, device=str(device))
    x, y = images(BATCH, (1, 28, 28))
    learner.observe(Batch(x, y))
    pool = learner._pool  # noqa: SLF001 (made from the inside)
    assert pool is not None  # noqa: S101 (something was observed)
    draws = np.random.Generator(np.random.PCG64(0))
    for number in range(count):
        prune(pool.active, draws.normal(1.0, 0.01, 100))
        pool.recruit()
        pool.active.memory.add(x[:1], y[:1])
        if number % 100 == 99:
            pool.shelve()
    pool.shelve()
    fit(learner, x, y)
    return learner


def prune(expert: Any, losses: np.ndarray) -> None:
    """Leave an expert as consolidation would: pruned, with a detector that has a history."""
    network = expert.network
    masks = magnitude_masks(network.net, SPARSITY)
    apply_masks(network.net, masks)
    network.adopt(network.net, masks, network.slots)
    network.steps = expert.settled = 1000
    expert.counts, expert.batch = np.full(10, 12_800), BATCH
    expert.detector.rebase([Reading(float(loss), 0.1, BATCH) for loss in losses])


def fit(learner: TAME, x: Tensor, y: Tensor) -> None:
    """Give the selector a full memory, and an untrained network with an output for each expert."""
    pool, selector = learner._pool, learner._selector  # noqa: SLF001 (made from the inside)
    assert pool is not None  # noqa: S101 (something was observed)
    assert isinstance(selector, NetworkSelector)  # noqa: S101 (set so)
    for number in range(2 * selector.memory // BATCH):
        selector.observe(x, y, number % len(pool.ids))
    plan = replace(pool.plan, input_shape=(1, 28, 28))
    net = plan.build(len(pool.ids), "selector", 0)
    state = selector.state_dict() | {"known": pool.ids, "shape": [1, 28, 28]}
    selector.load_state_dict(state | {"net": dict(net.state_dict())}, plan)
    learner._model = None  # noqa: SLF001 (it was made before)


def compare(works: dict[int, Callable[[int], None]], device: torch.device, rounds: int) -> Any:
    """Let pools of every size take turns; return the seconds of each, and ratios to the first."""
    for work in works.values():
        work(0)
    times: dict[int, list[float]] = {count: [] for count in works}
    for _ in range(rounds):
        for count, work in works.items():
            times[count].append(timed(work, 1, device))
    first = times[min(times)]
    return {
        str(count): {
            "seconds": spread(taken),
            "speed relative to the smallest pool": spread(
                [one / other for one, other in zip(first, taken, strict=True)]
            ),
        }
        for count, taken in times.items()
    }


def predicting(learner: TAME, size: int, device: torch.device, count: int) -> Callable[[int], None]:
    """Return a pass over the images in batches of a size (a tenth of them if that is small)."""
    model, x = learner.model, addressed(count, device)
    model.decision = Evenly()
    parts = x.split(size) if size > SMALL else x[: IMAGES // 10].split(size)

    def work(_: int) -> None:
        for part in parts:
            model.predict(part)

    return work


def probing(learner: TAME, device: torch.device) -> Callable[[int], None]:
    """Return what an alarm costs when nobody knows the batch: the whole shortlist is read."""
    x, y = images(BATCH, (1, 28, 28))
    pool = learner._pool  # noqa: SLF001 (measured from the inside)
    assert pool is not None  # noqa: S101 (it was made)
    step = learner._intake.ready  # noqa: SLF001

    def work(_: int) -> None:
        lesson = Lesson(x, (y + 5) % 10, 10, step, device)
        pool.familiar(lesson, learner._rank)  # noqa: SLF001

    return work


def strict(learner: TAME) -> TAME:
    """Let nobody be found familiar, so that probing reads every candidate."""
    pool = learner._pool  # noqa: SLF001 (measured from the inside)
    assert pool is not None  # noqa: S101 (it was made)
    pool._settings = replace(pool._settings, matcher=NoMatch())  # noqa: SLF001
    return learner


class NoMatch:
    """Reads every candidate and takes none."""

    def find(self, candidates: Any, readings: Any) -> int | None:  # noqa: ARG002 (a matcher's form)
        for _ in readings:
            pass
        return None


def weigh(learners: dict[int, TAME], device: torch.device, rounds: int) -> dict[str, Any]:
    """Write, load and weigh a file of each pool."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        paths = {count: Path(folder) / f"{count}.tame" for count in learners}
        for count, learner in learners.items():
            path = paths[count]
            write = [timed(lambda _: learner.save(path), 1, device) for _ in range(rounds)]  # noqa: B023
            read = [timed(lambda _: _load(path, device), 1, device) for _ in range(rounds)]  # noqa: B023
            found[str(count)] = {
                "file: bytes": path.stat().st_size,
                "write: s": spread(write),
                "load: s": spread(read),
                "memory: bytes gained": spread(
                    [gained(paths[min(paths)], path) for _ in range(max(2, rounds))]
                ),
            }
        found["an expert"] = an_expert(learners, found)
    return found


def _load(path: Path, device: torch.device) -> None:
    load(path, device=str(device))


def gained(first: Path, path: Path) -> float:
    """Return the bytes a fresh process gains by loading a file after it has loaded another."""
    command = [sys.executable, "-W", "ignore", "-c", FRESH, str(first), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


def an_expert(learners: dict[int, TAME], found: dict[str, Any]) -> dict[str, float]:
    """Return the bytes one more expert takes, from the smallest pool to the largest."""
    low, high = min(learners), max(learners)
    more = high - low
    sizes = {count: learners[count].sizes() for count in (low, high)}
    beside = 4 * 85 * more + sizes[high].sample_bytes - sizes[low].sample_bytes
    weights = (sizes[high].nonzero - sizes[low].nonzero) / more - 85
    disk = found[str(high)]["file: bytes"] - found[str(low)]["file: bytes"]
    memory, before = (found[str(n)]["memory: bytes gained"]["median"] for n in (high, low))
    return {
        "weights that are not zero": weights,
        "bound: bytes": A_WEIGHT * weights + AN_EXPERT,
        "file: bytes": (disk - beside) / more,
        "memory: bytes": (memory - before - beside) / more,
    }


def measure(pools: list[int], device: torch.device, rounds: int) -> dict[str, Any]:
    """Measure everything."""
    learners = {count: make(count, device) for count in pools}
    files = weigh(learners, device, rounds)
    whole = {n: predicting(made, IMAGES, device, n) for n, made in learners.items()}
    small = {n: predicting(made, SMALL, device, n) for n, made in learners.items()}
    probes = {n: probing(strict(made), device) for n, made in learners.items()}
    return {
        "files and memory": files,
        f"predict, {IMAGES} images at once": compare(whole, device, rounds),
        f"predict, {IMAGES // 10} images in batches of {SMALL}": compare(small, device, rounds),
        "probing after an alarm": compare(probes, device, rounds),
    }


def main() -> None:
    """Measure and write what was found."""
    asked = parser(__doc__)
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--pools", type=int, nargs="+", default=list(POOLS))
    options = asked.parse_args()
    torch.set_num_threads(options.threads)
    device = options.device
    found = {
        "command": f"python benchmarks/many_experts.py --device {device} "
        f"--threads {options.threads} --rounds {options.rounds}",
        "shortlist": Settings().shortlist,
        "batch of the probe": BATCH,
        **measure(options.pools, device, options.rounds),
    }
    tell(found, options)


if __name__ == "__main__":
    main()
