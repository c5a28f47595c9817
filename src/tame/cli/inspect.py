"""`tame inspect`: what is inside a model file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tame.core.inventory import Item
    from tame.types import State


def inspect(model: Annotated[Path, typer.Argument(help="a model.tame")]) -> None:
    """Describe a saved learner: how it was made, its experts, what it weighs."""
    from rich.console import Console
    from rich.table import Table

    from tame.checkpoint import read
    from tame.config import to_toml
    from tame.loading import check_header

    header, state = read(model)
    check_header(header, model)
    console = Console()
    made = ", ".join(f"{key} {value}" for key, value in header["made_by"].items())
    console.print(
        f"[bold]{header['method']}[/bold], format {header['format']}, seed {header['seed']}"
    )
    console.print(f"made by: {made}")
    if header.get("run"):
        console.print(f"run: phase {header['run']['phase']}, batch {header['run']['step']}")
    pool = state.get("pool")
    if pool:
        experts = _listed(pool, model)
        table = Table(title=f"{len(experts)} expert{'s' * (len(experts) != 1)}")
        for column in ("id", "", "steps", "seen", "kept", "labels", "weights kept", "restarts"):
            table.add_column(column, justify="right")
        labels = state["intake"]["labels"]
        for expert in experts:
            table.add_row(*describe(expert, labels, active=expert.id == pool["active"]))
        console.print(table)
    console.print(f"file: {model.stat().st_size:,} bytes")
    console.print("settings:")
    typer.echo(to_toml({"net": header["net"], **header["settings"]}))


def _listed(pool: "State", model: Path) -> "list[Item]":
    from tame.core.inventory import inventory
    from tame.errors import CheckpointError

    try:
        return inventory(pool)
    except (LookupError, AttributeError, RuntimeError, ValueError, TypeError) as error:
        raise CheckpointError(f"the experts in {model} are damaged: {error}") from error


def describe(expert: "Item", labels: list[int], *, active: bool) -> list[str]:
    """Return one expert's row of the table."""
    taught = " ".join(str(label) for label in sorted(labels[slot] for slot in expert.taught))
    return [
        str(expert.id),
        "active" if active else "packed" if expert.packed else "",
        f"{expert.steps:,}",
        f"{expert.seen:,}",
        f"{expert.samples:,}",
        taught,
        f"{expert.kept:,} of {expert.places:,}" if expert.places else "all",
        str(expert.restarts),
    ]
