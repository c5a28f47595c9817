"""Seeds for every draw, and a way to run foreign code without touching the global generators."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor


def derive(seed: int, *path: object) -> int:
    """Return the seed of one purpose, independent of every other purpose's.

    >>> derive(0, "expert", 1) != derive(0, "expert", 2)
    True
    """
    text = repr((seed, *path)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1


def numpy_generator(seed: int) -> np.random.Generator:
    """Return a generator whose state fits in JSON."""
    return np.random.Generator(np.random.PCG64(seed))


def torch_generator(seed: int) -> torch.Generator:
    """Return a seeded generator on the host: the same numbers whatever the device."""
    return torch.Generator().manual_seed(seed)


def restore_torch(generator: torch.Generator, state: Tensor) -> None:
    """Put a generator back; a state drawn on a GPU (an older file) leaves it as it was seeded."""
    if state.numel() == generator.get_state().numel():
        generator.set_state(state.cpu())


def numpy_state(generator: np.random.Generator) -> dict[str, Any]:
    """Return a generator's state; big integers become text."""
    state = dict(generator.bit_generator.state)
    state["state"] = {key: str(value) for key, value in state["state"].items()}
    return state


def restore_numpy(generator: np.random.Generator, state: dict[str, Any]) -> None:
    """Put a generator back into a state `numpy_state` returned."""
    inner = {key: int(value) for key, value in state["state"].items()}
    generator.bit_generator.state = {**state, "state": inner}


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Run code that draws from the global generators as if they were seeded, then put them back."""
    with torch.random.fork_rng(_cuda(device)):
        torch.manual_seed(seed)
        yield


def global_states(device: torch.device) -> list[Tensor]:
    """Return the states of the global generators: the host's, and that of a GPU."""
    return [torch.get_rng_state(), *(torch.cuda.get_rng_state(d) for d in _cuda(device))]


def restore_global(states: Sequence[Tensor], device: torch.device) -> None:
    """Put the global generators back into states `global_states` returned."""
    torch.set_rng_state(states[0])
    for place, state in zip(_cuda(device), states[1:], strict=True):
        torch.cuda.set_rng_state(state, place)


class PrivateDraws:
    """The global generators' states as one network sees them (dropout draws from those).

    >>> draws = PrivateDraws(0, torch.device("cpu"))
    >>> before = torch.get_rng_state()
    >>> with draws:
    ...     a = torch.rand(1)
    >>> with draws:
    ...     b = torch.rand(1)
    >>> bool(a != b), torch.equal(before, torch.get_rng_state())
    (True, True)
    """

    def __init__(self, seed: int, device: torch.device) -> None:
        self._device = device
        self._devices = _cuda(device)
        self._fork = torch.random.fork_rng(self._devices)
        with seeded(seed, device):
            self.states = global_states(device)

    def __enter__(self) -> None:
        self._fork = torch.random.fork_rng(self._devices)
        self._fork.__enter__()
        restore_global(self.states, self._device)

    def __exit__(self, *error: object) -> None:
        self.states = global_states(self._device)
        self._fork.__exit__(None, None, None)


def _cuda(device: torch.device) -> list[int]:
    if device.type != "cuda":
        return []
    return [device.index if device.index is not None else torch.cuda.current_device()]
