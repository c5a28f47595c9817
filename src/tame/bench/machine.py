"""What a result was made with."""

import hashlib
import os
import platform
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tame


def versions() -> dict[str, str]:
    """Return the versions a result depends on."""
    return {
        "tame": tame.__version__,
        "source": source(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }


@cache
def source() -> str:
    """Return a digest of the code that decides a result's numbers."""
    digest = hashlib.blake2b(digest_size=6)
    root = files("tame")
    for package in ("core", "engine", "nets", "methods", "streams"):
        for path in sorted(Path(str(root.joinpath(package))).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def hardware(device: str) -> dict[str, Any]:
    """Return the machine a result was made on."""
    found: dict[str, Any] = {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": device,
    }
    if device.startswith("cuda"):
        found["gpu"] = torch.cuda.get_device_name(torch.device(device))
    return found


def _cpu() -> str:
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        for line in listing.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
