"""How a check fails: an error that says what was violated, and where two states differ."""

import copy
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tame.errors import TameError
from tame.types import State


class CheckFailed(TameError, AssertionError):  # noqa: N818 (a failed check, not an error of ours)
    """A part of the contract was violated."""


def require(condition: object, message: str) -> None:
    """Raise `CheckFailed` unless the condition holds.

    >>> require(1 + 1 == 3, "one and one make three")
    Traceback (most recent call last):
    ...
    tame.checks.failure.CheckFailed: one and one make three
    """
    if not condition:
        raise CheckFailed(message)


def snapshot(state: State) -> State:
    """Return a copy that later training cannot reach."""
    return copy.deepcopy(state)


def difference(a: Any, b: Any, path: str = "state") -> str | None:
    """Return where two nested states first differ, bit for bit, or None.

    >>> difference({"a": [1.0, 2.0]}, {"a": [1.0, 2.5]})
    'state.a.1'
    >>> difference({"a": float("nan")}, {"a": float("nan")})
    """
    if type(a) is not type(b):
        return path
    if isinstance(a, Tensor):
        return None if _same_tensor(a, b) else path
    if isinstance(a, Mapping | list | tuple):
        return _difference_inside(_items(a), _items(b), path)
    return None if repr(a) == repr(b) else path


def _difference_inside(a: Mapping[Any, Any], b: Mapping[Any, Any], path: str) -> str | None:
    if list(a) != list(b):
        return path
    places = (difference(a[key], b[key], f"{path}.{key}") for key in a)
    return next((place for place in places if place is not None), None)


def _items(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else dict(enumerate(value))


def require_same(a: Any, b: Any, message: str) -> None:
    """Raise `CheckFailed`, naming the place, unless two states agree bit for bit."""
    where = difference(a, b)
    require(where is None, f"{message} (they differ at {where})")


def size(state: Any) -> int:
    """Return the bytes of a state: its tensors as they are, every other value as eight."""
    if isinstance(state, Tensor):
        return state.nbytes
    if isinstance(state, Mapping):
        return sum(size(value) for value in state.values())
    if isinstance(state, list | tuple):
        return sum(size(value) for value in state)
    return 8


@contextmanager
def generators_untouched(what: str) -> Iterator[None]:
    """Fail if the body draws from, or seeds, a global generator."""
    before = _generators()
    yield
    for name, state in _generators().items():
        require(repr(state) == repr(before[name]), f"{what} touched the global {name} generator")


def _generators() -> dict[str, Any]:
    return {
        "torch": torch.get_rng_state().tolist(),
        "numpy": [np.asarray(part).tolist() for part in np.random.get_state()],  # noqa: NPY002
        "Python": random.getstate(),
    }


def _same_tensor(a: Tensor, b: Tensor) -> bool:
    alike = a.dtype == b.dtype and a.shape == b.shape and _layout(a) == _layout(b)
    return alike and torch.equal(_bits(a), _bits(b))


def _layout(tensor: Tensor) -> list[int]:
    """Return the strides that matter: those of dimensions with more than one entry."""
    pairs = zip(tensor.stride(), tensor.shape, strict=True)
    return [stride for stride, count in pairs if count > 1]


def _bits(tensor: Tensor) -> Tensor:
    flat = tensor.detach().cpu().reshape(-1).clone(memory_format=torch.contiguous_format)
    return flat.view(torch.uint8)
