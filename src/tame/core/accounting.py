"""What a learner weighs, counted honestly."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from tame.core.expert import Expert
from tame.core.prune import count_nonzero
from tame.core.selector import Selector
from tame.types import Sizes


def weigh(experts: Sequence[Expert], selector: Selector) -> Sizes:
    """Count the parameters and bytes of experts and selector.

    Model bytes are those of the networks that predict; samples those of all reservoirs; training
    state is what else is kept to go on learning (optimisers, masks, a dense active network).
    """
    nonzero, nominal, dense = selector.parameters()
    model, sample_bytes = selector.nbytes()
    training = 0
    for expert in experts:
        size = sum(p.numel() for p in expert.answers.parameters())
        dense += size
        nominal += round(size * _share_kept(expert))
        nonzero += count_nonzero(expert.answers)
        model += tensor_bytes(expert.answers.state_dict())
        sample_bytes += expert.memory.nbytes()
        training += _training_bytes(expert)
    samples = selector.samples() + sum(len(expert.memory) for expert in experts)
    return Sizes(nonzero, nominal, dense, model, sample_bytes, training, samples)


def tensor_bytes(state: Any) -> int:
    """Return the bytes of all tensors in nested dictionaries and lists."""
    if isinstance(state, Tensor):
        return state.nbytes
    if isinstance(state, dict):
        return sum(tensor_bytes(value) for value in state.values())
    if isinstance(state, list | tuple):
        return sum(tensor_bytes(value) for value in state)
    return 0


def _share_kept(expert: Expert) -> float:
    masks = expert.network.masks
    if expert.compact is not None and expert.answers is expert.compact.net:
        masks = expert.compact.masks
    total = sum(mask.numel() for mask in masks.values())
    return sum(int(mask.sum()) for mask in masks.values()) / total if total else 1.0


def _training_bytes(expert: Expert) -> int:
    kept = expert.network.state_dict()
    dense = kept.pop("net")
    spare = 0 if expert.answers is expert.network.net else tensor_bytes(dense)
    return tensor_bytes(kept) + spare
