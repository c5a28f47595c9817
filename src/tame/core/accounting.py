"""What a learner weighs, counted honestly."""

from collections.abc import Iterator
from functools import reduce
from typing import Any

from torch import Tensor

from tame.core.expert import Expert
from tame.core.inputs import InputStep
from tame.core.pool import ExpertPool
from tame.core.prune import count_nonzero
from tame.core.selector import Selector
from tame.core.shelf import Shelf
from tame.types import Sizes


def weigh(
    pool: ExpertPool | None,
    selector: Selector,
    aside: tuple[int, int, int] = (0, 0, 0),
    step: InputStep | None = None,
) -> Sizes:
    """Count the parameters and bytes of experts, selector and inputs, and of what is put `aside`.

    Model bytes are those of the networks that predict (with all that a packed expert needs);
    samples those of all reservoirs and of batches that wait to enter them; training state is what
    else is kept to go on learning (optimisers, masks, snapshots, a dense active network).
    """
    model, samples = selector.nbytes()
    total = Sizes(*selector.parameters(), model, samples, samples=selector.samples())
    total = add_sizes(total, weigh_inputs(step))
    total = add_sizes(
        total, Sizes(sample_bytes=aside[0], samples=aside[1], training_bytes=aside[2])
    )
    if pool is None:
        return total
    held, count = pool.samples()
    parts = [*map(_weigh_expert, pool.awake), *_weigh_shelf(pool.shelf)]
    return reduce(add_sizes, parts, add_sizes(total, Sizes(sample_bytes=held, samples=count)))


def weigh_inputs(step: InputStep | None) -> Sizes:
    """Count what stands before the networks, one for all of them: a trunk, a mean and a spread."""
    total = Sizes()
    if step is not None and step.trunk is not None:
        trunk = step.trunk
        dense = sum(p.numel() for p in trunk.parameters())
        total = Sizes(count_nonzero(trunk), dense, dense, tensor_bytes(dict(trunk.state_dict())))
    if step is not None and step.standard is not None:
        numbers = 2 * step.standard.mean.numel()
        gathered = tensor_bytes(step.standard.state())
        total = add_sizes(total, Sizes(numbers, numbers, numbers, gathered))
    return total


def _weigh_expert(expert: Expert) -> Sizes:
    dense = sum(p.numel() for p in expert.answers.parameters())
    nominal = round(dense * _share_kept(expert))
    model = tensor_bytes(expert.answers.state_dict())
    training = _training_bytes(expert)
    return Sizes(count_nonzero(expert.answers), nominal, dense, model, training_bytes=training)


def _weigh_shelf(shelf: Shelf) -> Iterator[Sizes]:
    for row in range(len(shelf)):
        nonzero, kept, packed = shelf.counts(row)
        dense, places = shelf.places(row), shelf.layout(row).maskable
        yield Sizes(nonzero, round(dense * (kept / places if places else 1.0)), dense, packed)


def add_sizes(one: Sizes, other: Sizes) -> Sizes:
    """Return the sizes of two parts together."""
    return Sizes(**{name: value + getattr(other, name) for name, value in vars(one).items()})


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
    network, kept = expert.network, expert.network.state_dict()
    both = {"net": network.net, "average": network.mature}
    answering = [name for name, net in both.items() if net is expert.answers][:1]
    return tensor_bytes({name: part for name, part in kept.items() if name not in answering})
