"""Which tensors of a network and its optimiser answer to which of another of the same form."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from tame.engine.eager import EagerStep


class Tenant(Protocol):
    """What a network must show to be stepped on the bench."""

    net: nn.Module
    optimiser: torch.optim.Optimizer
    masks: dict[str, Tensor]


@dataclass(frozen=True)
class Place:
    """Where a tensor of a network is kept, to be read and replaced."""

    read: Callable[[], Tensor]
    write: Callable[[Tensor], None]


def pairs(step: EagerStep, tenant: Tenant) -> list[tuple[Tensor, Place]]:
    """Return each tensor of the bench with the place of its counterpart in the tenant."""
    found = []
    with torch.no_grad():
        homes = list(step.net.parameters())
        guests = list(tenant.net.parameters())
        for home, guest in zip(homes, guests, strict=True):
            found.append((home.data, _parameter(guest)))
            for key, value in step.optimiser.state[home].items():
                found.append((value, _state(tenant.optimiser.state[guest], key, value)))
        modules = zip(step.net.modules(), tenant.net.modules(), strict=True)
        for home_module, guest_module in modules:
            for name, buffer in home_module._buffers.items():  # noqa: SLF001
                if buffer is not None:
                    found.append((buffer, _entry(guest_module._buffers, name)))  # noqa: SLF001
    return found


def _parameter(parameter: nn.Parameter) -> Place:
    def write(value: Tensor) -> None:
        parameter.data = value

    return Place(lambda: parameter.data, write)


def _entry(table: Any, key: str) -> Place:
    def write(value: Tensor) -> None:
        table[key] = value

    return Place(lambda: table[key], write)


def _state(table: dict[str, Tensor], key: str, like: Tensor) -> Place:
    def read() -> Tensor:
        kept = table.get(key)
        return torch.zeros_like(like) if kept is None else kept

    def write(value: Tensor) -> None:
        table[key] = value

    return Place(read, write)
