"""Where the time of the two hottest paths goes: a training step, and prediction over many experts.

    python benchmarks/profile_paths.py [--device cuda] [--threads 1] [--out FILE]

The step is `observe` of a LeNet at batch 128 with the defaults; the prediction is of 60,000 images
spread over 1,000 packed LeNets (`speed.py` and `many_experts.py` say what they are held against).
Both are timed without a profiler first. Then torch's profiler tells how long the device was busy,
and which calls to the driver, or which operations where there is no GPU, the host spent its time
in; it slows the host down, so its figures are to be compared with each other only.
"""

import statistics
from collections.abc import Callable
from typing import Any

import torch
from many_experts import Evenly, addressed, make
from speed import (
    BATCH,
    SHAPES,
    Floor,
    images,
    learner,
    observing,
    parser,
    synchronise,
    tell,
    timed,
)
from torch.profiler import ProfilerActivity, profile

STEPS = 400
ROUNDS = 9
EXPERTS = 1000
ROWS = 12


def measure(work: Callable[[int], None], steps: int, device: torch.device) -> dict[str, Any]:
    """Time some steps, then profile them."""
    timed(work, steps, device)
    each = [1000 * timed(work, steps, device) for _ in range(ROUNDS)]
    kinds = [ProfilerActivity.CPU]
    kinds += [ProfilerActivity.CUDA] if device.type == "cuda" else []
    with profile(activities=kinds) as seen:
        for step in range(steps):
            work(step)
        synchronise(device)
    found = seen.key_averages()
    host = sorted(found, key=lambda row: row.self_cpu_time_total, reverse=True)
    if device.type == "cuda":
        host = [row for row in host if row.key.startswith("cuda")]
    return {
        "ms a call": statistics.median(each),
        "device busy: ms a call": sum(map(_busy, found)) / steps / 1000,
        "host, under the profiler": {
            row.key: {
                "calls": row.count / steps,
                "ms a call": row.self_cpu_time_total / steps / 1000,
            }
            for row in host[:ROWS]
        },
    }


def _busy(row: Any) -> float:
    """Return the microseconds of a row of the device's own; the host's rows count them again."""
    return float(row.self_device_time_total) if row.device_type.name != "CPU" else 0.0


def step(device: torch.device) -> dict[str, Any]:
    """Profile a training step, and time its floor."""
    x, y = images(60 * BATCH, SHAPES["lenet"])
    floor, observe = Floor("lenet", x, y, device), observing(learner("lenet", device), x, y)
    timed(observe, 200, device)
    found = measure(observe, STEPS if device.type == "cuda" else 40, device)
    return {"floor: ms a call": 1000 * timed(floor, STEPS, device), **found}


def prediction(device: torch.device) -> dict[str, Any]:
    """Profile prediction over many experts, and time it over five."""
    works = {}
    for count in (5, EXPERTS):
        model, x = make(count, device).model, addressed(count, device)
        model.decision = Evenly()
        works[count] = lambda _, model=model, x=x: model.predict(x)
    found = measure(works[EXPERTS], 3, device)
    timed(works[5], 2, device)
    return {"5 experts: ms a call": 1000 * timed(works[5], 3, device), **found}


def main() -> None:
    """Profile both and write what was found."""
    options = parser(__doc__).parse_args()
    torch.set_num_threads(options.threads)
    device = options.device
    found = {
        "command": f"python benchmarks/profile_paths.py --device {device}",
        "observe": step(device),
        "predict, 1000 experts": prediction(device),
    }
    tell(found, options)


if __name__ == "__main__":
    main()
