"""`tame report`: the picture of what happened in a run."""

from pathlib import Path
from typing import Annotated

import typer


def report(
    folder: Annotated[Path, typer.Argument(help="the folder of a finished run")],
) -> None:
    """Write report.html anew from a run's result and events, and sum it up."""
    from tame.bench.report import write_report
    from tame.bench.store import RunFolder
    from tame.cli.summary import show_result

    result = RunFolder(folder).read_result()
    path = write_report(folder)
    show_result(result)
    typer.echo(f"report: {path}")
