"""CIFAR-10 and CIFAR-100: the python version and the binary version.

The python version is pickled. A pickle is a program: it may name any function and have it called,
and even numpy's own `__setstate__` trusts what it is told. So the names an array needs stand for
small functions here, which check every part and make the array themselves.
"""

from collections.abc import Callable
from pathlib import Path
from pickle import Unpickler, UnpicklingError  # reading only; nothing is written so
from typing import Any

import numpy as np

from tame.errors import DataError
from tame.streams.catalogue import SOURCES
from tame.streams.dataset import Array, Dataset
from tame.streams.folder import find, kept, pick

PIXELS = 3 * 32 * 32
PLAIN = {"b1", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"}


def read_cifar10() -> Dataset:
    """Read CIFAR-10."""
    return _cifar10(find("cifar10", SOURCES["cifar10"].places, SOURCES["cifar10"].pieces[0]))


def read_cifar100() -> Dataset:
    """Read CIFAR-100 with its 100 classes; `groups` are the 20 superclasses."""
    return _cifar100(find("cifar100", SOURCES["cifar100"].places, SOURCES["cifar100"].pieces[0]))


def read_pickle(path: Path) -> dict[str, Any]:
    """Return the dictionary of a python-version file, its keys as text; refuse anything else."""
    try:
        with path.open("rb") as file:
            found = ArrayUnpickler(file, encoding="bytes").load()
        if not isinstance(found, dict):
            raise UnpicklingError(f"it holds a {type(found).__name__}, not a dictionary")
        return {_text(key): _unwrapped(value) for key, value in found.items()}
    except Exception as error:
        raise DataError(
            f"{path} is not a file of the data set: {str(error) or repr(error)}"
        ) from error


def read_binary(path: Path, limits: tuple[int, ...]) -> tuple[Array, Array]:
    """Return images and label columns of a binary-version file: labels first, then pixels."""
    try:
        data = np.fromfile(path, np.uint8)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    width = len(limits) + PIXELS
    if not len(data) or len(data) % width:
        raise DataError(f"{path} is cut short: {len(data)} bytes are no whole number of images")
    rows = data.reshape(-1, width)
    images = np.ascontiguousarray(rows[:, len(limits) :]).reshape(-1, 3, 32, 32)
    return images, rows[:, : len(limits)].astype(np.int64)


class ArrayUnpickler(Unpickler):
    """Builds arrays, numbers, text and containers; a file that names anything else is refused."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ADMITTED:
            raise UnpicklingError(f"it asks for {module}.{name}")
        return ADMITTED[module, name]


class StandIn:
    """What a file gets for one of numpy's names: it can be called, and not altered."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make

    def __call__(self, *arguments: Any) -> Any:
        return self._make(*arguments)

    def __setstate__(self, state: Any) -> None:
        raise UnpicklingError("it alters what builds it")


class Kind:
    """The plain number type a file describes, in the steps in which numpy.dtype is pickled."""

    def __init__(self, code: Any, *_: Any) -> None:
        self._code = _text(code)
        if self._code not in PLAIN:
            raise UnpicklingError(f"it asks for numbers of type {self._code!r}")

    def __setstate__(self, state: Any) -> None:
        order, *structure = state[1:5]
        if _text(order) not in {"<", ">", "|"} or any(part is not None for part in structure):
            raise UnpicklingError("it describes no plain numbers")
        self._code = _text(order) + self._code[-2:]

    def numbers(self, data: Any) -> Array:
        """Return the numbers in some bytes."""
        if not isinstance(data, bytes):
            raise UnpicklingError(f"its numbers are given as {type(data).__name__}, not bytes")
        return np.frombuffer(data, np.dtype(self._code))


class Block:
    """An array in the making, in the steps in which numpy.ndarray is pickled."""

    array: Array | None = None

    def __init__(self, *_: Any) -> None:
        """Start empty, whatever the file says: the state that follows gives the shape."""

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, is_fortran, data = state
        numbers = kind.numbers(data)
        self.array = numbers.reshape(shape, order="F" if is_fortran else "C")


def _scalar(kind: Kind, data: Any) -> Any:
    return kind.numbers(data).reshape(()).item()


def _encoded(text: str, encoding: Any) -> bytes:
    if _text(encoding) not in {"latin1", "latin-1"}:
        raise UnpicklingError(f"it asks for bytes encoded as {encoding!r}")
    return text.encode("latin1")


def _text(value: Any) -> str:
    return value.decode("ascii") if isinstance(value, bytes) else str(value)


def _unwrapped(value: Any) -> Any:
    return value.array if isinstance(value, Block) else value


ADMITTED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): "ndarray",  # named, never called
    ("numpy", "dtype"): StandIn(Kind),
    ("_codecs", "encode"): StandIn(_encoded),  # how Python 3 writes bytes into such a file
}
for _module in ("numpy.core.multiarray", "numpy._core.multiarray"):
    ADMITTED[_module, "_reconstruct"] = StandIn(Block)
    ADMITTED[_module, "scalar"] = StandIn(_scalar)


@kept
def _cifar10(folder: Path) -> Dataset:
    paths = [pick("cifar10", folder, piece) for piece in SOURCES["cifar10"].pieces]
    train = [_part(path, {"labels": 10}) for path in paths[:-1]]
    x, y = (np.concatenate(column) for column in zip(*train, strict=True))
    held_x, held_y = _part(paths[-1], {"labels": 10})
    return Dataset("cifar10", x, y[:, 0], held_x, held_y[:, 0])


@kept
def _cifar100(folder: Path) -> Dataset:
    train, held = (pick("cifar100", folder, piece) for piece in SOURCES["cifar100"].pieces)
    x, y = _part(train, {"coarse_labels": 20, "fine_labels": 100})
    held_x, held_y = _part(held, {"coarse_labels": 20, "fine_labels": 100})
    groups = np.zeros(100, dtype=np.int64)
    for coarse, fine in (held_y.T, y.T):
        groups[fine] = coarse
    if any((groups[fine] != coarse).any() for coarse, fine in (held_y.T, y.T)):
        raise DataError(f"{folder} is not CIFAR-100: a class is in two superclasses")
    return Dataset("cifar100", x, y[:, 1], held_x, held_y[:, 1], tuple(groups.tolist()))


def _part(path: Path, limits: dict[str, int]) -> tuple[Array, Array]:
    """Return images and label columns of a file; `limits` says how many labels a column has."""
    if path.suffix == ".bin":
        images, labels = read_binary(path, tuple(limits.values()))
    else:
        images, labels = _pickled(path, tuple(limits))
    if (labels < 0).any() or (labels >= np.array(list(limits.values()))).any():
        raise DataError(f"{path} is not a file of the data set: labels beyond {limits}")
    return images, labels


def _pickled(path: Path, names: tuple[str, ...]) -> tuple[Array, Array]:
    found = read_pickle(path)
    lacking = [name for name in ("data", *names) if name not in found]
    if lacking:
        raise DataError(f"{path} is not a file of the data set: it lacks {', '.join(lacking)}")
    images = found["data"]
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8:
        raise DataError(f"{path} is not a file of the data set: its images are no array of bytes")
    try:
        labels = np.stack([np.asarray(found[name]) for name in names], axis=1)
        images = images.reshape(len(labels), 3, 32, 32)
    except ValueError as error:
        raise DataError(f"{path} holds unequal numbers of images and labels: {error}") from error
    if labels.dtype.kind not in "iu" or labels.shape != (len(images), len(names)):
        raise DataError(f"{path} is not a file of the data set: its labels are no whole numbers")
    return images, labels.astype(np.int64)
