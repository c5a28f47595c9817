"""`tame predict`: labels for the samples in a file."""

from pathlib import Path
from typing import Annotated

import typer


def predict(
    model: Annotated[Path, typer.Argument(help="a model.tame")],
    file: Annotated[Path, typer.Argument(help=".npy, .npz (x), .safetensors (x), .csv or .png")],
    out: Annotated[Path | None, typer.Option(help="write labels there (.npy or text)")] = None,
    when: Annotated[
        str, typer.Option(help="ever: by the selector; now: the active expert")
    ] = "ever",
) -> None:
    """Print one label a sample, in the file's order."""
    import numpy as np

    from tame.cli.samples import read_samples
    from tame.errors import StorageError
    from tame.loading import load

    labels = load(model).predict(read_samples(file), when=when).cpu().numpy()
    if out is None:
        typer.echo("\n".join(str(label) for label in labels))
        return
    try:
        if out.suffix == ".npy":
            np.save(out, labels)
        else:
            out.write_text("".join(f"{label}\n" for label in labels), encoding="utf-8")
    except OSError as error:
        raise StorageError(f"could not write {out}: {error}") from error
    typer.echo(f"{len(labels)} labels: {out}")
