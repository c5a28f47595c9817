"""Record the losses of a network that trains, once, for detectors to be replayed over.

    python benchmarks/detection_traces.py [--seeds 5] [--data embedded] [--out FILE]
    TAME_DATA=... python benchmarks/detection_traces.py --stationary 100000 --data mnist
        [--batches 8,32,128] [--device cpu] --out FILE

One LeNet, as `tame run` would train it, learns one segment of the embedded digits for 1,000
batches. After 30, 100, 300 and 1,000 of them the segment changes, and the network goes on for 20
batches as if nobody had noticed. What a detector is shown up to its first alarm is exactly what it
would have been shown inside a learner, so that it is judged by replay, in milliseconds. With
`--stationary` nothing changes for so many batches, and every alarm is a false one.
"""

import argparse
import copy
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from tame import TAME, Batch, Inputs, Reading, Settings
from tame.core.conduct import Immediate
from tame.streams.permute import Permute
from tame.streams.segments import SegmentedStream
from tame.streams.split import Split
from tame.types import State, Verdict

AGES = (30, 100, 300, 1000)
AFTER = 20
BATCHES = (8, 32, 128)
INPUTS = Inputs(mean=(0.1307,), std=(0.3081,))
Trace = dict[str, np.ndarray]


@dataclass
class Recorder:
    """A detector that is never surprised and remembers everything."""

    readings: list[Reading] = field(default_factory=list)

    def fresh(self) -> Self:
        return type(self)()

    def accepts(self, reading: Reading) -> bool:
        del reading
        return True

    def update(self, reading: Reading) -> Verdict:
        self.readings.append(reading)
        return Verdict(shift=False, statistic=reading.loss, threshold=float("nan"))

    def rebase(self, readings: list[Reading]) -> None:
        self.readings = list(readings)

    def state_dict(self) -> State:
        return {"readings": [list(reading) for reading in self.readings]}

    def load_state_dict(self, state: State) -> None:
        self.readings = [Reading(*values) for values in state["readings"]]


def stream(kind: str, data: str, batch: int, seed: int) -> SegmentedStream:
    """Return a stream of two segments whose label sets are the same."""
    passes = 1 + max(AGES) * batch // 500
    if kind != "local split":
        return Permute(data=data, segments=2, passes=passes, batch=batch).open(seed)
    course: dict[str, Any] = {"passes": passes, "batch": batch, "labels": "local"}
    return Split(data=data, order=(0, 1), division="seeded", **course).open(seed)


def recording(seed: int, device: str = "cpu") -> TAME:
    """Return a learner that records its losses and acts on none of them."""
    settings = Settings(inputs=INPUTS, detector=Recorder(), conduct=Immediate())
    return TAME(seed=seed, settings=settings, device=device)


def record(segments: SegmentedStream, seed: int) -> Iterator[tuple[int, list[Reading]]]:
    """Yield (0, the readings of the first segment) and (age, the readings after a change then)."""
    start = segments.truth().starts[1]
    first, second = segments.batches(), list(itertools.islice(segments.batches(start), AFTER))
    learner = recording(seed)
    for age in range(1, max(AGES) + 1):
        learner.observe(next(first))
        if age in AGES:
            yield age, surprised(learner, second)
    yield 0, readings(learner)


def stay(
    segments: SegmentedStream, count: int, seed: int, device: str
) -> Iterator[tuple[int, list[Reading]]]:
    """Yield (0, the readings of so many batches of the first segment, shown again and again)."""
    learner = recording(seed, device)
    end = segments.truth().starts[1]
    again = (b for _ in itertools.count() for b in itertools.islice(segments.batches(), end))
    for batch in itertools.islice(again, count):
        learner.observe(batch)
    yield 0, readings(learner)


def surprised(learner: TAME, second: list[Batch]) -> list[Reading]:
    """Return what a copy of the learner reads when another segment begins."""
    other = copy.deepcopy(learner)
    for batch in second:
        other.observe(batch)
    return readings(other)[-len(second) :]


def readings(learner: TAME) -> list[Reading]:
    """Return what the learner's only expert has read."""
    pool: Any = learner._pool  # noqa: SLF001 (a benchmark may look inside)
    found: list[Reading] = pool.active.detector.readings
    return found


def packed(found: list[Reading]) -> np.ndarray:
    """Return losses and standard errors, one row a reading."""
    return np.array([[reading.loss, reading.error] for reading in found], dtype=np.float32)


def main() -> None:
    """Record every stream, batch size and seed into one file."""
    parser = argparse.ArgumentParser(description=__doc__)
    folder = Path("benchmarks/results/detection")
    parser.add_argument("--out", type=Path, default=folder / "traces.npz")
    parser.add_argument("--data", default="embedded")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--stationary", type=int, default=0)
    parser.add_argument("--batches", default=",".join(map(str, BATCHES)))
    parser.add_argument("--device", default="cpu", help="of the stationary ones")
    options = parser.parse_args()
    torch.set_num_threads(1)
    traces: Trace = {}
    kinds = ("stationary",) if options.stationary else ("permute", "local split")
    sizes = [int(size) for size in options.batches.split(",")]
    for kind, batch in itertools.product(kinds, sizes):
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            segments = stream(kind, options.data, batch, seed)
            still, device = options.stationary, options.device
            resting = stay(segments, still, seed, device) if still else record(segments, seed)
            for age, found in resting:
                traces[f"{kind}|{batch}|{seed}|{age}"] = packed(found)
            print(kind, batch, seed, flush=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(options.out, **traces)  # type: ignore[arg-type]
    print(json.dumps({"file": str(options.out), "bytes": options.out.stat().st_size}))


if __name__ == "__main__":
    main()
