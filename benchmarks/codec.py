"""How well a codec brings images back: decibels at several shares of their bytes.

    python benchmarks/codec.py --data DIR [--out benchmarks/results/codec.json]

Over the first 2,000 training images of each data set; test images are not read.
"""

import argparse
import json
import math
import os
from pathlib import Path

import numpy as np
import torch

from tame.bench.machine import versions
from tame.core.codec import Codec
from tame.streams.dataset import read

NAMES = ("cifar100", "cifar10", "svhn", "mnist")
SHARES = (0.05, 0.1, 0.172, 0.21, 0.25, 0.3, 0.5)
COUNT = 2000


def decibels(images: torch.Tensor, codec: Codec) -> float:
    """Return the peak signal to noise ratio of what comes back."""
    back = codec.decode(codec.encode(images), tuple(images.shape[1:]))
    return 10 * math.log10(255**2 / float((back.float() - images.float()).square().mean()))


def measured(name: str) -> dict[str, dict[str, float]]:
    """Return bytes and decibels of a data set's images at every share."""
    images = torch.from_numpy(np.ascontiguousarray(read(name).x[np.arange(COUNT)]))
    whole = math.prod(images.shape[1:])
    found = {share: round(decibels(images, Codec(share)), 2) for share in SHARES}
    return {str(s): {"bytes": int(s * whole), "decibels": found[s]} for s in SHARES}


def main() -> None:
    """Measure every data set and write what was found."""
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--data", type=Path, required=True)
    made.add_argument("--out", type=Path, default=Path("benchmarks/results/codec.json"))
    asked = made.parse_args()
    os.environ["TAME_DATA"] = str(asked.data)
    rows = {name: measured(name) for name in NAMES}
    command = "python benchmarks/codec.py --data DIR"
    found = {"command": command, "versions": versions(), "rows": rows}
    asked.out.write_text(json.dumps(found, indent=1) + "\n")
    for name, row in rows.items():
        print(name, row)


if __name__ == "__main__":
    main()
