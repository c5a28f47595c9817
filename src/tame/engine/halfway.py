"""Where in its epochs a training stands: noted, and taken up again."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from tame.engine.journal import Note
from tame.engine.randomness import global_states, restore_global
from tame.types import State


class Trained(Protocol):
    """A network in training, the masks it keeps inside of, and what draws its samples' order."""

    @property
    def net(self) -> nn.Module: ...
    @property
    def masks(self) -> Mapping[str, Tensor]: ...
    @property
    def generator(self) -> torch.Generator: ...


class Halfway:
    """The epoch and the round of batches that several networks have come to together.

    Made of the note of a training that was broken off, it brings everything back to where that
    was. The order of an epoch is drawn again, from where its generator stood before.
    """

    def __init__(
        self,
        note: Note,
        jobs: Sequence[Trained],
        optimisers: Sequence[torch.optim.Optimizer],
        device: torch.device,
    ) -> None:
        self.epoch = self.round = 0
        self._note = note
        self._jobs = jobs
        self._optimisers = optimisers
        self._device = device
        self._orders: list[Tensor] = []
        if note.found:
            self._take_up(note.found)

    def begin(self, epoch: int) -> None:
        """Remember where the generators stand before an epoch is drawn."""
        if epoch != self.epoch:
            self.epoch, self.round = epoch, 0
        self._orders = [job.generator.get_state() for job in self._jobs]

    def reach(self, number: int) -> None:
        """Come to a round of batches that has not been begun."""
        self.round = number
        self._note.reached(self._state)

    def _state(self) -> State:
        return {
            **ended(self._jobs),
            "generators": self._orders,
            "optimisers": [_entries(optimiser) for optimiser in self._optimisers],
            "draws": global_states(self._device),
            "place": [self.epoch, self.round],
        }

    @torch.no_grad()
    def _take_up(self, found: State) -> None:
        put_back(self._jobs, found)
        for optimiser, kept in zip(self._optimisers, found["optimisers"], strict=True):
            for weight, entries in zip(_weights(optimiser), kept, strict=True):
                _resume(optimiser.state[weight], entries, weight.device)
        restore_global(found["draws"], self._device)
        self.epoch, self.round = found["place"]


def ended(jobs: Sequence[Trained]) -> State:
    """Return what trainings have come to, in memory of the host."""
    return {
        "nets": [_on_host(job.net.state_dict()) for job in jobs],
        "masks": [_on_host(job.masks) for job in jobs],
        "generators": [job.generator.get_state() for job in jobs],
    }


@torch.no_grad()
def put_back(jobs: Sequence[Trained], found: State) -> None:
    """Bring trainings to what `ended` has returned, every tensor in its place."""
    for place, job in enumerate(jobs):
        job.net.load_state_dict(found["nets"][place])
        for name, mask in job.masks.items():
            mask.copy_(found["masks"][place][name])
        job.generator.set_state(found["generators"][place])


def _resume(state: dict[str, Any], entries: Mapping[str, Any], device: torch.device) -> None:
    for key, value in entries.items():
        if isinstance(state.get(key), Tensor):
            state[key].copy_(value)  # a recorded step reads it where it is
        else:
            state[key] = value.to(device, copy=True) if isinstance(value, Tensor) else value


def _entries(optimiser: torch.optim.Optimizer) -> list[dict[str, Any]]:
    return [_on_host(optimiser.state[weight]) for weight in _weights(optimiser)]


def _weights(optimiser: torch.optim.Optimizer) -> list[Tensor]:
    return [weight for group in optimiser.param_groups for weight in group["params"]]


def _on_host(tensors: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value.detach().to("cpu", copy=True) if isinstance(value, Tensor) else value
        for name, value in tensors.items()
    }
