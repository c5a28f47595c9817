"""`tame bench`: methods x streams x seeds, and the leaderboard they make."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tame.errors import ConfigError

if TYPE_CHECKING:
    from tame.bench.grid import Grid, Plan
    from tame.bench.sweep import Crew, Sweep

    Changes = Sequence[Mapping[str, Any]]

LATE = 75  # the exit code when time was up: try again


def bench(  # noqa: PLR0913 (one argument an option)
    grid: Annotated[str, typer.Argument(help="a packaged grid's name or a TOML file")] = "",
    address: Annotated[str, typer.Argument(help="of the Ray cluster, with --ray")] = "",
    *,
    out: Annotated[Path | None, typer.Option(help="the folder of all cells and the table")] = None,
    jobs: Annotated[int, typer.Option(min=0, help="processes at a time; 0: one a core")] = 0,
    gpu_jobs: Annotated[
        int, typer.Option(min=0, help="of them on a GPU at a time; 0: as many as there are")
    ] = 0,
    minutes: Annotated[
        float, typer.Option(min=0, help="stop then as by Ctrl-C; 0: when all is done")
    ] = 0.0,
    only: Annotated[
        list[str] | None, typer.Option(help="a row to run; may be repeated; all if none")
    ] = None,
    on: Annotated[
        list[str] | None, typer.Option(help="a stream to run on; may be repeated; all if none")
    ] = None,
    seeds: Annotated[
        list[int] | None,
        typer.Option("--seed", help="instead of the grid's seeds; may be repeated"),
    ] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="change a setting of every cell")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="where data sets lie (TAME_DATA)")] = None,
    results: Annotated[
        Path | None,
        typer.Option(help="a small file of each finished cell: kept, and not run again"),
    ] = None,
    tune: Annotated[
        bool, typer.Option("--tune", help="choose settings first: run the grid's trials")
    ] = False,
    ray: Annotated[
        bool, typer.Option("--ray", help="on a Ray cluster: at ADDRESS, or started here")
    ] = False,
) -> None:
    """Run a grid of experiments and write leaderboard.html and leaderboard.md.

    With no grid: three methods on the embedded digits. Stopped and started again, it goes on where
    it was; a cell that fails is told and tried again next time.
    """
    from tame.bench.experiment import changes_from
    from tame.bench.grid import read_plan
    from tame.bench.grids import DEFAULT_GRID
    from tame.streams.folder import VARIABLE

    if data is not None:
        os.environ[VARIABLE] = str(data.resolve())
    name, place = _sorted_out(grid, address, ray=ray)
    plan = read_plan(name or DEFAULT_GRID).only(only or [], on or [], seeds or [])
    asked = changes_from(changes or [])
    root = out or Path("runs") / f"bench-{plan.name}"
    if tune:
        if ray:
            raise ConfigError("--tune runs in local processes; leave out --ray")
        _tune(plan, asked, root, (jobs, gpu_jobs, minutes))
        return
    _bench(plan, asked, root, _crew(jobs, gpu_jobs, place, ray=ray), (minutes, results))


def _bench(
    plan: "Plan", changes: "Changes", root: Path, crew: "Crew", given: tuple[float, Path | None]
) -> None:
    from tame.bench.grid import grid_of
    from tame.bench.harvest import Keeper, harvest, replant
    from tame.bench.store import read_remark
    from tame.bench.sweep import sweep
    from tame.cli.sweep_view import SweepView

    minutes, results = given
    chosen = grid_of(plan, changes)
    if results is not None:
        replant(chosen, root, results)
        chosen = chosen.remarked(read_remark(results / chosen.name))
    with SweepView([cell.name for cell in chosen.cells], minutes=minutes) as view:
        audience = view if results is None else Keeper(chosen, root, results, view)
        found = sweep(chosen, root, crew, audience)
    if results is not None:
        typer.echo(f"kept {len(harvest(chosen, found.finished, root, results))} cells in {results}")
    _close(chosen, found, root, late=view.time_is_up)


def _tune(plan: "Plan", changes: "Changes", root: Path, given: tuple[int, int, float]) -> None:
    """Run a grid's trials and write what they chose, beside the grid and into the folder."""
    from tame.bench.crew import LocalCrew
    from tame.bench.grids import choices_file
    from tame.bench.store import read_json, write_text
    from tame.bench.tuning import Tally, choices, trials, try_out, tune, untried
    from tame.cli.sweep_view import SweepView

    jobs, gpu_jobs, minutes = given
    found = trials(plan, changes)
    if not found:
        raise ConfigError(f"no row of {plan.name} has a table [methods.ROW.tune]")
    beside = Path(str(choices_file(plan.source)))
    before = read_json(beside) if beside.exists() else None
    total, found = len(found), untried(found, before)
    crew = LocalCrew(jobs or os.cpu_count() or 1, gpu_jobs, try_out)
    with SweepView([trial.name for trial in found], minutes=minutes) as view:
        tally = Tally(view)
        tune(found, root, crew, tally)
    made = json.dumps(choices(plan, found, root, before), indent=1) + "\n"
    for path in (root / beside.name, beside):
        write_text(path, made)
    left = sum(not trial.result(root).exists() for trial in found)
    typer.echo(f"{total - left} of {total} trials are done; written: {beside}")
    for trial, why in tally.failed.items():
        typer.secho(f"failed: {trial}: {why.strip().splitlines()[-1]}", fg="red", err=True)
    if left:
        typer.echo("the same command goes on from here")
        raise typer.Exit(1 if tally.failed else LATE)


def _sorted_out(grid: str, address: str, *, ray: bool) -> tuple[str, str]:
    """Return grid and address, of which the grid may have been left out."""
    if address and not ray:
        raise ConfigError(f"'{address}' is an address; it goes with --ray")
    if ray and not address and (":" in grid or grid == "auto"):
        return "", grid
    return grid, address


def _crew(jobs: int, gpu_jobs: int, address: str, *, ray: bool) -> "Crew":
    if ray:
        from tame.bench.cluster import RayCrew

        return RayCrew(address or None)
    from tame.bench.crew import LocalCrew

    return LocalCrew(jobs or os.cpu_count() or 1, gpu_jobs)


def _close(grid: "Grid", found: "Sweep", root: Path, *, late: bool) -> None:
    """Write the leaderboard and say what is missing."""
    from tame.bench.leaderboard import boards
    from tame.bench.leaderboard_page import write_leaderboard
    from tame.bench.shifts_page import write_shifts

    done, total = len(found.finished), len(grid.cells)
    if found.finished:
        finished = [cell for cell in grid.cells if cell in found.finished]
        made = boards(finished, root)
        html, text = write_leaderboard(grid, made, root)
        if grid.detection is not None:
            text = write_shifts(grid, made, root)
        typer.echo(text.read_text(encoding="utf-8").partition("# What each")[0].rstrip("#"))
        typer.echo(f"{text.stem}: {html if grid.detection is None else text}")
    ran = f"{len(found.before)} were done before, {len(found.done)} ran now"
    typer.echo(f"{done} of {total} cells are done: {ran}, {len(found.failed)} failed")
    for name, why in found.failed.items():
        typer.secho(f"failed: {name}: {why.strip().splitlines()[-1]}", fg="red", err=True)
    if found.stopped or (late and done + len(found.failed) < total):
        typer.echo("stopped; the same command goes on from here")
        raise typer.Exit(LATE if late else 130)
    if found.failed:
        raise typer.Exit(1)
