"""Plain state as a form, which many states share, and the bytes of its numbers.

A detector's state is two hundred numbers among a few names. Written as JSON they take twenty
characters each, and the names come again with every expert.
"""

import json
from typing import Any

import numpy as np
import torch
from torch import Tensor

NUMBERS = {"f": "<f8", "i": "<i8", "w": "<i4"}
WIDTH = {"f": 8, "i": 8, "w": 4}
LIMITS = {"w": 2**31, "i": 2**63}


def encode(state: Any) -> tuple[str, bytes]:
    """Return a state's form as text, and its numbers.

    >>> encode({"losses": [0.5, 1.0], "seen": 3})[0]
    '{"losses":["f",2],"seen":"w"}'
    """
    pieces: list[bytes] = []
    form = _describe(state, pieces)
    return json.dumps(form, separators=(",", ":")), b"".join(pieces)


def decode(form: str, data: bytes) -> Any:
    """Return the state that `encode` took apart.

    >>> decode(*encode({"a": [1, 2, 3], "b": [None, "text", 0.5]}))
    {'a': [1, 2, 3], 'b': [None, 'text', 0.5]}
    """
    state, end = _restore(json.loads(form), data, 0)
    if end != len(data):
        raise ValueError(f"{len(data)} bytes of numbers where the form takes {end}")
    return state


def _describe(value: Any, pieces: list[bytes]) -> Any:
    if isinstance(value, dict):
        return {str(key): _describe(item, pieces) for key, item in value.items()}
    if isinstance(value, Tensor):
        pieces.append(
            value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()
        )
        return ["t", str(value.dtype).removeprefix("torch."), list(value.shape)]
    if isinstance(value, list | tuple):
        return _describe_list(list(value), pieces)
    kind = _kind(value)
    if not kind:
        return ["=", value]
    pieces.append(np.array(value, NUMBERS[kind]).tobytes())
    return kind


def _describe_list(values: list[Any], pieces: list[bytes]) -> list[Any]:
    kinds = {_kind(value) for value in values} or {"w"}
    kinds = {"i"} if kinds == {"w", "i"} else kinds
    kind = kinds.pop() if len(kinds) == 1 else ""
    if not kind:
        return ["l", [_describe(value, pieces) for value in values]]
    pieces.append(np.array(values, NUMBERS[kind]).tobytes())
    return [kind, len(values)]


def _kind(value: Any) -> str:
    """Return the letter of a number that fits in 64 bits; nothing for anything else."""
    if isinstance(value, float):
        return "f"
    if isinstance(value, bool) or not isinstance(value, int):
        return ""
    fits = (kind for kind, limit in LIMITS.items() if -limit <= value < limit)
    return next(fits, "")


def _restore(form: Any, data: bytes, begin: int) -> tuple[Any, int]:
    if isinstance(form, dict):
        found = {}
        for key, part in form.items():
            found[key], begin = _restore(part, data, begin)
        return found, begin
    if isinstance(form, str):
        return _read(form, data, begin, 1)[0], begin + WIDTH[form]
    return _restore_list(form, data, begin)


def _restore_list(form: list[Any], data: bytes, begin: int) -> tuple[Any, int]:
    kind, about = form[:2]
    if kind == "=":
        return about, begin
    if kind == "t":
        return _read_tensor(about, form[2], data, begin)
    if kind == "l":
        found = []
        for part in about:
            value, begin = _restore(part, data, begin)
            found.append(value)
        return found, begin
    return _read(kind, data, begin, about), begin + about * WIDTH[kind]


def _read(kind: str, data: bytes, begin: int, count: int) -> list[Any]:
    values: list[Any] = np.frombuffer(data, NUMBERS[kind], count, begin).tolist()
    return values


def _read_tensor(name: str, shape: list[int], data: bytes, begin: int) -> tuple[Tensor, int]:
    dtype: torch.dtype = getattr(torch, name)
    empty = torch.empty(shape, dtype=dtype)
    end = begin + empty.nbytes
    if end == begin:
        return empty, end
    bytes_ = torch.from_numpy(np.frombuffer(data[begin:end], np.uint8).copy())
    return bytes_.view(dtype).view(shape), end
