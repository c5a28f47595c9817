"""Samples from the files people have."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image  # comes with matplotlib
from safetensors.numpy import load_file

from tame.errors import InputError, suggest

Array = np.ndarray[Any, Any]


def read_samples(path: Path) -> Array:
    """Return the samples in a file as one array, the first dimension counting them."""
    readers: dict[str, Callable[[Path], Array]] = {
        ".npy": _npy,
        ".npz": lambda p: _entry(dict(np.load(p, allow_pickle=False)), p),
        ".safetensors": lambda p: _entry(load_file(p), p),
        ".csv": lambda p: np.loadtxt(p, delimiter=",", dtype=np.float32, ndmin=2),
        ".png": _image,
    }
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    if path.suffix not in readers:
        raise InputError(f"cannot read samples from '{path.name}'{suggest(path.suffix, readers)}")
    try:
        return readers[path.suffix](path)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def _npy(path: Path) -> Array:
    found: Array = np.load(path, allow_pickle=False)
    return found


def _entry(arrays: dict[str, Array], path: Path) -> Array:
    if "x" in arrays:
        return arrays["x"]
    if len(arrays) == 1:
        return next(iter(arrays.values()))
    raise InputError(f"{path} holds {', '.join(arrays)}; the samples must be called 'x'")


def _image(path: Path) -> Array:
    with Image.open(path) as image:
        pixels = np.asarray(image if image.mode in ("L", "RGB") else image.convert("RGB"))
    return pixels[None, None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)[None]  # noqa: PLR2004
