"""Your own data, left in its files: `data = "files:FOLDER"` takes any size."""

from collections.abc import Callable
from itertools import starmap
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tame.errors import ConfigError, DataError
from tame.streams.dataset import Array, Dataset
from tame.streams.idx import BYTES, read_idx
from tame.streams.mapped import Mapped, MappedFile

KINDS = ("uint8", "float16", "float32", "float64")
CIFAR = [("y", "u1"), ("x", "u1", (3, 32, 32))]
HIGHEST = 1_000_000  # a label indexes tables as long as the highest
MATRIX = 2  # dimensions: samples, and at least one of their own


class Form(NamedTuple):
    """How files of one kind are named (images, labels) and opened."""

    train: tuple[str, str]
    held: tuple[str, str]
    images: Callable[[Path], MappedFile]
    labels: Callable[[Path], Array]


def read_files(folder: str = "") -> Dataset:
    """Open the data set a folder of the user's holds; images stay in the files, labels do not.

    >>> read_files()
    Traceback (most recent call last):
    ...
    tame.errors.ConfigError: 'files' needs a folder: data = "files:FOLDER"
    """
    if not folder:
        raise ConfigError("'files' needs a folder: data = \"files:FOLDER\"")
    place = Path(folder).expanduser()
    for form in FORMS:
        if _found(place, form.train[0]):
            x, y = _opened(place, form, form.train)
            held_x, held_y = _opened(place, form, form.held)
            _refuse_unlike(place, form, (x, held_x), (y, held_y))
            return Dataset(f"files:{folder}", x, y, held_x, held_y)
    wanted = ", or ".join(form.train[0] for form in FORMS)
    raise DataError(f"{place} holds no data set of the user's: there is no {wanted}")


def _opened(place: Path, form: Form, names: tuple[str, str]) -> tuple[Mapped, Array]:
    images, labels = (_found(place, name) for name in names)
    if not images or len(images) != len(labels):
        raise DataError(
            f"{place} has {len(images)} files {names[0]} and {len(labels)} files {names[1]}; "
            "there is one of labels for each of images"
        )
    pairs = zip(images, labels, strict=True)
    x, y = zip(*starmap(lambda i, j: _pair(form.images(i), j, form.labels(j)), pairs), strict=True)
    return Mapped(x), np.concatenate(y)


def _pair(images: MappedFile, path: Path, labels: Array) -> tuple[MappedFile, Array]:
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise DataError(
            f"{path} holds {labels.dtype} of shape {labels.shape}; labels are one whole number a "
            "sample, such as numpy.unique(labels, return_inverse=True)[1] gives"
        )
    if len(images.rows) != len(labels):
        raise DataError(
            f"{images.path} holds {len(images.rows)} samples, {path} {len(labels)} labels"
        )
    if labels.min() < 0 or labels.max() >= HIGHEST:
        raise DataError(
            f"{path} has labels from {labels.min()} to {labels.max()}; "
            f"they are 0 or more, and less than {HIGHEST:,}"
        )
    return images, labels.astype(np.int64)


def _refuse_unlike(
    place: Path, form: Form, x: tuple[Mapped, Mapped], y: tuple[Array, Array]
) -> None:
    train, held = x
    if (train.shape[1:], train.dtype) != (held.shape[1:], held.dtype):
        raise DataError(
            f"{place / form.held[0]} holds {held.dtype} of shape {held.shape[1:]}, "
            f"{place / form.train[0]} {train.dtype} of shape {train.shape[1:]}"
        )
    odd = np.setxor1d(*y)
    if len(odd):
        raise DataError(
            f"{place / form.train[1]} and {place / form.held[1]} have different labels: "
            f"{', '.join(map(str, odd[:8].tolist()))} in one of them only"
        )


def _found(place: Path, name: str) -> list[Path]:
    """Return the file of a name, or its pieces: x-0.npy, x-1.npy and so on, in that order."""
    stem, _, suffix = name.partition(".")
    pieces = place.glob(f"{stem}-*.{suffix}") if suffix == "npy" else place.glob(name)
    whole = place / name
    return [whole] if whole.is_file() else sorted(pieces)


def _npy(path: Path) -> MappedFile:
    found = _loaded(path)
    if found.ndim < MATRIX or found.dtype.name not in KINDS or not found.flags.c_contiguous:
        raise DataError(
            f"{path} holds {found.dtype} of shape {found.shape}; samples are rows, "
            f"in C order, of {' or '.join(KINDS)}"
        )
    file = MappedFile(path, (found.dtype, found.shape[1:]), found.offset)
    if len(file.rows) != len(found):
        raise DataError(f"{path} tells of {len(found)} samples and has {len(file.rows)}")
    return file


def _loaded(path: Path) -> "np.memmap[tuple[int, ...], np.dtype[np.generic]]":
    try:
        found: np.memmap[tuple[int, ...], np.dtype[np.generic]]
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    return found


def _idx(path: Path) -> MappedFile:
    with path.open("rb") as file:
        head = file.read(16)
    if len(head) < len(BYTES) + 13 or head[:4] != BYTES + b"\x03":
        raise DataError(f"{path} is not a plain idx file of bytes in 3 dimensions")
    count, height, width = np.frombuffer(head, ">u4", 3, 4).tolist()
    mapped = MappedFile(path, ("u1", (1, height, width)), 16)
    if len(mapped.rows) != count:
        raise DataError(f"{path} tells of {count} images and has {len(mapped.rows)}")
    return mapped


FORMS = (
    Form(("x.npy", "y.npy"), ("held_x.npy", "held_y.npy"), _npy, _loaded),
    Form(
        ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
        ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
        _idx,
        lambda path: read_idx(path, 1),
    ),
    Form(
        ("data_batch_*.bin", "data_batch_*.bin"),
        ("test_batch.bin", "test_batch.bin"),
        lambda path: MappedFile(path, CIFAR, part="x"),
        lambda path: MappedFile(path, CIFAR, part="y").rows.copy(),
    ),
)
