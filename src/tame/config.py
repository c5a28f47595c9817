"""Frozen dataclasses to TOML tables and back; unknown keys are refused by name.

A field whose value is chosen from a `Registry` says so with `part(REGISTRY, ...)`; its table then
holds `name` and the settings of the part of that name.
"""

import dataclasses
import json
import tomllib
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, get_args, get_origin, get_type_hints

from tame.errors import ConfigError, suggest
from tame.registry import Registry

Table = dict[str, Any]


def part(registry: Registry, default: Callable[[], Any]) -> Any:
    """Declare a dataclass field that holds a named, replaceable part."""
    return dataclasses.field(default_factory=default, metadata={"registry": registry})


def late(default: Any) -> Any:
    """Declare a field that came later, with the value under which it changes nothing.

    At that value it is no part of what tells two configurations apart: results from before there
    was such a field stay what they are. A default that does something is not declared like this.
    """
    return dataclasses.field(default=default, metadata={"late": True})


def build(cls: type, table: Mapping[str, Any], where: str = "") -> Any:
    """Make a dataclass from a table, converting and checking every value.

    >>> from tame.core.detectors.deviation import Deviation
    >>> build(Deviation, {"width": 4}).width
    4.0
    >>> build(Deviation, {"widht": 4}, "detector")
    Traceback (most recent call last):
    ...
    tame.errors.ConfigError: unknown key 'detector.widht'; did you mean 'width'?
    """
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}
    hints = get_type_hints(cls)
    values = {}
    for key, given in table.items():
        if key not in fields:
            raise ConfigError(f"unknown key '{_join(where, key)}'{suggest(key, fields)}")
        registry = fields[key].metadata.get("registry")
        at = _join(where, key)
        value = _on_default(fields[key], given)
        values[key] = (
            build_part(registry, value, at) if registry else convert(hints[key], value, at)
        )
    try:
        return cls(**values)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{where or cls.__name__}: {error}") from error


def _on_default(field: "dataclasses.Field[Any]", given: Any) -> Any:
    """Complete a table that names only some settings with those of the field's default."""
    registry = field.metadata.get("registry")
    if isinstance(given, str) and registry:
        given = {"name": given}
    if not isinstance(given, Mapping) or field.default_factory is dataclasses.MISSING:
        return given
    default = field.default_factory()
    if registry:
        return merge(dump_part(registry, default), given)
    return merge(dump(default), given) if dataclasses.is_dataclass(default) else given


def name_parts(made: Any) -> None:
    """Put parts in the place of the names and tables that a dataclass was given for them."""
    for field in dataclasses.fields(made):
        registry, value = field.metadata.get("registry"), getattr(made, field.name, None)
        if registry and isinstance(value, str | Mapping):
            found = build_part(registry, _on_default(field, value), field.name)
            object.__setattr__(made, field.name, found)


def build_part(registry: Registry, value: Any, where: str) -> Any:
    """Make the part that a name, or a table with a `name`, stands for."""
    table = {"name": value} if isinstance(value, str) else dict(value)
    if table.get("name") == "none":
        if len(table) > 1:
            keys = ", ".join(key for key in table if key != "name")
            raise ConfigError(
                f"'{where}' is none and has no {keys}; give it a name: {_names(registry)}"
            )
        return None
    if "name" not in table:
        raise ConfigError(f"'{where}' needs a name: {_names(registry)}")
    return build(registry.get(table.pop("name")), table, where)


def _names(registry: Registry) -> str:
    return ", ".join(registry)


def dump(value: Any, *, whole: bool = True) -> Table:
    """Return the table `build` would make this dataclass from, every default spelled out.

    If not `whole`, fields that are `late` and at their default are left out.
    """
    table: Table = {}
    for field in dataclasses.fields(value):
        item = getattr(value, field.name, None)
        silent = field.metadata.get("late") and item == field.default and not whole
        if not field.init or silent:
            continue
        registry = field.metadata.get("registry")
        table[field.name] = (
            dump_part(registry, item, whole=whole) if registry else _plain(item, whole=whole)
        )
    return table


