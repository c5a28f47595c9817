"""`tame paper`: the paper's tables and figures from result files."""

from pathlib import Path
from typing import Annotated

import typer

RESULTS = Path("benchmarks/results/paper")
GRIDS = Path("benchmarks/results/grids")


def paper(
    out: Annotated[Path, typer.Option(help="the folder to write results.md and its figures to")],
    results: Annotated[
        Path, typer.Option(help="the folder of results, NAME-seedN.json and traces")
    ] = RESULTS,
    grids: Annotated[
        Path, typer.Option(help="the folder of grids' cells, as `tame bench --results` keeps them")
    ] = GRIDS,
) -> None:
    """Write the paper's tables and figures, ours beside its own, from results of runs."""
    from tame.bench.paper.page import write_paper

    typer.echo(f"written: {write_paper(results, out, grids)}")
