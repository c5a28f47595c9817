"""Layers of experts that borrow: beside its own features, each sees those earlier experts lend."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Lent = tuple[Tensor, ...]  # one tensor a layer; none at all for the first expert


def beside(lent: Lent, layer: int, own: Tensor) -> Tensor:
    """Put an expert's own features of a layer behind those it borrows.

    >>> beside((torch.zeros(1, 3),), 0, torch.ones(1, 2)), beside((), 0, torch.ones(1, 2))
    (tensor([[0., 0., 0., 1., 1.]]), tensor([[1., 1.]]))
    """
    return torch.cat([lent[layer], own], 1) if lent else own


def widths(first: int, later: int, number: int) -> tuple[int, int]:
    """Return the width of an expert's layers and how many features it borrows in each.

    >>> [widths(64, 16, number) for number in range(3)]
    [(64, 0), (16, 64), (16, 80)]
    """
    return (first, 0) if number == 0 else (later, first + (number - 1) * later)


class Lateral(nn.Module):
    """Two hidden layers that see, beside their own, the hidden features earlier experts lend.

    No gradient reaches the lender.

    >>> one, two = Lateral(4, 3, 0, 2), Lateral(4, 5, 3, 2)
    >>> _, lent = one(torch.zeros(1, 4), ())
    >>> outputs, lent = two(torch.zeros(1, 4), lent)
    >>> outputs.shape, lent[0].shape
    (torch.Size([1, 2]), torch.Size([1, 8]))
    """

    def __init__(self, inputs: int, width: int, borrowed: int, outputs: int) -> None:
        super().__init__()
        self.one = nn.Linear(inputs, width)
        self.two = nn.Linear(borrowed + width, width)
        self.out = nn.Linear(borrowed + width, outputs)

    def forward(self, x: Tensor, lent: Lent) -> tuple[Tensor, Lent]:
        one = beside(lent, 0, F.relu(self.one(x)))
        two = beside(lent, 1, F.relu(self.two(one)))
        return self.out(two), (one.detach(), two.detach())
