"""Where data sets lie: the folder the user names, or one in the user's cache."""

import os
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING

from tame.errors import DataError

if TYPE_CHECKING:  # numpy is behind it, and `tame data list` does without
    from tame.streams.dataset import Dataset

VARIABLE = "TAME_DATA"
Stamps = frozenset[tuple[str, int, int]]


def data_folder(named: str | Path | None = None) -> Path:
    """Return the folder named here, else by `TAME_DATA`, else `tame` in the user's cache folder."""
    given = str(named or os.environ.get(VARIABLE, ""))
    try:
        return Path(given).expanduser() if given else user_cache() / "tame"
    except RuntimeError as error:  # there is no such home
        raise DataError(f"no data folder: {error}; --data or {VARIABLE} names one") from error


def user_cache() -> Path:
    """Return the folder this system keeps a user's caches in."""
    if sys.platform == "win32":
        return _absolute("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return _absolute("XDG_CACHE_HOME") or Path.home() / ".cache"


def find(name: str, places: tuple[str, ...], files: Iterable[str]) -> Path:
    """Return the first of `places` in the data folder that holds one of `files`.

    Official downloads unpack into a folder of their own; users also put the files straight into
    the data folder, so that is looked at last.
    """
    root, files = data_folder(), tuple(files)
    for place in (*places, "."):
        if any(is_file(root / place / file) for file in files):
            return root / place
    raise DataError(
        f"{name} is not in {root} (looked for {' or '.join(files)} in {', '.join(places)}); "
        f"'tame data fetch {name}' downloads it, --data or {VARIABLE} names another folder"
    )


def pick(name: str, folder: Path, files: Iterable[str]) -> Path:
    """Return the first of `files`, the forms one part of a data set comes in, that is there."""
    files = tuple(files)
    for file in files:
        if is_file(folder / file):
            return folder / file
    raise DataError(
        f"{name} in {folder} is not whole: there is no {' or '.join(files)}; "
        f"'tame data fetch {name}' downloads it"
    )


def is_file(path: Path) -> bool:
    """Say whether a file is there; where looking is forbidden, that is the error."""
    try:
        return path.is_file()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def kept(read: "Callable[[Path], Dataset]") -> "Callable[[Path], Dataset]":
    """Let a reader keep the data set it read last, while the folder's files stay as they are.

    Every caller is given the same arrays, so they can be read and not written.
    """

    @lru_cache(maxsize=1)
    def once(folder: Path, stamps: Stamps) -> "Dataset":  # noqa: ARG001 (a part of the key)
        import numpy as np  # only here: `tame data list` does without

        data = read(folder)
        for array in (data.x, data.y, data.held_x, data.held_y):
            if isinstance(array, np.ndarray):
                array.setflags(write=False)
        return data

    @wraps(read)
    def current(folder: Path) -> "Dataset":
        return once(folder.absolute(), _stamps(folder))

    return current


def _stamps(folder: Path) -> Stamps:
    try:
        with os.scandir(folder) as entries:
            found = [(entry.name, entry.stat()) for entry in entries if entry.is_file()]
    except OSError as error:
        raise DataError(f"{folder} cannot be read: {error}") from error
    return frozenset((name, stat.st_mtime_ns, stat.st_size) for name, stat in found)


def _absolute(variable: str) -> Path | None:
    path = Path(os.environ.get(variable, ""))  # empty or relative counts as not set
    return path if path.is_absolute() else None
