"""Tensors that grow, with what they held in their leading corner."""

import torch
from torch import Tensor, nn


@torch.no_grad()
def copy_into(net: nn.Module, old: nn.Module) -> None:
    """Copy every tensor of `old` into the leading corner of its namesake in `net`."""
    for name, value in net.state_dict().items():
        before = old.state_dict()[name]
        value[tuple(slice(size) for size in before.shape)].copy_(before)


def enlarge(value: Tensor, like: Tensor, fill: int) -> Tensor:
    """Return a tensor as large as another one, filled up with a number."""
    grown = torch.full_like(like, fill, dtype=value.dtype, requires_grad=False)
    grown[tuple(slice(size) for size in value.shape)] = value
    return grown
