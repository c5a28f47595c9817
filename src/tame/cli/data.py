"""`tame data`: which data sets are here, downloads, checks."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tame.streams.catalogue import Source

data = typer.Typer(
    help="Data sets: what is here, download, check against the official files.",
    no_args_is_help=True,
)
MEGABYTE = 1e6


@data.command("list")
def list_data(
    folder: Annotated[
        Path | None, typer.Option("--data", help="the data folder; else TAME_DATA, else the cache")
    ] = None,
) -> None:
    """List the data sets that can be fetched, and what of them is where."""
    from tame.streams.catalogue import SOURCES
    from tame.streams.folder import data_folder

    root = data_folder(folder)
    typer.echo(f"data folder: {root}")
    for name, entry in SOURCES.items():
        typer.echo(f"  {name:<13}  {_standing(entry, root)}; licence: {entry.licence}")


@data.command("fetch")
def fetch_data(
    names: Annotated[list[str], typer.Argument(help="data sets, as `tame data list` names them")],
    to: Annotated[
        Path | None,
        typer.Option("--to", "--data", help="the data folder; else TAME_DATA, else the cache"),
    ] = None,
    server: Annotated[
        str | None, typer.Option("--from", help="fetch from this address, not the official ones")
    ] = None,
    tries: Annotated[
        int, typer.Option(min=1, help="fruitless tries before a server is given up")
    ] = 4,
) -> None:
    """Download data sets; a download that was cut off goes on where it stopped."""
    from tame.streams.catalogue import source
    from tame.streams.folder import data_folder

    root = data_folder(to)
    for entry in [source(name) for name in names]:
        try:
            _fetch(entry, root, [server] if server else [], tries)
        except KeyboardInterrupt as stop:
            typer.echo("stopped; what has arrived is kept, and the same command goes on with it")
            raise typer.Exit(130) from stop


@data.command("verify")
def verify_data(
    folder: Annotated[
        Path | None, typer.Argument(help="a data folder; else TAME_DATA, else the cache")
    ] = None,
) -> None:
    """Check every known file in a folder against the official MD5; exit with 1 if any is wrong."""
    from tame.errors import DataError
    from tame.streams.catalogue import SOURCES, check
    from tame.streams.folder import data_folder

    root = data_folder(folder)
    if not root.is_dir():
        raise DataError(f"there is no folder {root}; 'tame data fetch NAME --to {root}' fills one")
    bad = False
    for name, entry in SOURCES.items():
        findings = check(entry, root)
        typer.secho(name if findings else f"{name}: not here", bold=True)
        for finding in findings:
            why = f" (MD5 {finding.found}, official {finding.expected})"
            typer.echo(
                f"  {finding.state:<7}  {finding.path.relative_to(root)}"
                f"{why if finding.state == 'wrong' else ''}"
            )
            bad = bad or finding.state != "ok"
    if bad:
        raise typer.Exit(1)


def _standing(entry: "Source", root: Path) -> str:
    from tame.streams.catalogue import survey

    held = survey(entry, root)
    if held is None:
        return f"absent, {entry.size / MEGABYTE:.0f} MB to download"
    where = held.folder.relative_to(root)
    if held.missing:
        return f"not whole in {where}, lacks {', '.join(held.missing)}"
    return f"present in {where}, {held.size / MEGABYTE:.0f} MB"


def _fetch(entry: "Source", root: Path, servers: list[str], tries: int) -> None:
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    from tame.streams.fetch import Courier, Patience, fetch

    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    lines = {file.name: bars.add_task(file.name, visible=False) for file in entry.downloads}

    def report(name: str, done: int, total: int) -> None:
        bars.start()
        bars.update(lines[name], completed=done, total=total, visible=True)

    typer.echo(f"{entry.name}: licence: {entry.licence}")
    try:
        fetched = fetch(entry, root, servers, Courier(Patience(tries=tries), report))
    finally:
        if bars.live.is_started:
            bars.stop()
    place = root / entry.places[0]
    typer.echo(
        f"{entry.name}: fetched to {place}" if fetched else f"{entry.name}: already in {root}"
    )
