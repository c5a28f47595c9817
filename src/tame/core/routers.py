"""Routers: modules that give each sample (raw, and ready for the experts) a score an expert."""

import torch
from torch import Tensor, nn


class NearestMean(nn.Module):
    """Before a selector is trained: the expert of the nearest mean of remembered samples.

    There is one mean for each expert and label. The score of an expert is the negative squared
    distance to the nearest of its means.
    """

    means: Tensor
    owner: Tensor

    def __init__(self, means: Tensor, owner: Tensor, count: int) -> None:
        super().__init__()
        self.count = count
        self.register_buffer("means", means)
        self.register_buffer("owner", owner)

    def forward(self, raw: Tensor, ready: Tensor) -> Tensor:  # noqa: ARG002 (every router's form)
        near = -torch.cdist(ready.flatten(1), self.means).square()
        scores = near.new_full((len(near), self.count), float("-inf"))
        return scores.scatter_reduce(1, self.owner.expand_as(near), near, "amax")


class NetworkRouter(nn.Module):
    """A trained network scores the experts it knows; newcomers are told by nearest mean.

    `known[j]` is the position of the expert that output `j` stands for. Where an expert came after
    the network was trained, a sample nearest to a mean of that expert goes there, and every other
    sample goes where the network says. The network may have an input step of its own, to see the
    samples larger than the experts do.
    """

    known: Tensor

    def __init__(
        self,
        net: nn.Module,
        known: Tensor,
        count: int,
        late: NearestMean | None,
        step: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.net = net
        self.step = step
        self.count = count
        self.late = late
        self.register_buffer("known", known)

    def forward(self, raw: Tensor, ready: Tensor) -> Tensor:
        scores = ready.new_full((len(ready), self.count), float("-inf"))
        scores[:, self.known] = self.net(
            ready if self.step is None else self.step(raw)
        ).log_softmax(1)
        if self.late is not None:
            send_to_newcomers(scores, self.late(raw, ready), self.known)
        return scores


def send_to_newcomers(scores: Tensor, near: Tensor, known: Tensor) -> None:
    """Give samples whose nearest mean is that of an expert not known to that expert, in place."""
    nearest = near.argmax(1)
    newcomer = ~torch.isin(nearest, known)
    scores[newcomer] = float("-inf")
    scores[newcomer, nearest[newcomer]] = 0.0


class OneExpert(nn.Module):
    """There is only one expert to send samples to, or the caller trusts one."""

    def __init__(self, position: int, count: int) -> None:
        super().__init__()
        self.position = position
        self.count = count

    def forward(self, raw: Tensor, ready: Tensor) -> Tensor:  # noqa: ARG002 (every router's form)
        scores = ready.new_full((len(ready), self.count), float("-inf"))
        scores[:, self.position] = 0.0
        return scores
