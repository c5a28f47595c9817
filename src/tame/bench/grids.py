"""Packaged grids as data: TOML files, listed without importing anything heavy."""

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable

DEFAULT_GRID = "digits"


def grids() -> Iterator[tuple[str, Traversable]]:
    """Yield the name and file of every packaged grid."""
    folder = files("tame").joinpath("grids")
    for item in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if item.name.endswith(".toml"):
            yield item.name.removesuffix(".toml"), item
