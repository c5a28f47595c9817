"""Arrays that stay in their files: only the samples asked for are read."""

import mmap
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tame.errors import DataError
from tame.streams.dataset import Array

AROUND = 1 << 16  # bytes a system may map around the page that is asked for
RESIDENT = 1 << 26  # bytes of a file that may be mapped before all its pages are given back


class MappedFile:
    """The rows of one file, each a `kind`, after `offset` bytes of something else.

    A structured `kind` says what else lies in a row; `part` is then the field that is wanted.
    """

    def __init__(self, path: Path, kind: Any, offset: int = 0, part: str | None = None) -> None:
        self.path = path
        self._touched = 0
        try:
            with path.open("rb") as file:
                self._pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:  # a ValueError: the file is empty
            raise DataError(f"{path} cannot be read: {error}") from error
        row = np.dtype([("row", *kind)] if isinstance(kind, tuple) else kind)
        count, rest = divmod(len(self._pages) - offset, row.itemsize)
        if count < 1 or rest:
            raise DataError(
                f"{path} is cut short: {len(self._pages) - offset} bytes are no whole number of "
                f"rows of {row.itemsize}"
            )
        rows: Array = np.ndarray((count,), row, self._pages, offset)
        self.rows: Array = rows["row"] if isinstance(kind, tuple) else rows[part]

    def gather(self, chosen: Array, out: Array, places: Array) -> None:
        """Copy rows by number, which must rise, to places in another array."""
        out[places] = self.rows[chosen]
        self._touched += len(chosen) * (self.rows.strides[0] + AROUND)
        if self._touched > RESIDENT and sys.platform != "win32":
            self._pages.madvise(mmap.MADV_DONTNEED)
            self._touched = 0


class Mapped:
    """The rows of files, one file after the other, as if they were one array in memory.

    Samples are gathered in the order the files have them, whatever order they are asked for in,
    and nothing else is read.
    """

    def __init__(self, files: Sequence[MappedFile]) -> None:
        self._files = files
        first = files[0].rows
        for file in files[1:]:
            if (file.rows.shape[1:], file.rows.dtype) != (first.shape[1:], first.dtype):
                raise DataError(
                    f"{file.path} holds {file.rows.dtype} of shape {file.rows.shape[1:]}, "
                    f"{files[0].path} {first.dtype} of shape {first.shape[1:]}"
                )
        self._ends = np.cumsum([len(file.rows) for file in files])
        self.shape: tuple[int, ...] = (int(self._ends[-1]), *first.shape[1:])
        self.dtype = first.dtype.newbyteorder("=")

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, chosen: Array) -> Array:
        """Return samples by their numbers, in the order of the numbers."""
        order = np.argsort(chosen, kind="stable")
        numbers = np.asarray(chosen)[order]
        out = np.empty((len(numbers), *self.shape[1:]), self.dtype)
        bounds = np.searchsorted(numbers, [0, *self._ends])
        if bounds[0] != 0 or bounds[-1] != len(numbers):
            raise IndexError(f"there are {len(self)} samples; one asked for is not among them")
        for place, file in enumerate(self._files):
            begin, end = bounds[place], bounds[place + 1]
            if begin < end:
                offset = self._ends[place] - len(file.rows)
                file.gather(numbers[begin:end] - offset, out, order[begin:end])
        return out
