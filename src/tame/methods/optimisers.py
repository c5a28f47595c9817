"""An optimiser's memory as plain data, put back by value, or widened with its parameters."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from tame.types import State


def adam(parameters: Iterable[nn.Parameter], rate: float) -> torch.optim.Optimizer:
    """Return Adam as the methods' papers use it: no weight decay, torch's default moments."""
    own = list(parameters)
    return torch.optim.Adam(own, lr=rate, fused=True, capturable=bool(own) and own[0].is_cuda)


def remembered(optimiser: torch.optim.Optimizer) -> State:
    """Return what an optimiser remembers of each parameter, by its place."""
    kept = optimiser.state_dict()["state"]
    return {str(place): dict(entry) for place, entry in kept.items()}


def remind(optimiser: torch.optim.Optimizer, state: State) -> None:
    """Give an optimiser the memory of another, by value; what grew since starts from nothing.

    >>> narrow, wide = (nn.Linear(1, size, bias=False) for size in (2, 3))
    >>> old, new = adam(narrow.parameters(), 0.1), adam(wide.parameters(), 0.1)
    >>> narrow(torch.ones(1, 1)).sum().backward()
    >>> old.step()
    >>> remind(new, remembered(old))
    >>> new.state_dict()["state"][0]["exp_avg"].flatten()
    tensor([0.1000, 0.1000, 0.0000])
    """
    parameters = [p for group in optimiser.param_groups for p in group["params"]]
    own = {
        int(place): {key: _fitted(value, parameters[int(place)]) for key, value in entry.items()}
        for place, entry in state.items()
    }
    groups = optimiser.state_dict()["param_groups"]
    optimiser.load_state_dict({"state": own, "param_groups": groups})


def _fitted(value: Tensor, parameter: Tensor) -> Tensor:
    if not value.ndim or value.shape == parameter.shape:
        return value.clone()
    wide = torch.zeros_like(parameter, requires_grad=False)
    wide[tuple(slice(size) for size in value.shape)] = value
    return wide
