"""`tame inspect`: what is inside a model file."""

from pathlib import Path
from typing import Annotated

import typer


def inspect(model: Annotated[Path, typer.Argument(help="a model.tame")]) -> None:
    """Describe a saved learner: how it was made, its experts, what it weighs."""
    from rich.console import Console
    from rich.table import Table

    from tame.checkpoint import read
    from tame.config import to_toml

    header, state = read(model)
    console = Console()
    made = ", ".join(f"{key} {value}" for key, value in header["made_by"].items())
    console.print(
        f"[bold]{header['method']}[/bold], format {header['format']}, seed {header['seed']}"
    )
    console.print(f"made by: {made}")
    if header["run"]:
        console.print(f"run: phase {header['run']['phase']}, batch {header['run']['step']}")
    pool = state.get("pool")
    if pool:
        table = Table(title="experts")
        for column in ("id", "steps", "samples seen", "kept", "labels", "weights kept", "restarts"):
            table.add_column(column, justify="right")
        for expert in pool["experts"]:
            table.add_row(*describe(expert, state["intake"]["labels"], pool["active"]))
        console.print(table)
    console.print(f"file: {model.stat().st_size:,} bytes")
    console.print("settings:")
    typer.echo(to_toml({"net": header["net"], **header["settings"]}))


def describe(expert: dict, labels: list[int], active: int) -> list[str]:  # type: ignore[type-arg]
    """Return one expert's row of the table."""
    network = expert["network"]
    taught = [str(labels[slot]) for slot, count in enumerate(expert["counts"]) if count]
    masks = network["masks"].values()
    kept = sum(int(mask.sum()) for mask in masks)
    total = sum(mask.numel() for mask in masks)
    return [
        f"{expert['id']}{' (active)' if expert['id'] == active else ''}",
        str(network["steps"]),
        str(sum(expert["counts"])),
        str(len(expert["memory"]["keys"])),
        " ".join(taught),
        f"{kept:,} of {total:,}" if total else "all",
        str(network["restarts"]),
    ]
