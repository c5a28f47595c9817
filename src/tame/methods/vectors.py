"""The parameters of a network, or their gradients, as one long vector."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

Shapes = list[torch.Size]


def shapes(net: nn.Module) -> Shapes:
    """Return the shapes of all parameters, in their order."""
    return [parameter.shape for parameter in net.parameters()]


def weights(net: nn.Module) -> Tensor:
    """Return a copy of all parameters as one vector."""
    return _joined(parameter.detach() for parameter in net.parameters())


def gradients(net: nn.Module) -> Tensor:
    """Return a copy of all gradients as one vector, zero where there is none."""
    return _joined(
        torch.zeros_like(p) if p.grad is None else p.grad.detach() for p in net.parameters()
    )


@torch.no_grad()
def add_to_gradients(net: nn.Module, vector: Tensor) -> None:
    """Add a vector to the gradients in place; what has no gradient gets one."""
    for parameter, piece in zip(net.parameters(), pieces(vector, shapes(net)), strict=True):
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        parameter.grad.add_(piece)


def pieces(vector: Tensor, sizes: Sequence[torch.Size]) -> list[Tensor]:
    """Cut a vector into tensors of these shapes."""
    parts = vector.split([size.numel() for size in sizes])
    return [part.view(size) for part, size in zip(parts, sizes, strict=True)]


def spread(vector: Tensor, before: Shapes, wide: Tensor, after: Shapes) -> Tensor:
    """Return a copy of `wide` with each piece of a vector in the leading corner of its namesake.

    >>> two, four = [torch.Size([2])], [torch.Size([4])]
    >>> spread(torch.ones(2), two, torch.zeros(4), four)
    tensor([1., 1., 0., 0.])
    """
    found = wide.clone()
    for small, large in zip(pieces(vector, before), pieces(found, after), strict=True):
        large[tuple(slice(size) for size in small.shape)] = small
    return found


def normalised(vector: Tensor) -> Tensor:
    """Return a vector brought to [0, 1] by its least and largest entry; zero if it is constant."""
    least, largest = vector.min(), vector.max()
    return (vector - least) / (largest - least).clamp(min=torch.finfo(vector.dtype).tiny)


def _joined(tensors: Iterable[Tensor]) -> Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in tensors])
