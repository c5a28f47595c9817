"""The command line: `tame run`, `bench`, `list`, `report`, `paper`, `predict` and the others."""

import sys

import typer

from tame.cli.bench import bench
from tame.cli.data import data
from tame.cli.inspect import inspect
from tame.cli.list import list_parts
from tame.cli.paper import paper
from tame.cli.predict import predict
from tame.cli.report import report
from tame.cli.run import run
from tame.errors import TameError

app = typer.Typer(
    name="tame",
    help="Learn from a labelled stream whose distribution changes without notice.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("run")(run)
app.command("bench")(bench)
app.command("list")(list_parts)
app.command("report")(report)
app.command("paper")(paper)
app.command("predict")(predict)
app.command("inspect")(inspect)
app.add_typer(data, name="data")


def main() -> None:
    """Run the command line; what the package refuses is said in a line, without a traceback."""
    try:
        app()
    except TameError as error:
        typer.secho(f"tame: {error}", fg="red", err=True)
        sys.exit(2)
