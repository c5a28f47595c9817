"""One versioned file: valid safetensors whose metadata holds JSON; never pickle.

State is nested dictionaries and lists of tensors and plain values. Tensors become the file's
tensors, named by their path; everything else, and each tensor's memory format, is the JSON.
"""

import json
import os
import platform
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from tame.config import dump, dump_part
from tame.errors import CheckpointError, ConfigError, StorageError
from tame.registry import METHODS, NETS
from tame.types import State

VERSION = 2
PARTIAL = ".partial"


class Savable(Protocol):
    """A learner that can be rebuilt from its settings and state."""

    net: Any
    seed: int
    settings: Any
    device: torch.device

    def state_dict(self) -> State: ...


def save_learner(learner: Savable, path: str | Path, run: Mapping[str, Any] | None = None) -> None:
    """Write a learner, and where a run stands, to one file: the old file or the new, never half."""
    header = {
        "method": METHODS.name_of(learner),
        "net": describe_net(learner.net),
        "seed": learner.seed,
        "settings": dump(learner.settings),
        "device": learner.device.type,
        "run": dict(run or {}),
    }
    write(path, header, learner.state_dict())


def describe_net(net: Any) -> Any:
    """Return a net as plain data: its name and settings, or that it is the user's own."""
    if isinstance(net, str | Mapping):
        return net
    try:
        return dump_part(NETS, net)
    except ConfigError:
        name = getattr(net, "__qualname__", type(net).__qualname__)
        return {"custom": f"{getattr(net, '__module__', '')}:{name}"}


def write(path: str | Path, header: Mapping[str, Any], state: State) -> None:
    """Write atomically: beside the target, synced, then renamed over it."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{os.getpid()}{PARTIAL}")
        try:
            partial.write_bytes(pack(header, state))
            _sync(partial)
            partial.replace(path)
            _sync(path.parent)
        finally:
            partial.unlink(missing_ok=True)
    except (OSError, SafetensorError) as error:
        raise StorageError(f"could not write {path}: {error}") from error


def pack(header: Mapping[str, Any], state: State) -> bytes:
    """Return what a file would hold."""
    tensors: dict[str, Tensor] = {}
    body = _flatten(state, "", tensors)
    document = {"format": VERSION, "made_by": environment(), **header, "state": body}
    return save(tensors, {"tame": json.dumps(document)})


def read(path: str | Path, device: str | torch.device = "cpu") -> tuple[dict[str, Any], State]:
    """Return a file's header and state; refuse files that are cut short, foreign or newer.

    The file is read at once, so a checkpoint written meanwhile cannot mix with this one.
    """
    path = Path(path)
    if not path.is_file():
        raise CheckpointError(f"there is no file {path}")
    try:
        return unpack(path.read_bytes(), path, device)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path} is cut short or no checkpoint: {error}") from error


def unpack(
    data: bytes, source: str | Path, device: str | torch.device = "cpu"
) -> tuple[dict[str, Any], State]:
    """Return the header and state of what `pack` returned."""
    document = _document(source, data)
    tensors = {name: tensor.to(device) for name, tensor in load(data).items()}
    return document, _unflatten(document.pop("state"), tensors)


def warn_if_elsewhere(made_by: Mapping[str, Any], path: str | Path) -> None:
    """Warn when what bit-for-bit repetition depends on differs from where a file was written."""
    here = environment()
    changed = [f"{k} {made_by.get(k)} -> {here[k]}" for k in here if made_by.get(k) != here[k]]
    if changed:
        text = f"{path} was written under other conditions ({', '.join(changed)})"
        warnings.warn(f"{text}; going on may differ in the last bits", stacklevel=3)


def environment() -> dict[str, Any]:
    """Return what bit-for-bit repetition depends on."""
    return {
        "torch": torch.__version__,
        "numpy": np.__version__,
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
    }


def _document(path: str | Path, data: bytes) -> dict[str, Any]:
    length = int.from_bytes(data[:8], "little")
    metadata = json.loads(data[8 : 8 + length]).get("__metadata__", {})
    if "tame" not in metadata:
        raise CheckpointError(f"{path} is a safetensors file, but not one of tame's")
    document: dict[str, Any] = json.loads(metadata["tame"])
    if document["format"] > VERSION:
        raise CheckpointError(
            f"{path} has format {document['format']}; this version reads up to {VERSION}: upgrade"
        )
    return document


def _flatten(value: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    if isinstance(value, Tensor):
        tensors[path] = value.detach().contiguous().clone()
        last = value.ndim == 4 and not value.is_contiguous()  # noqa: PLR2004 (images)
        last = last and value.is_contiguous(memory_format=torch.channels_last)
        return {"$tensor": path, "format": "channels_last" if last else "contiguous"}
    if isinstance(value, Mapping):
        return {str(key): _flatten(item, f"{path}/{key}", tensors) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_flatten(item, f"{path}/{index}", tensors) for index, item in enumerate(value)]
    return value


def _unflatten(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(value, dict):
        if "$tensor" in value:
            tensor = tensors[value["$tensor"]]
            last = value["format"] == "channels_last"
            return tensor.contiguous(memory_format=torch.channels_last) if last else tensor
        return {key: _unflatten(item, tensors) for key, item in value.items()}
    if isinstance(value, list):
        return [_unflatten(item, tensors) for item in value]
    return value


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
