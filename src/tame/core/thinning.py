"""Which weights of a network stay when it has to get by with fewer."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from tame.core.prune import PRUNABLE

LEAST = 0.1


def weights_of(net: nn.Module) -> dict[str, Tensor]:
    """Return the weights that may be pruned, by name; biases and norms are left alone."""
    return {
        f"{name}.weight".removeprefix("."): module.weight.detach()
        for name, module in net.named_modules()
        if isinstance(module, PRUNABLE)
    }


def room_for(net: nn.Module, nonzero: int) -> int:
    """Return how many weights are left where so many parameters may be other than zero.

    Biases and norms are never pruned, so they come first.

    >>> room_for(nn.Linear(4, 3), 10)
    7
    """
    weights = weights_of(net)
    total = sum(weight.numel() for weight in weights.values())
    others = sum(p.numel() for p in net.parameters()) - total
    return min(total, max(len(weights), nonzero - others))


def count_kept(net: nn.Module, masks: Mapping[str, Tensor]) -> int:
    """Return how many prunable weights lie inside the masks; without a mask, all do."""
    weights = weights_of(net).items()
    return sum(int(masks[n].sum()) if n in masks else w.numel() for n, w in weights)


@torch.no_grad()
def thinned(net: nn.Module, masks: Mapping[str, Tensor], keep: int) -> dict[str, Tensor]:
    """Return masks inside these that keep the `keep` largest weights of the whole network.

    No layer dies: each keeps a tenth of an equal share, whatever the others weigh.

    >>> net = nn.Sequential(nn.Linear(2, 2, bias=False))
    >>> _ = net[0].weight.data.copy_(torch.tensor([[0.1, 2.0], [-3.0, 0.2]]))
    >>> thinned(net, {}, 2)
    {'0.weight': tensor([[False,  True],
            [ True, False]])}
    """
    weights = weights_of(net)
    if not weights:
        return {}
    least = math.ceil(LEAST * keep / len(weights))
    ranks = [_ranked(weight, masks.get(name), least) for name, weight in weights.items()]
    chosen = _largest(torch.cat(ranks), keep)
    parts = chosen.split([weight.numel() for weight in weights.values()])
    found = zip(weights.items(), parts, strict=True)
    return {name: part.view(weight.shape) for (name, weight), part in found}


def _ranked(weight: Tensor, mask: Tensor | None, least: int) -> Tensor:
    """Return the size of each weight; the few that a layer always keeps are infinite."""
    size = weight.abs().flatten()
    if mask is not None:
        size = size.masked_fill(~mask.flatten(), -1.0)
    first = size.topk(min(least, len(size))).indices
    kept = size[first] >= 0
    size[first] = torch.where(kept, float("inf"), size[first])
    return size


def _largest(sizes: Tensor, keep: int) -> Tensor:
    chosen = torch.zeros_like(sizes, dtype=torch.bool)
    chosen[sizes.topk(min(keep, len(sizes))).indices] = True
    return chosen & (sizes >= 0)


@torch.no_grad()
def tighten(masks: Mapping[str, Tensor], new: Mapping[str, Tensor]) -> None:
    """Write new masks into the places of old ones, where recorded work reads them."""
    for name, mask in new.items():
        masks[name].copy_(mask)


def open_masks(net: nn.Module, masks: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return masks of their own memory, those given or, where there are none, of all weights."""
    return {
        name: masks[name].clone() if name in masks else torch.ones_like(weight, dtype=torch.bool)
        for name, weight in weights_of(net).items()
    }


def falling(begin: int, end: int, share: float) -> int:
    """Return how many of `begin` weights are left when this share of the way to `end` is to go.

    >>> falling(100, 20, 1.0), falling(100, 20, 0.5), falling(100, 20, 0.0)
    (100, 30, 20)
    """
    return end + math.floor(max(0, begin - end) * share**3)
