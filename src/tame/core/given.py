"""What a learner is given when it is made: checked then, not at its first batch."""

import operator
from collections.abc import Mapping
from typing import Any, TypeVar

import torch

from tame.config import build
from tame.errors import ConfigError

S = TypeVar("S")


def as_settings(kind: type[S], given: S | Mapping[str, Any] | None) -> S:
    """Return settings: those given, the usual ones with what a table says, or the usual ones.

    >>> from tame import Settings
    >>> as_settings(Settings, {"detector": {"name": "cusum", "threshold": 30}}).detector.threshold
    30.0
    """
    if given is None:
        return kind()
    if isinstance(given, kind):
        return given
    if isinstance(given, Mapping):
        made: S = build(kind, given)
        return made
    raise ConfigError(f"settings are {kind.__name__}(...) or a table, not {given!r}")


def as_seed(given: Any) -> int:
    """Return a seed as a number."""
    try:
        seed = operator.index(given)
    except TypeError:
        seed = -1
    if seed < 0:
        raise ConfigError(f"a seed is a whole number, 0 or more, not {given!r}")
    return seed


def as_device(given: str | torch.device) -> torch.device:
    """Return a device that is there."""
    try:
        device = torch.device(given)
    except (RuntimeError, TypeError) as error:
        known = "cpu, cuda, or one GPU of several (cuda:1)"
        raise ConfigError(f"a device is {known}, not {given!r}") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f"device {given} asked for, but this torch sees no GPU")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(f"device {given} asked for; there are {torch.cuda.device_count()} GPUs")
    return device
