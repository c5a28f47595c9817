"""Your own stream and your own network: a sensor whose meaning drifts, without notice.

    python examples/own_stream.py

Three machines take turns at a line; which one runs is never told. Each has its own rule for what a
reading of eight channels means. The learner notices every change, recruits an expert for each new
machine, and recognises the first one when it comes back.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

from tame import TAME, Batch, Settings, load
from tame.types import Change

TURNS = (0, 1, 2, 0)
BATCHES = 150


def readings(machine: int, count: int, draws: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return sensor readings of one machine and whether each part is good (0, 1 or 2)."""
    law = torch.Generator().manual_seed(100 + machine)
    offset = 3 * torch.randn(8, generator=law)
    rule = torch.randn(8, 3, generator=law)
    noise = torch.randn(count, 8, generator=draws)
    return noise + offset, (noise @ rule).argmax(1)


def stream() -> Iterator[Batch]:
    """Yield what the line would deliver, batch after batch."""
    draws = torch.Generator().manual_seed(0)
    for machine in TURNS:
        for _ in range(BATCHES):
            yield Batch(*readings(machine, 32, draws))


def make(input_shape: tuple[int, ...], n_outputs: int) -> nn.Module:
    """Build a network: any callable like this will do."""
    return nn.Sequential(nn.Linear(input_shape[0], 32), nn.Tanh(), nn.Linear(32, n_outputs))


def main() -> float:
    """Learn, save, load, and return the accuracy over all machines."""
    learner = TAME(net=make, seed=0, settings=Settings(slots=4))
    for batch in stream():
        seen = learner.observe(batch)
        if seen.change is not Change.NONE:
            print(f"batch {seen.step}: {seen.change} expert {seen.expert}")
    learner.consolidate()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tame"
        learner.save(path)
        learner = load(path, net=make)
    fresh = torch.Generator().manual_seed(1)
    right = []
    for machine in sorted(set(TURNS)):
        x, y = readings(machine, 1000, fresh)
        right.append(float((learner.predict(x) == y).double().mean()))
        print(f"machine {machine}: {100 * right[-1]:.1f} % right")
    return sum(right) / len(right)


if __name__ == "__main__":
    main()
