"""Packaged experiments as data: TOML files, listed without importing anything heavy."""

import tomllib
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from tame.config import merge
from tame.errors import ConfigError, suggest

DEFAULT_PRESET = "embedded-split"
ONCE = "-one-pass"


def read_preset(name: str) -> dict[str, Any]:
    """Return the table of a packaged preset, or of a TOML file of the user's.

    A preset may name another one it `extends`, and then holds only what differs. Every preset's
    name with `-one-pass` behind it is that preset showing each sample once.
    """
    path = Path(name)
    if path.suffix == ".toml":
        if not path.is_file():
            raise ConfigError(f"there is no file {path}")
        return _extended(_parse(path.read_text(encoding="utf-8"), name))
    known = dict(presets())
    if name not in known and name.removesuffix(ONCE) in known:
        return merge(read_preset(name.removesuffix(ONCE)), {"stream": {"passes": 1}})
    if name not in known:
        raise ConfigError(f"no preset named '{name}'{suggest(name, known)}")
    return _extended(_parse(known[name].read_text(encoding="utf-8"), name))


def _extended(table: dict[str, Any]) -> dict[str, Any]:
    base = table.pop("extends", None)
    return table if base is None else merge(read_preset(base), table)


def presets() -> Iterator[tuple[str, Traversable]]:
    """Yield the name and file of every packaged preset."""
    yield from _below(files("tame").joinpath("presets"), "")


def _below(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for item in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if item.is_dir():
            yield from _below(item, f"{prefix}{item.name}/")
        elif item.name.endswith(".toml"):
            yield prefix + item.name.removesuffix(".toml"), item


def _parse(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name} is not valid TOML: {error}") from error


def summary(file: Traversable) -> str:
    """Return the first comment of a preset: what it is, in a line."""
    return file.read_text(encoding="utf-8").partition("\n")[0].removeprefix("#").strip()
