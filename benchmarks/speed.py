"""How fast a step runs, against the raw step of the same network, on one machine.

    python benchmarks/speed.py [--device cpu] [--threads 1] [--rounds 9] [--net lenet] [--out FILE]

The floor is the same network, optimiser and clipping on tensors that lie ready in memory, with no
detection, no reservoirs and no records; on a GPU it is captured as one CUDA graph. Floor and
`observe` take turns in one process, so that a busy machine slows both; what counts is the ratio of
each round, its median and its quartiles. `--net vgg11` is the step of `paper/split-cifar100-20`:
there the deciding loss needs a forward of its own, without augmentation, and the floor does the
same work, augmentation and both forwards.
"""

import argparse
import copy
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from tame import TAME, Batch, Inputs, Settings, load
from tame.bench.experiment import resolve as resolve_preset
from tame.bench.machine import hardware, versions
from tame.core.inputs import InputStep
from tame.engine.eager import EagerStep, Manner, find_faces
from tame.engine.fitting import make_optimiser
from tame.engine.graphs import everything, open_state, practise, record, unchanged
from tame.nets import resolve

BATCH = 128
STEPS = {"cpu": 60, "cuda": 600}
WRONG = 0.1
SHAPES = {"lenet": (1, 28, 28), "vgg11": (3, 32, 32)}


