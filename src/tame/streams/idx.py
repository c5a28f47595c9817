"""MNIST and its kin: idx files as they are downloaded, gzipped or plain."""

import gzip
import hashlib
import math
import zlib
from pathlib import Path

import numpy as np

from tame.errors import DataError
from tame.streams.catalogue import SOURCES
from tame.streams.dataset import Array, Dataset
from tame.streams.folder import find, kept, pick

BYTES = b"\0\0\x08"  # how an idx file of unsigned bytes begins; its number of dimensions follows


def read_mnist() -> Dataset:
    """Read MNIST."""
    return _mnist(find("mnist", SOURCES["mnist"].places, SOURCES["mnist"].pieces[0]))


def read_fashion_mnist() -> Dataset:
    """Read Fashion-MNIST, which comes in files of the same names."""
    entry = SOURCES["fashion-mnist"]
    return _fashion_mnist(find(entry.name, entry.places, entry.pieces[0]))


def read_idx(path: Path, dimensions: int) -> Array:
    """Return the array of bytes an idx file holds."""
    return _parse(_contents(path), path, dimensions)


@kept
def _mnist(folder: Path) -> Dataset:
    return _read("mnist", folder, "fashion-mnist")


@kept
def _fashion_mnist(folder: Path) -> Dataset:
    return _read("fashion-mnist", folder, "mnist")


def _read(name: str, folder: Path, namesake: str) -> Dataset:
    paths = [pick(name, folder, piece) for piece in SOURCES[name].pieces]
    told = hashlib.md5(_contents(paths[-1]), usedforsecurity=False).hexdigest()
    if told in SOURCES[namesake].pieces[-1].values():
        raise DataError(
            f"{folder} holds {namesake}, not {name}; their files have the same names, "
            f"so each wants a folder of its own: {SOURCES[name].places[0]}"
        )
    x, y = _pair(*paths[:2])
    held_x, held_y = _pair(*paths[2:])
    return Dataset(name, x, y, held_x, held_y)


def _pair(images: Path, labels: Path) -> tuple[Array, Array]:
    x, y = read_idx(images, 3), read_idx(labels, 1)
    if len(x) != len(y):
        raise DataError(f"{images} holds {len(x)} images, {labels} {len(y)} labels")
    return x[:, None], y.astype(np.int64)


def _contents(path: Path) -> bytes:
    try:
        return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def _parse(data: bytes, path: Path, dimensions: int) -> Array:
    if data[:4] != BYTES + bytes([dimensions]):
        raise DataError(f"{path} is not an idx file of bytes in {dimensions} dimensions")
    begin = 4 + 4 * dimensions
    if len(data) < begin:
        raise DataError(f"{path} is cut short: it has {len(data)} bytes")
    shape = np.frombuffer(data, ">u4", dimensions, 4).tolist()
    if len(data) != begin + math.prod(shape):
        raise DataError(
            f"{path} is cut short or foreign: its header tells of {' x '.join(map(str, shape))} "
            f"bytes, after it come {len(data) - begin}"
        )
    return np.frombuffer(data, np.uint8, offset=begin).reshape(shape)
