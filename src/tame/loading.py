"""Loading a saved learner: finds the class to rebuild and puts its state back."""

from dataclasses import fields
from pathlib import Path
from typing import Any

from tame import checkpoint
from tame.config import build
from tame.core.given import as_device
from tame.errors import CheckpointError
from tame.nets.weights import left_blank
from tame.registry import METHODS
from tame.types import NetMaker


def load(path: str | Path, net: NetMaker | None = None, device: str = "cpu") -> Any:
    """Return the learner a file holds; `net` is needed if it was given a net of your own.

    >>> import tempfile, tame
    >>> learner = tame.TAME(net="mlp")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     learner.save(folder + "/model.tame")
    ...     tame.load(folder + "/model.tame").seed
    0
    """
    return load_run(path, net, device)[0]


def completed(method: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings of a file that may be older than some of them, with what they were then."""
    if "conduct" not in {field.name for field in fields(method.settings_type)}:
        return settings
    training = {"start": "fresh", **settings.get("training", {})}
    return {"conduct": "immediate", **settings, "training": training}


def load_run(
    path: str | Path, net: NetMaker | None = None, device: str = "cpu"
) -> tuple[Any, dict[str, Any]]:
    """Return the learner a file holds, and the file's header."""
    header, state = checkpoint.read(path, as_device(device))
    check_header(header, path)
    checkpoint.warn_if_elsewhere(header["made_by"], path)
    kind = header["net"]
    if isinstance(kind, dict) and "custom" in kind and net is None:
        raise CheckpointError(
            f"{path} uses a net of your own ({kind['custom']}); pass it: load(path, net=...)"
        )
    method = METHODS.get(header["method"])
    settings = build(method.settings_type, completed(method, header["settings"]), "settings")
    learner = method(net=net or kind, seed=header["seed"], settings=settings, device=device)
    try:
        with left_blank():  # every weight comes from the file
            learner.load_state_dict(state)
    except (LookupError, AttributeError, RuntimeError, ValueError, TypeError) as error:
        raise CheckpointError(f"{path} does not fit {header['method']}: {error}") from error
    return learner, header


def check_header(header: dict[str, Any], path: Path | str) -> None:
    """Refuse a file that is whole, and no learner's."""
    if not {"made_by", "method", "net", "seed", "settings"} <= header.keys():
        raise CheckpointError(f"{path} holds a state, but no learner to put it back into")
