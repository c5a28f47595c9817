"""Packaged grids as data: TOML files, listed without importing anything heavy."""

import json
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from tame.errors import ConfigError

DEFAULT_GRID = "digits"
CHOICES = ".tuned.json"  # the trials of a grid's tuning and what they chose, beside its file


def grids() -> Iterator[tuple[str, Traversable]]:
    """Yield the name and file of every packaged grid."""
    for item in sorted(_folder().iterdir(), key=lambda entry: entry.name):
        if item.name.endswith(".toml"):
            yield item.name.removesuffix(".toml"), item


def choices_file(name: str) -> Traversable:
    """Return where the choices of a grid stand: beside its own file."""
    if name.endswith(".toml"):
        return Path(name).with_suffix(CHOICES)
    return _folder().joinpath(name + CHOICES)


def read_choices(name: str) -> dict[str, Any]:
    """Return what tuning chose, by stream and row; nothing where a grid was never tuned."""
    file = choices_file(name)
    if not file.is_file():
        return {}
    try:
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))["chosen"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{file} is no file of choices: {error!r}") from error
    return found


def _folder() -> Traversable:
    return files("tame").joinpath("grids")
