"""Routers that know labels too: scores of (expert, label) pairs, and a linear rule for experts."""

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from tame.core.routers import NearestMean, send_to_newcomers

ABSENT = -1


@runtime_checkable
class KnowsLabels(Protocol):
    """A router that also has an opinion on the label, given the expert."""

    def opinions(self, raw: Tensor, ready: Tensor) -> tuple[Tensor, Tensor]:
        """Return the score of each expert, and log-probabilities of pairs for `labels`."""
        ...

    def labels(self, pairs: Tensor, chosen: Tensor, count: int) -> Tensor:
        """Return (samples, `count`) log-probabilities of the labels, given the chosen experts.

        NaN marks labels it knows nothing about.
        """
        ...


class OnReady(nn.Module):
    """Scores samples by a network that is given what the experts take."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, raw: Tensor, ready: Tensor) -> Tensor:  # noqa: ARG002 (every scorer's form)
        scores: Tensor = self.net(ready)
        return scores


class OnRaw(nn.Module):
    """Scores samples by a network that is given them as they are."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, raw: Tensor, ready: Tensor) -> Tensor:  # noqa: ARG002 (every scorer's form)
        scores: Tensor = self.net(raw)
        return scores


class ClassRouter(nn.Module):
    """Scores pairs of expert and label; an expert's score is the sum over its labels.

    `scorer` is given samples as they are and as the experts take them. Its output `j` stands for
    the expert at position `owner[j]` and the label of slot `slot[j]`.
    Experts that came after the scorer was made are told by nearest mean.
    """

    owner: Tensor
    slot: Tensor

    def __init__(
        self,
        scorer: nn.Module,
        pairs: tuple[Tensor, Tensor],
        count: int,
        late: NearestMean | None,
    ) -> None:
        super().__init__()
        self.scorer = scorer
        self.count = count
        self.late = late
        self.register_buffer("owner", pairs[0])
        self.register_buffer("slot", pairs[1])

    def forward(self, raw: Tensor, ready: Tensor) -> Tensor:
        return self.opinions(raw, ready)[0]

    def opinions(self, raw: Tensor, ready: Tensor) -> tuple[Tensor, Tensor]:
        """Return the score of each expert, and log-probabilities of pairs for `labels`."""
        pairs = self.scorer(raw, ready).log_softmax(1)
        scores = pairs.new_zeros(len(pairs), self.count).index_add(1, self.owner, pairs.exp()).log()
        if self.late is not None:
            send_to_newcomers(scores, self.late(raw, ready), self.owner)
        return scores, pairs

    def labels(self, pairs: Tensor, chosen: Tensor, count: int) -> Tensor:
        """Return log-probabilities of the labels given the chosen experts, NaN where unknown."""
        width = max(count, int(self.slot.max()) + 1)
        place = self.slot.new_full((self.count, width), ABSENT)
        place[self.owner, self.slot] = torch.arange(len(self.slot), device=place.device)
        found = place[chosen, :count]
        known = found != ABSENT
        picked = pairs.gather(1, found.clamp(min=0)).masked_fill(~known, float("-inf"))
        return picked.log_softmax(1).masked_fill(~known, float("nan"))


@torch.no_grad()
def linear_rule(flat: Tensor, target: Tensor, count: int, sparsity: float) -> nn.Linear:
    """Return the rule of normal distributions with these samples' means and one diagonal spread.

    What all have in common decides nothing and is left out; of the rest, the `sparsity` that moves
    the scores least is zeroed.

    >>> rule = linear_rule(torch.tensor([[0.0, 1.0], [2.0, 1.0]]), torch.tensor([0, 1]), 2, 0.0)
    >>> rule(torch.tensor([[0.1, 5.0], [1.9, 5.0]])).argmax(1)
    tensor([0, 1])
    """
    flat = flat.double()
    sizes = torch.bincount(target, minlength=count).clamp(min=1).unsqueeze(1)
    means = flat.new_zeros(count, flat.shape[1]).index_add_(0, target, flat) / sizes
    spread = (flat - means[target]).square().mean(0)
    spread = spread + 0.1 * spread.mean() + torch.finfo(torch.float32).eps
    middle = means.mean(0)
    away = means - middle
    weights = away / spread
    if sparsity > 0:
        moved = (weights * spread.sqrt()).abs().flatten()
        least = moved.argsort(stable=True)[: int(sparsity * len(moved))]
        weights.view(-1)[least] = 0.0
    offset = -0.5 * (weights * (away + 2 * middle)).sum(1)
    rule = open_linear(flat.shape[1], count).to(flat.device)
    rule.weight.copy_(weights)
    rule.bias.copy_(offset)
    return rule


def open_linear(inputs: int, outputs: int) -> nn.Linear:
    """Return a linear layer whose weights are still to be set: none are drawn."""
    made: nn.Linear = nn.utils.skip_init(nn.Linear, inputs, outputs)
    return made
