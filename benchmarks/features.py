"""What a preset's frozen trunk sees in every image of its data, kept in files for `files:FOLDER`.

    python benchmarks/features.py PRESET FOLDER --data DIR [--set inputs.trunk.weights=FILE]
        [--device cpu] [--threads 2]

A trunk is trained by nothing, so that what it sees can be worked out once and streamed any number
of times: studies of what comes after it (`ablation.py benchmarks/cifar100-features.toml`) then need
no GPU. Forwards are in bfloat16, as they are on a GPU. A part of the data that is there already,
whole, is not made again.
"""

import time
from pathlib import Path

import numpy as np
import torch
import variants
from torch import Tensor

from tame.bench.experiment import resolve
from tame.config import assignment
from tame.core.inputs import InputStep
from tame.streams.dataset import Array, Samples, read

CHUNK = 256


def seen(step: InputStep, images: Tensor) -> Tensor:
    """Return one vector an image, as experts would be given it."""
    with torch.no_grad(), torch.autocast(step.mean.device.type, torch.bfloat16):
        found: Tensor = step(images)
    return found.float()


def keep(step: InputStep, x: Samples, y: Array, images: Path, labels: Path) -> None:
    """Write the vectors of some images and their labels, labels last."""
    if labels.exists():
        return
    began, device = time.perf_counter(), step.mean.device
    rows = np.lib.format.open_memmap(images, "w+", np.float32, (len(x), *step.output_shape))
    for start in range(0, len(x), CHUNK):
        part = torch.as_tensor(x[np.arange(start, min(len(x), start + CHUNK))], device=device)
        rows[start : start + CHUNK] = seen(step, part).cpu().numpy()
        print(f"{images.name}: {start + len(part)}, {time.perf_counter() - began:.0f} s", end="\r")
    rows.flush()
    np.save(labels, y)
    print()


def main() -> None:
    """Work through the training and the test images of one preset."""
    options = variants.parser(__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--threads", type=int, default=2)
    asked = variants.asked(options)
    torch.set_num_threads(asked.threads)
    experiment = resolve(asked.preset, list(map(assignment, asked.set)))
    data = read(str(experiment.stream.data))
    kind = torch.as_tensor(data.x[np.arange(1)])
    step = InputStep(experiment.settings.inputs, tuple(kind.shape[1:]), kind.dtype)
    step.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch has it, its stubs do not
    step = step.to(asked.device).eval()
    asked.folder.mkdir(parents=True, exist_ok=True)
    for prefix, x, y in (("", data.x, data.y), ("held_", data.held_x, data.held_y)):
        keep(step, x, y, asked.folder / f"{prefix}x.npy", asked.folder / f"{prefix}y.npy")


if __name__ == "__main__":
    main()
