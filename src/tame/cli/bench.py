"""`tame bench`: methods x streams x seeds, and the leaderboard they make."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tame.errors import ConfigError

if TYPE_CHECKING:
    from tame.bench.grid import Grid
    from tame.bench.sweep import Crew, Sweep


def bench(  # noqa: PLR0913 (one argument an option)
    grid: Annotated[str, typer.Argument(help="a packaged grid's name or a TOML file")] = "",
    address: Annotated[str, typer.Argument(help="of the Ray cluster, with --ray")] = "",
    out: Annotated[Path | None, typer.Option(help="the folder of all cells and the table")] = None,
    jobs: Annotated[int, typer.Option(min=0, help="processes at a time; 0: one a core")] = 0,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="change a setting of every cell")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="where data sets lie (TAME_DATA)")] = None,
    *,
    ray: Annotated[
        bool, typer.Option("--ray", help="on a Ray cluster: at ADDRESS, or started here")
    ] = False,
) -> None:
    """Run a grid of experiments and write leaderboard.html and leaderboard.md.

    With no grid: three methods on the embedded digits. Stopped and started again, it goes on where
    it was; a cell that fails is told and tried again next time.
    """
    from tame.bench.experiment import changes_from
    from tame.bench.grid import read_grid
    from tame.bench.grids import DEFAULT_GRID
    from tame.bench.sweep import sweep
    from tame.cli.sweep_view import SweepView
    from tame.streams.folder import VARIABLE

    if data is not None:
        os.environ[VARIABLE] = str(data.resolve())
    name, place = _sorted_out(grid, address, ray=ray)
    chosen = read_grid(name or DEFAULT_GRID, changes_from(changes or []))
    root = out or Path("runs") / f"bench-{chosen.name}"
    crew = _crew(jobs, place, ray=ray)
    with SweepView([cell.name for cell in chosen.cells]) as view:
        found = sweep(chosen, root, crew, view)
    _close(chosen, found, root)


def _sorted_out(grid: str, address: str, *, ray: bool) -> tuple[str, str]:
    """Return grid and address, of which the grid may have been left out."""
    if address and not ray:
        raise ConfigError(f"'{address}' is an address; it goes with --ray")
    if ray and not address and (":" in grid or grid == "auto"):
        return "", grid
    return grid, address


def _crew(jobs: int, address: str, *, ray: bool) -> "Crew":
    if ray:
        from tame.bench.cluster import RayCrew

        return RayCrew(address or None)
    from tame.bench.crew import LocalCrew

    return LocalCrew(jobs or os.cpu_count() or 1)


def _close(grid: "Grid", found: "Sweep", root: Path) -> None:
    """Write the leaderboard and say what is missing."""
    from tame.bench.leaderboard import boards
    from tame.bench.leaderboard_page import write_leaderboard

    done, total = len(found.finished), len(grid.cells)
    if found.finished:
        finished = [cell for cell in grid.cells if cell in found.finished]
        html, text = write_leaderboard(grid.name, boards(finished, root), root)
        typer.echo(text.read_text(encoding="utf-8").partition("### What each")[0])
        typer.echo(f"leaderboard: {html}")
    ran = f"{len(found.before)} were done before, {len(found.done)} ran now"
    typer.echo(f"{done} of {total} cells are done: {ran}, {len(found.failed)} failed")
    for name, why in found.failed.items():
        typer.secho(f"failed: {name}: {why.strip().splitlines()[-1]}", fg="red", err=True)
    if found.stopped:
        typer.echo("stopped; the same command goes on from here")
        raise typer.Exit(130)
    if found.failed:
        raise typer.Exit(1)
