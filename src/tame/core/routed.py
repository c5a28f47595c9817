"""The final model: input step, router and experts as one plain module."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from tame.core.inputs import InputStep
from tame.errors import InputError

CHUNK = 1024


class Decision(Protocol):
    """Turns routing and experts into one score a label."""

    def decide(self, model: "RoutedModel", raw: Tensor, ready: Tensor) -> Tensor:
        """Return (samples, labels) scores, minus infinity where nothing speaks for a label."""
        ...


@dataclass(frozen=True)
class HardRouting:
    """The paper's: each sample goes to its most likely expert, whose best label is taken."""

    def decide(self, model: "RoutedModel", raw: Tensor, ready: Tensor) -> Tensor:
        return model.ask(ready, model.router(raw, ready).argmax(1))


class RoutedModel(nn.Module):
    """Experts behind a router; a batch is grouped by expert, one forward each.

    Called on raw samples it returns (samples, labels) log-probabilities; `predict` returns labels.
    `owners[i]` is the id of `experts[i]`, `seen[i]` the slots it has been taught, `labels[j]` the
    label of slot `j`.
    """

    owners: Tensor
    seen: Tensor
    labels: Tensor

    def __init__(
        self,
        step: InputStep,
        router: nn.Module,
        experts: Sequence[nn.Module],
        owners: Sequence[int],
        tables: tuple[Tensor, Tensor],
        decision: Decision,
    ) -> None:
        super().__init__()
        self.step = step
        self.router = router
        self.experts = nn.ModuleList(experts)
        self.decision = decision
        self.register_buffer("owners", torch.tensor(list(owners)))
        self.register_buffer("seen", tables[0])
        self.register_buffer("labels", tables[1])

    def forward(self, x: Tensor) -> Tensor:
        return self.decision.decide(self, x, self.step(x))

    def ask(self, ready: Tensor, chosen: Tensor) -> Tensor:
        """Return the scores of the chosen expert (by position) for each sample."""
        scores = ready.new_full((len(ready), len(self.labels)), float("-inf"))
        for position in chosen.unique().tolist():
            rows = (chosen == position).nonzero().squeeze(1)
            scores[rows] = self.consult(position, ready[rows])
        return scores

    def consult(self, position: int, ready: Tensor) -> Tensor:
        """Return one expert's log-probabilities of the labels it was taught."""
        outputs: Tensor = self.experts[position](ready)
        scores = ready.new_full((len(ready), len(self.labels)), float("-inf"))
        width = min(outputs.shape[1], len(self.labels))
        known = self.seen[position, :width]
        scores[:, :width] = outputs[:, :width].masked_fill(~known, float("-inf"))
        return scores.log_softmax(1)

    @torch.no_grad()
    def route(self, x: Tensor) -> Tensor:
        """Return the id of the expert each raw sample would be sent to."""
        self.eval()
        chosen = [self.router(part, self.step(part)).argmax(1) for part in x.split(CHUNK)]
        return self.owners[torch.cat(chosen)] if chosen else self.owners[:0]

    @torch.no_grad()
    def predict(self, x: Tensor, expert: int | None = None) -> Tensor:
        """Return the label of each raw sample, decided by all or by the expert of that id."""
        self.eval()
        owners = self.owners.tolist()
        if expert is not None and expert not in owners:
            raise InputError(f"there is no expert {expert}; there are {owners}")
        position = None if expert is None else owners.index(expert)
        found = [self._answer(part, position).argmax(1) for part in x.split(CHUNK)]
        return self.labels[torch.cat(found)] if found else self.labels[:0]

    def _answer(self, x: Tensor, position: int | None) -> Tensor:
        return self(x) if position is None else self.consult(position, self.step(x))
