"""`tame run`: one experiment, shown while it happens."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from tame.cli.live import LiveView


def run(  # noqa: PLR0913 (one argument an option)
    preset: Annotated[str, typer.Argument(help="a preset's name or a TOML file")] = "",
    out: Annotated[Path | None, typer.Option(help="the run's folder")] = None,
    seed: Annotated[int | None, typer.Option(help="fixes every draw")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="change a setting: detector.width=4")
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda")] = None,
    data: Annotated[Path | None, typer.Option(help="where data sets lie (TAME_DATA)")] = None,
    *,
    resume: Annotated[bool, typer.Option("--resume", help="go on with the run in --out")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="drop the run in --out")] = False,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="only repeatable GPU operations")
    ] = False,
) -> None:
    """Learn from a stream, consolidate, evaluate, and draw what happened.

    With no preset: five pairs of digits from the embedded images. Started by torchrun (torchrun
    --nproc-per-node 2 -m tame run ...), its processes do one run together; with --set
    workers=processes or workers=ray, others prune the experts (docs/parallel.md).
    """
    from tame.bench.experiment import changes_from, resolve
    from tame.bench.run import resume as go_on
    from tame.bench.run import start
    from tame.bench.unfinished import StopRequestedError
    from tame.streams.folder import VARIABLE

    if data is not None:
        os.environ[VARIABLE] = str(data)
    asked = changes_from(
        changes or [], seed=seed, device=device, deterministic=deterministic or None
    )
    experiment = resolve(preset or None, asked)
    folder = out or Path("runs") / f"{Path(experiment.preset).stem}-seed{experiment.seed}"
    view, leads = _view()
    try:
        with view:
            if resume:
                result = go_on(folder, [{"preset": preset}, *asked] if preset else asked, view)
            else:
                result = start(experiment, folder, view, overwrite=overwrite)
    except (StopRequestedError, KeyboardInterrupt) as stop:
        if leads:
            typer.echo(f"{str(stop) or 'stopped, back to the last checkpoint'}; nothing is lost")
            typer.echo(f"go on with: {_command()} run --out {folder} --resume")
        raise typer.Exit(130) from stop
    if leads:
        _show(result, folder)


def _view() -> "tuple[LiveView, bool]":
    """Return what shows the run, and whether it does: of several ranks only the first one's."""
    from rich.console import Console

    from tame.cli.live import LiveView
    from tame.engine.world import rank

    leads = rank() == 0
    return LiveView(Console(quiet=not leads)), leads


def _command() -> str:
    from tame.engine.world import ranks

    return "tame" if ranks() == 1 else f"torchrun --nproc-per-node {ranks()} -m tame"


def _show(result: dict[str, Any], folder: Path) -> None:
    from tame.cli.summary import show_result

    show_result(result)
    typer.echo(f"report: {folder / 'report.html'}")