def dump_part(registry: Registry, item: Any, *, whole: bool = True) -> Table:
    """Return the table of a part: its name and its settings."""
    if item is None:
        return {"name": "none"}
    return {"name": registry.name_of(item), **dump(item, whole=whole)}


def merge(base: Table, over: Mapping[str, Any]) -> Table:
    """Return `base` with `over` on top, table by table; a part's new name drops the old settings.

    >>> merge({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}})
    {'a': {'b': 3, 'c': 2}}
    >>> merge({"name": "deviation", "width": 4}, {"name": "cusum"})
    {'name': 'cusum'}
    """
    if "name" in over and over["name"] != base.get("name"):
        return dict(over)
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        if isinstance(old, str) and isinstance(value, Mapping) and old != "none":
            old = {"name": old}
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            merged[key] = merge(dict(old), value)
        else:
            merged[key] = value
    return merged


def assignment(text: str) -> Table:
    """Read `a.b=c` into a nested table; `c` is a TOML value, or a plain word.

    >>> assignment("detector.width=4")
    {'detector': {'width': 4}}
    >>> assignment("net=mlp")
    {'net': 'mlp'}
    """
    path, equals, raw = text.partition("=")
    if not equals or not path.strip():
        raise ConfigError(f"'{text}' is not of the form key.key=value")
    try:
        value = tomllib.loads(f"v = {raw}")["v"]
    except tomllib.TOMLDecodeError:
        value = raw.strip()
    for key in reversed(path.strip().split(".")):
        value = {key: value}
    return typing.cast("Table", value)


def to_toml(table: Mapping[str, Any], path: str = "") -> str:
    """Write nested tables of plain values as TOML text."""
    lines = [f"{k} = {_literal(v)}" for k, v in table.items() if not isinstance(v, Mapping)]
    for key, value in table.items():
        if isinstance(value, Mapping):
            full = _join(path, key)
            lines += ["", f"[{full}]", to_toml(value, full).rstrip("\n")]
    return "\n".join(lines).strip("\n") + "\n"


def convert(hint: Any, value: Any, where: str) -> Any:
    """Check a TOML value against a type and return it as that type."""
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        if not isinstance(value, Mapping):
            raise ConfigError(f"'{where}' is a table, not {value!r}")
        return build(hint, value, where)
    by_origin = {
        types.UnionType: _convert_union,
        typing.Union: _convert_union,
        tuple: _convert_tuple,
        typing.Literal: _convert_literal,
    }
    return by_origin.get(get_origin(hint), _convert_plain)(hint, value, where)


def _convert_literal(hint: Any, value: Any, where: str) -> Any:
    if value not in get_args(hint):
        known = [str(choice) for choice in get_args(hint)]
        raise ConfigError(f"'{where}' cannot be {value!r}{suggest(str(value), known)}")
    return value


def _convert_union(hint: Any, value: Any, where: str) -> Any:
    for option in get_args(hint):
        if option is type(None):
            if value in ("none", None):
                return None
            continue
        try:
            return convert(option, value, where)
        except ConfigError:
            continue
    raise ConfigError(f"'{where}' cannot be {value!r}; it is {hint}")


def _convert_tuple(hint: Any, value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise ConfigError(f"'{where}' is a list, not {value!r}")
    item = get_args(hint)[0]
    return tuple(convert(item, each, where) for each in value)


def _convert_plain(hint: Any, value: Any, where: str) -> Any:
    if hint is Any:
        return value
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(hint, type) and isinstance(value, hint) and _same_truth(hint, value):
        return value
    wanted = getattr(hint, "__name__", str(hint))
    raise ConfigError(f"'{where}' is {wanted}, not {value!r}")


def _same_truth(hint: type, value: Any) -> bool:
    return (hint is bool) == isinstance(value, bool)


def _plain(value: Any, *, whole: bool = True) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dump(value, whole=whole)
    if isinstance(value, tuple):
        return [_plain(item, whole=whole) for item in value]
    return "none" if value is None else value


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_literal(item) for item in value) + "]"
    return repr(value)


def _join(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key
