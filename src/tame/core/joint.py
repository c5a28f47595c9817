"""Deciding on expert and label together."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from tame.core.class_router import KnowsLabels
from tame.core.routed import RoutedModel

REACH = 12.0  # a log-probability so far below the best expert's is not looked at


class Opinion(NamedTuple):
    """What the router says of some samples: the score of each expert, and of labels if it can."""

    experts: Tensor
    pairs: Tensor | None


@dataclass(frozen=True)
class Joint:
    """Takes the best pair of expert and label, over the `among` likeliest experts of a sample.

    A pair scores log p(expert | x) plus a mix of what expert and selector say of the label: `trust`
    times the expert's log-probability, the rest the selector's. Where the selector knows nothing
    of labels the expert alone decides on them.
    """

    among: int = 3
    trust: float = 0.5

    def __post_init__(self) -> None:
        if self.among < 1 or not 0 < self.trust <= 1:
            raise ValueError("among is 1 or more, trust lies in (0, 1]")

    def decide(self, model: RoutedModel, raw: Tensor, ready: Tensor) -> Tensor:
        said = self._hear(model, raw, ready)
        best = ready.new_full((len(ready), len(model.labels)), float("-inf"))
        top = said.experts.topk(min(self.among, said.experts.shape[1]), 1)
        for scores, chosen in zip(top.values.T, top.indices.T, strict=True):
            rows = (scores > top.values[:, 0] - REACH).nonzero().squeeze(1)
            if not len(rows):
                break
            own = model.ask(ready[rows], chosen[rows])
            mixed = self._mix(model, said, own, (rows, chosen[rows]))
            best[rows] = torch.maximum(best[rows], scores[rows].unsqueeze(1) + mixed)
        return best.log_softmax(1)

    def _hear(self, model: RoutedModel, raw: Tensor, ready: Tensor) -> Opinion:
        router = model.router
        if isinstance(router, KnowsLabels):
            return Opinion(*router.opinions(raw, ready))
        return Opinion(router(raw, ready), None)

    def _mix(
        self, model: RoutedModel, said: Opinion, own: Tensor, asked: tuple[Tensor, Tensor]
    ) -> Tensor:
        """Return the log-probability of each label by expert and selector together."""
        router = model.router
        if said.pairs is None or self.trust == 1 or not isinstance(router, KnowsLabels):
            return own
        told = router.labels(said.pairs[asked[0]], asked[1], own.shape[1])
        return self.trust * own + (1 - self.trust) * torch.where(told.isnan(), own, told)
