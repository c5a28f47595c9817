"""One experiment, fully resolved: which method, stream, network and settings, from a preset on."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from tame.bench.presets import DEFAULT_PRESET, read_preset
from tame.bench.store import RunFolder
from tame.config import assignment, build, build_part, dump, dump_part, merge, to_toml
from tame.core.defaults import AUTO, chosen_for
from tame.core.settings import Settings
from tame.errors import ConfigError, RunError, suggest
from tame.loading import completed
from tame.registry import METHODS, NETS, STREAMS
from tame.types import Stream


@dataclass(frozen=True)
class RunSettings:
    """How a run is kept and computed.

    A checkpoint is written every `checkpoint_seconds`. `threads` is how many CPU threads compute
    (0: as torch decides); results repeat bit for bit only under the same number. With `matrix`,
    a copy of the learner is consolidated and measured after every segment, every `ask_every`-th
    batch is predicted before it is learned, and what was known is probed after each shift
    (`ask_every` 0: neither of these two, for methods whose every answer is work). `matrix`
    "asked" leaves the consolidated copies out, which cost the most.
    """

    checkpoint_seconds: float = 10.0
    threads: int = 0
    matrix: bool | Literal["asked"] = False
    ask_every: int = 1

    def __post_init__(self) -> None:
        if self.ask_every < 0:
            raise ValueError(f"ask_every is 0 or more, not {self.ask_every}")


@dataclass(frozen=True)
class Experiment:
    """A method on a stream; `resolve` makes one, `table` spells every value out."""

    preset: str
    method: str
    seed: int
    device: str
    deterministic: bool
    net: Any
    settings: Any
    stream: Any
    run: RunSettings = field(default_factory=RunSettings)

    def learner(self) -> Any:
        """Return a learner that has seen nothing yet."""
        return METHODS.get(self.method)(
            net=self.net, seed=self.seed, settings=self.settings, device=self.device
        )

    def open_stream(self) -> Stream:
        """Return the stream of this experiment's seed."""
        opened: Stream = self.stream.open(self.seed)
        return opened

    def table(self, *, whole: bool = True) -> dict[str, Any]:
        """Return everything resolved, as written to `run.toml`.

        If not `whole`, settings that came later and change nothing are left out.
        """
        return {
            "preset": self.preset,
            "method": self.method,
            "seed": self.seed,
            "device": self.device,
            "deterministic": self.deterministic,
            "net": self.net,
            "stream": dump_part(STREAMS, self.stream, whole=whole),
            "run": dump(self.run, whole=whole),
            **dump(self.settings, whole=whole),
        }

    def to_toml(self) -> str:
        """Return the table as text that `resolve` reads back."""
        return to_toml(self.table())


def resolve(preset: str | None = None, changes: Sequence[dict[str, Any]] = ()) -> Experiment:
    """Return the experiment a preset (or a TOML file) and changes on top of it describe.

    A change of method leaves out what the preset sets about parts that the new method has not.

    >>> resolve("embedded-split", [{"seed": 3}]).seed
    3
    >>> resolve("embedded-split", [{"method": "ewc"}]).settings.strength
    100.0
    """
    name = preset or DEFAULT_PRESET
    table = read_preset(name)
    asked = [change["method"] for change in changes if "method" in change]
    if asked and asked[-1] != table.get("method", "tame"):
        known = _own() | {f.name for f in fields(METHODS.get(asked[-1]).settings_type)}
        table = {key: value for key, value in table.items() if key in known}
    for change in changes:
        table = merge(table, change)
    return from_table(table, name)


def from_table(table: dict[str, Any], name: str) -> Experiment:
    """Build an experiment from a table, refusing keys that mean nothing."""
    table = _chosen({"preset": name, "method": "tame", **table})
    method = METHODS.get(table["method"])
    own = _own()
    rest = {key: value for key, value in table.items() if key not in own}
    known = {f.name for f in fields(method.settings_type)}
    for key in rest:
        if key not in known:
            raise ConfigError(f"unknown key '{key}'{suggest(key, known | own)}")
    build_part(NETS, table.get("net", "lenet"), "net")  # refuses a bad net now, not on first use
    return Experiment(
        preset=table["preset"],
        method=table["method"],
        seed=_whole(table.get("seed", 0), "seed"),
        device=str(table.get("device", "cpu")),
        deterministic=bool(table.get("deterministic", False)),
        net=table.get("net", "lenet"),
        settings=build(method.settings_type, rest),
        stream=build_part(STREAMS, table.get("stream", {"name": "split"}), "stream"),
        run=build(RunSettings, table.get("run", {}), "run"),
    )


def _chosen(table: dict[str, Any]) -> dict[str, Any]:
    """Put in the place of the net `auto` what `TAME()` takes for such data: net and settings.

    What the table itself says of settings stands on top of those.
    """
    if table.get("net") != AUTO:
        return table
    if METHODS.get(table["method"]).settings_type is not Settings:
        raise ConfigError(f"net 'auto' is what tame chooses; name a net for {table['method']}")
    stream = build_part(STREAMS, table.get("stream", {"name": "split"}), "stream")
    first = next(iter(stream.open(_whole(table.get("seed", 0), "seed")).batches()))
    net, settings = chosen_for(tuple(first.x.shape[1:]), first.x.dtype)
    rest = {key: value for key, value in table.items() if key != "net"}
    return {**merge(dump(settings), rest), "net": net}


def read_experiment(folder: RunFolder) -> Experiment:
    """Return the experiment a folder's `run.toml` describes."""
    if not folder.config.exists():
        raise RunError(f"{folder.path} holds no run to resume (no {folder.config.name})")
    try:
        table = tomllib.loads(folder.config.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise RunError(f"{folder.config} cannot be read: {error}") from error
    table = completed(METHODS.get(table["method"]), table)
    return from_table(table, table.get("preset", ""))


def _own() -> set[str]:
    """Return the keys of an experiment that are not settings of its method."""
    return {f.name for f in fields(Experiment)} - {"settings"}


def changes_from(assignments: Sequence[str], **given: Any) -> list[dict[str, Any]]:
    """Return the changes a command line asks for: `--set` texts, then options that were given."""
    changes = [assignment(text) for text in assignments]
    return [*changes, {key: value for key, value in given.items() if value is not None}]


def _whole(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ConfigError(f"'{name}' is a whole number, 0 or more, not {value!r}")
    return value
