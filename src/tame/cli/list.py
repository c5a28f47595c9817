"""`tame list`: every part and preset by name; imports none of them."""

from typing import Annotated

import typer

from tame import registry
from tame.errors import ConfigError, suggest

KINDS = {
    "methods": registry.METHODS,
    "streams": registry.STREAMS,
    "datasets": registry.DATASETS,
    "nets": registry.NETS,
    "detectors": registry.DETECTORS,
    "matchers": registry.MATCHERS,
    "conducts": registry.CONDUCTS,
    "selectors": registry.SELECTORS,
    "pruners": registry.PRUNERS,
    "decisions": registry.DECISIONS,
    "augments": registry.AUGMENTS,
    "workers": registry.WORKERS,
}


def list_parts(
    kind: Annotated[
        str, typer.Argument(help=f"{', '.join(KINDS)}, presets or grids; all if none")
    ] = "",
) -> None:
    """List what can be named in a preset or with --set."""
    known = [*KINDS, "presets", "grids"]
    if kind and kind not in known:
        raise ConfigError(f"nothing called '{kind}' to list{suggest(kind, known)}")
    for name in [kind] if kind else known:
        typer.secho(name, bold=True)
        rows = _rows(name)
        width = max(len(row) for row, _ in rows)
        for row, summary in rows:
            typer.echo(f"  {row:<{width}}  {summary}")
        if name == "presets":
            typer.echo("  NAME-one-pass is any of these showing each sample once")


def _rows(kind: str) -> list[tuple[str, str]]:
    if kind == "presets":
        from tame.bench.presets import presets, summary

        return [(name, summary(file)) for name, file in presets()]
    if kind == "grids":
        from tame.bench.grids import grids
        from tame.bench.presets import summary

        return [(name, summary(file)) for name, file in grids()]
    entries = KINDS[kind].entries().items()
    if kind == "methods":
        return [(name, f"{entry.summary} [{_told(entry)}]") for name, entry in entries]
    return [(name, entry.summary) for name, entry in entries]


def _told(entry: registry.Entry) -> str:
    return f"told {entry.told}" if entry.told else "what it is told is not known before it is used"
