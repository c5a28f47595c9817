"""What ranks do in the tests of several processes: `ranks.py SCENE FOLDER`, alone or by torchrun.

Every rank leaves the learners it ends with as FOLDER/NAME-rank.tame, and what it has to say as
FOLDER/rank.json.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from small import SHORTER, small_experiment
from torch import nn

from tame import TAME, Batch, Deviation, Inputs, Settings, TameError, join, load
from tame.bench.run import Unwatched, start
from tame.core.augment import Affine
from tame.core.conduct import Immediate
from tame.engine.world import SECONDS, TIMEOUT, World

PATIENCE = 5.0
SIZES = (12, 7, 2, 1, 9, 3, 700)


def normed(input_shape: tuple[int, ...], n_outputs: int) -> nn.Module:
    """Return a network with batch norm over images and over vectors."""
    channels = input_shape[0]
    return nn.Sequential(
        nn.Conv2d(channels, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
        nn.Flatten(), nn.Linear(16, 8), nn.BatchNorm1d(8, momentum=None), nn.ReLU(),
        nn.Linear(8, n_outputs),
    )  # fmt: skip


def dropping(input_shape: tuple[int, ...], n_outputs: int) -> nn.Module:
    """Return a network that draws at random, and has a part no sample reaches."""
    net = nn.Sequential(
        nn.Flatten(), nn.Linear(int(torch.Size(input_shape).numel()), 8), nn.Dropout(0.5),
        nn.Linear(8, n_outputs),
    )  # fmt: skip
    net.register_parameter("idle", nn.Parameter(torch.ones(3)))
    return net


def images(sizes: tuple[int, ...] = SIZES) -> Iterator[Batch]:
    """Yield batches of such sizes."""
    generator = torch.Generator().manual_seed(0)
    for size in sizes:
        x = torch.randint(256, (size, 10, 10), dtype=torch.uint8, generator=generator)
        yield Batch(x, torch.randint(3, (size,), generator=generator))


def digits(world: World, folder: Path) -> dict[str, Any]:
    """Two pairs of digits in double precision."""
    torch.set_default_dtype(torch.float64)
    stream = small_experiment("stream.passes=2", "stream.order=[0,1]").open_stream()
    settings = Settings(conduct=Immediate(), detector=Deviation())
    learner = TAME(net="lenet", settings=settings)
    seen = [learner.observe(batch) for batch in stream.batches()]
    learner.save(folder / f"digits-{world.rank}.tame")
    return {"seen": [[s.step, s.change, s.expert] for s in seen], "losses": [s.loss for s in seen]}


def careful(world: World, folder: Path) -> dict[str, Any]:
    """Two pairs of digits, a burst and a return, under the default, careful conduct."""
    torch.set_default_dtype(torch.float64)
    stream = small_experiment("stream.passes=3").open_stream()
    learner = TAME(net="lenet")
    batches = list(stream.batches())
    batches[60:63] = [Batch(batch.x, batch.y.flip(0) ^ 1) for batch in batches[60:63]]
    seen = [learner.observe(batch) for batch in batches]
    learner.save(folder / f"careful-{world.rank}.tame")
    return {"seen": [[s.step, s.change, s.expert, s.since] for s in seen]}


def norms(world: World, folder: Path) -> dict[str, Any]:
    """Batch norm on batches of all sizes, with and without augmentation."""
    torch.set_default_dtype(torch.float64)
    for name, augment in (("plain", None), ("augmented", Affine())):
        learner = TAME(net=normed, settings=Settings(inputs=Inputs(augment=augment)))
        for batch in images():
            learner.observe(batch)
        learner.save(folder / f"{name}-{world.rank}.tame")
    return {}


def dropout(world: World, folder: Path) -> dict[str, Any]:
    """Dropout, without a break and with one."""
    learner, broken = TAME(net=dropping), TAME(net=dropping)
    half = folder / f"half-{world.rank}.tame"
    for number, batch in enumerate(images()):
        learner.observe(batch)
        if number == 3:
            broken.save(half)
            broken = load(half, net=dropping)
        broken.observe(batch)
    learner.save(folder / f"whole-{world.rank}.tame")
    broken.save(folder / f"broken-{world.rank}.tame")
    return {}


def astray(world: World, folder: Path) -> dict[str, Any]:  # noqa: ARG001 (leaves nothing)
    """Give every rank another batch, of the same size, then of another."""
    learner, told = TAME(net="mlp"), []
    for size in (6, 6 + world.rank):
        x = torch.eye(9)[:size] + world.rank
        try:
            learner.observe(Batch(x, torch.arange(size)))
        except TameError as error:
            told.append(str(error))
    return {"told": told}


def run(world: World, folder: Path) -> dict[str, Any]:
    """Run a short experiment, every rank with a folder of its own, so that writing would show."""
    result = start(small_experiment(*SHORTER), folder / f"run-{world.rank}", Unwatched())
    return {"result": result}


def late(world: World, folder: Path) -> dict[str, Any]:
    """Let the second rank keep the first waiting until it complains."""
    learner, complaint = TAME(net="mlp"), folder / "late.txt"
    while world.rank == 1 and not complaint.exists():
        time.sleep(0.1)
    try:
        if world.rank == 0:
            learner.observe(Batch(torch.eye(4), torch.arange(4)))
    except TameError as error:
        return {"told": str(error)}
    finally:
        complaint.touch()
    return {}


def gone(world: World, folder: Path) -> dict[str, Any]:  # noqa: ARG001 (leaves nothing)
    """Let the second rank leave in the middle."""
    learner = TAME(net="mlp")
    learner.observe(Batch(torch.eye(4), torch.arange(4)))
    if world.rank == 1:
        os._exit(0)
    try:
        learner.observe(Batch(torch.eye(4), torch.arange(4)))
    except TameError as error:
        return {"told": str(error)}
    return {}


SEQUENCE = (digits, careful, norms, dropout, astray, run, late, gone)
SCENES = {scene.__name__: scene for scene in SEQUENCE}


def main() -> None:
    """Play the scenes named on the command line."""
    folder = Path(sys.argv[2])
    for name in sys.argv[1].split(","):
        torch.set_default_dtype(torch.float32)
        os.environ[TIMEOUT] = str(PATIENCE if name == "late" else SECONDS)
        with join() as world:
            told = SCENES[name](world, folder)
        (folder / f"{name}-{world.rank}.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main()
