"""The same step in Avalanche, the field's most used library, beside ours and the raw floor.

    python -m venv .venv-peers
    .venv-peers/bin/pip install --constraint constraints.txt . avalanche-lib
    .venv-peers/bin/python benchmarks/peers.py [--threads 1] [--rounds 5] [--out FILE]

LeNet, batch 128, SGD with Nesterov momentum, 7,680 images held in memory. Avalanche trains by its
`Naive` and its `Replay` strategy (a buffer of 2,500), with no metrics and no logger; it detects
nothing. All take turns in one process; what counts is the ratio to the floor in each round.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from speed import BATCH, Floor, images, learner, observing, spread, timed
from torch import nn

from tame import Training
from tame.bench.machine import hardware, versions
from tame.engine.fitting import make_optimiser
from tame.nets import resolve

CPU = torch.device("cpu")
BATCHES = 60
REPLAYED = 2500
OPERATORS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)


def declare_missing_operators() -> Any:
    """Declare what a torchvision without its compiled part asks for when it is imported."""
    library = torch.library.Library("torchvision", "DEF")
    for operator in OPERATORS:
        if not hasattr(torch.ops.torchvision, operator.partition("(")[0]):
            library.define(operator)
    return library


class Avalanche:
    """One of its strategies on the same images."""

    def __init__(self, strategy: str, x: torch.Tensor, y: torch.Tensor) -> None:
        from avalanche.benchmarks import tensors_benchmark
        from avalanche.training import supervised
        from avalanche.training.plugins import EvaluationPlugin

        ready = ((x.float() / 255 - 0.1307) / 0.3081).contiguous()
        data = [(ready, y)]
        made = tensors_benchmark(train_tensors=data, test_tensors=data, task_labels=[0])
        self._experience = made.train_stream[0]
        torch.manual_seed(0)
        net = resolve("lenet")((1, 28, 28), 10)
        more = {"mem_size": REPLAYED} if strategy == "Replay" else {}
        self._strategy = getattr(supervised, strategy)(
            model=net,
            optimizer=make_optimiser(net, Training()),
            criterion=nn.CrossEntropyLoss(),
            train_mb_size=BATCH,
            train_epochs=1,
            evaluator=EvaluationPlugin(),
            **more,
        )

    def __call__(self, _: int) -> None:
        self._strategy.train(self._experience)


def main() -> None:
    """Measure and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    library = declare_missing_operators()
    x, y = images(BATCHES * BATCH, (1, 28, 28))
    floor, observe = Floor("lenet", x, y, CPU), observing(learner("lenet", CPU), x, y)
    naive, replay = Avalanche("Naive", x, y), Avalanche("Replay", x, y)
    rows = []
    for number in range(options.rounds + 1):
        row = {
            "floor": timed(floor, BATCHES, CPU),
            "tame": timed(observe, BATCHES, CPU),
            "avalanche naive": timed(naive, 1, CPU) / BATCHES,
            "avalanche replay": timed(replay, 1, CPU) / BATCHES,
        }
        if number:  # the first round warms up
            rows.append(row)
    shares = {
        name: spread([row["floor"] / row[name] for row in rows])
        for name in ("tame", "avalanche naive", "avalanche replay")
    }
    found = {
        "command": f"python benchmarks/peers.py --threads {options.threads}",
        "share of the floor's speed": shares,
        "tame over avalanche naive": spread([r["avalanche naive"] / r["tame"] for r in rows]),
        "ms a step": {name: spread([1000 * row[name] for row in rows]) for name in rows[0]},
        "versions": {**versions(), "avalanche": _version()},
        "hardware": hardware("cpu"),
    }
    del library
    text = json.dumps(found, indent=1)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


def _version() -> str:
    from importlib.metadata import version

    return version("avalanche-lib")


if __name__ == "__main__":
    main()