def images(count: int, shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Return bytes that look like nothing, and labels that can be learned (ten; in colour five).

    A tenth of the labels are wrong: the loss stays at a level, as that of a real stream does.
    """
    draws = torch.Generator().manual_seed(0)
    labels = 10 if shape[0] == 1 else 5
    y = torch.randint(0, labels, (count,), generator=draws)
    x = torch.randint(0, 128, (count, *shape), dtype=torch.uint8, generator=draws)
    x[torch.arange(count), 0, y, :] = 255
    wrong = torch.rand(count, generator=draws) < WRONG
    return x, torch.where(wrong, torch.randint(0, labels, (count,), generator=draws), y)


def synchronise(device: torch.device) -> None:
    """Wait until the device is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def timed(work: Callable[[int], None], steps: int, device: torch.device) -> float:
    """Return the seconds a step takes."""
    synchronise(device)
    begun = time.perf_counter()
    for step in range(steps):
        work(step)
    synchronise(device)
    return (time.perf_counter() - begun) / steps


def settings(net: str) -> Settings:
    """Return what a learner of this benchmark is made with: defaults, or the preset of the net."""
    if net == "lenet":
        return Settings(inputs=Inputs(mean=(0.1307,), std=(0.3081,)))
    return cast(TAME, resolve_preset("paper/split-cifar100-20", []).learner()).settings


def learner(net: str, device: torch.device) -> TAME:
    """Return the learner that is timed."""
    return TAME(net=net, settings=settings(net), device=str(device))


class Floor:
    """The raw step: forward, backward, clipping, update, on inputs that are ready."""

    def __init__(self, net: str, x: Tensor, y: Tensor, device: torch.device) -> None:
        chosen = settings(net)
        self._inputs = InputStep(chosen.inputs, tuple(x.shape[1:]), x.dtype).to(device)
        training, augment = chosen.training, chosen.inputs.augment
        torch.manual_seed(0)
        made = resolve(net)(tuple(x.shape[1:]), chosen.slots).to(device)
        made = made.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        faces = find_faces(copy.deepcopy(made), self._inputs(x[:4].to(device)))
        ways = (training.output, training.clip, augment, training.precision, faces.one)
        self._step = EagerStep(made, make_optimiser(made, training), Manner(*ways))
        once = self._step.measures_by_training
        self.x = self._inputs(x.to(device)) if once else x.to(device)
        self.y = y.to(device)
        self.count = len(x) // BATCH
        self._live = int(y.max()) + 1
        self._odds = None if augment is None else torch.rand(augment.numbers, BATCH, device=device)
        self._graph: torch.cuda.CUDAGraph | None = None
        if device.type == "cuda":
            self._capture(device)

    def __call__(self, step: int) -> None:
        begin = step % self.count * BATCH
        x, y = self.x[begin : begin + BATCH], self.y[begin : begin + BATCH]
        if self._graph is None:
            self._work(x, y)
            return
        self._x.copy_(x)
        self._y.copy_(y)
        self._graph.replay()

    def _work(self, x: Tensor, y: Tensor) -> None:
        step = self._step
        if not step.measures_by_training:
            step.judge(self._inputs(x), y, self._live, keep=False)
            x = self._inputs.prepare(x, step.manner.augment, self._odds)
        step.backward(step.train(x, y, self._live))
        step.update()

    def _capture(self, device: torch.device) -> None:
        self._x, self._y = self.x[:BATCH].clone(), self.y[:BATCH].clone()
        net, optimiser = self._step.net, self._step.optimiser
        open_state(optimiser)
        with unchanged(everything(net, optimiser), device):
            practise(lambda: self._work(self._x, self._y))
            optimiser.zero_grad(set_to_none=True)
            self._graph = record(lambda: self._work(self._x, self._y), None)


def observing(made: TAME, x: Tensor, y: Tensor) -> Callable[[int], None]:
    """Return a step that shows the learner the next batch."""
    count = len(x) // BATCH

    def step(number: int) -> None:
        begin = number % count * BATCH
        made.observe(Batch(x[begin : begin + BATCH], y[begin : begin + BATCH]))

    return step


def spread(values: list[float]) -> dict[str, float]:
    """Return the median and the quartiles."""
    low, middle, high = statistics.quantiles(values, n=4)
    return {"median": middle, "lower quartile": low, "upper quartile": high}


def measure_steps(net: str, device: torch.device, rounds: int) -> dict[str, Any]:
    """Let floor and `observe` take turns."""
    x, y = images(STEPS[device.type] * BATCH, SHAPES[net])
    floor, made = Floor(net, x, y, device), learner(net, device)
    observe = observing(made, x, y)
    steps = STEPS[device.type]
    for warm in (floor, observe):
        timed(warm, max(150, steps // 4), device)
    before = len(made.expert_ids)
    pairs = [(timed(floor, steps, device), timed(observe, steps, device)) for _ in range(rounds)]
    return {
        "net": net,
        "batch": BATCH,
        "floor: ms a step": spread([1000 * a for a, _ in pairs]),
        "observe: ms a step": spread([1000 * b for _, b in pairs]),
        "observe as a share of the floor": spread([a / b for a, b in pairs]),
        "observe: samples a second": spread([BATCH / b for _, b in pairs]),
        "experts recruited meanwhile": len(made.expert_ids) - before,
    }


def measure_files(net: str, device: torch.device) -> dict[str, Any]:
    """Time a checkpoint of a learner with full reservoirs."""
    x, y = images(60 * BATCH, SHAPES[net])
    made = learner(net, device)
    observe = observing(made, x, y)
    for step in range(60):
        observe(step)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tame"
        write = [timed(lambda _: made.save(path), 1, device) for _ in range(5)]
        read = [timed(lambda _: _load(path, device), 1, device) for _ in range(5)]
        size = path.stat().st_size
    return {"bytes": size, "write: s": spread(write), "load: s": spread(read)}


def _load(path: Path, device: torch.device) -> None:
    load(path, device=str(device))


def parser(about: str | None) -> argparse.ArgumentParser:
    """Return what every benchmark of speed can be asked for."""
    made = argparse.ArgumentParser(description=about)
    made.add_argument("--device", default="cpu", type=torch.device)
    made.add_argument("--threads", type=int, default=1)
    made.add_argument("--out", type=Path)
    return made


def tell(found: dict[str, Any], options: argparse.Namespace) -> None:
    """Print what was found, and where, and write it if a file was named."""
    found |= {"versions": versions(), "hardware": hardware(str(options.device))}
    text = json.dumps(found, indent=1)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


def main() -> None:
    """Measure and write what was found."""
    asked = parser(__doc__)
    asked.add_argument("--rounds", type=int, default=9)
    asked.add_argument("--net", default="lenet", choices=SHAPES)
    options = asked.parse_args()
    torch.set_num_threads(options.threads)
    device = options.device
    found = {
        "command": (
            f"python benchmarks/speed.py --net {options.net} --device {device} "
            f"--threads {options.threads}"
        ),
        "steps": measure_steps(options.net, device, options.rounds),
        "checkpoint": measure_files(options.net, device),
    }
    tell(found, options)


if __name__ == "__main__":
    main()
