"""A running mean of a network's weights, which answers better than the last ones do."""

import copy

import torch
from torch import Tensor, nn

from tame.types import State

EVERY = 5  # steps from one look at the weights to the next
TAIL = 8.0


class Average:
    """The mean of a network's weights over about the last ninth of its steps, however many.

    Nobody says when a segment ends, so a rate cannot fall towards that end; a mean over the last
    part of the way has the same effect at any time. The n-th look at the weights counts
    9 / (n + 8) (polynomial decay: Shamir and Zhang, 2013).

    >>> net = nn.Linear(1, 1, bias=False)
    >>> average = Average(net)
    >>> for value in (0.0, 1.0):
    ...     _ = net.weight.data.fill_(value)
    ...     average.add(net)
    >>> round(average.net.weight.item(), 3)
    0.9
    """

    def __init__(self, net: nn.Module) -> None:
        self.net = copy.deepcopy(net).eval()
        self.looks = 0

    @torch.no_grad()
    def add(self, net: nn.Module) -> None:
        """Take the weights of now into the mean; what does not count in fractions is copied."""
        self.looks += 1
        share = (TAIL + 1) / (self.looks + TAIL)
        pairs = list(zip(_tensors(self.net), _tensors(net), strict=True))
        real = [pair for pair in pairs if pair[0].is_floating_point()]
        torch._foreach_lerp_([mean for mean, _ in real], [now for _, now in real], share)
        for mean, now in pairs:
            if not mean.is_floating_point():
                mean.copy_(now)

    def state_dict(self) -> State:
        return {"looks": self.looks, "net": dict(self.net.state_dict())}

    def load_state_dict(self, state: State) -> None:
        self.net.load_state_dict(state["net"])
        self.looks = state["looks"]


def _tensors(net: nn.Module) -> list[Tensor]:
    return [*net.parameters(), *net.buffers()]
