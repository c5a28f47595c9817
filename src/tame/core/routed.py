"""The final model: input step, router and experts as one plain module."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from tame.core.grouping import Group, Limits, grouped
from tame.core.inputs import InputStep
from tame.core.shelf import Shelf
from tame.engine.sending import sent
from tame.engine.sizes import filled
from tame.errors import InputError

CHUNK = 256
CHUNK_ON_GPU = 2**23  # numbers, not samples
MANY_ON_GPU = 256


@runtime_checkable
class Decision(Protocol):
    """Turns routing and experts into one score a label."""

    def decide(self, model: "RoutedModel", raw: Tensor, ready: Tensor) -> Tensor:
        """Return (samples, labels) scores, minus infinity where nothing speaks for a label."""
        ...


@runtime_checkable
class Choice(Protocol):
    """A decision that asks one expert a sample: all samples can be grouped by it."""

    def choose(self, model: "RoutedModel", raw: Tensor, ready: Tensor) -> Tensor:
        """Return the position of the expert that decides on each sample."""
        ...


@dataclass(frozen=True)
class HardRouting:
    """The paper's: each sample goes to its most likely expert, whose best label is taken."""

    def decide(self, model: "RoutedModel", raw: Tensor, ready: Tensor) -> Tensor:
        return model.ask(ready, self.choose(model, raw, ready))

    def choose(self, model: "RoutedModel", raw: Tensor, ready: Tensor) -> Tensor:
        chosen: Tensor = model.router(raw, ready).argmax(1)
        return chosen


class RoutedModel(nn.Module):
    """Experts behind a router; samples are grouped by expert, one forward each.

    Called on raw samples it returns (samples, labels) log-probabilities; `predict` returns labels.
    `owners[i]` is the id of the expert at position `i`, `seen[i]` the slots it has been taught,
    `labels[j]` the label of slot `j`. `experts` are networks in the order of their owners; a
    `Shelf` at their end answers for the owners it holds, small experts many in one call.
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
        self._homes = _homes(owners, experts)
        self.register_buffer("owners", torch.tensor(list(owners)))
        self.register_buffer("seen", tables[0])
        self.register_buffer("labels", tables[1])

    def forward(self, x: Tensor) -> Tensor:
        return self.decision.decide(self, x, self.step(x))

    def ask(self, ready: Tensor, chosen: Tensor) -> Tensor:
        """Return the scores of the chosen expert (by position) for each sample."""
        scores = ready.new_full((len(ready), len(self.labels)), float("-inf"))
        for group in self._grouped(chosen, self._limits(ready)._replace(chunk=len(ready) or 1)):
            rows = group.rows.flatten()
            scores[rows] = self._consult(group, ready[rows]).flatten(0, 1)
        return scores

    def consult(self, position: int, ready: Tensor) -> Tensor:
        """Return one expert's log-probabilities of the labels it was taught."""
        return self._score(self._outputs(position, ready), self.seen[position])

    @torch.no_grad()
    def route(self, x: Tensor) -> Tensor:
        """Return the id of the expert each raw sample would be sent to."""
        self.eval()
        chosen = [self.router(part, self.step(part)).argmax(1) for part in self._parts(x)]
        return self.owners[torch.cat(chosen)[: len(x)]] if chosen else self.owners[:0]

    @torch.no_grad()
    def predict(self, x: Tensor, expert: int | None = None) -> Tensor:
        """Return the label of each raw sample, decided by all or by the expert of that id."""
        self.eval()
        if not len(x):
            return self.labels[:0]
        if expert is not None:
            position = self._position(expert)
            found = [self.consult(position, self.step(p)).argmax(1) for p in self._parts(x)]
        elif isinstance(self.decision, Choice):
            found = [self._predict_grouped(x, self.decision)]
        else:
            found = [self(part).argmax(1) for part in self._parts(x)]
        return self.labels[torch.cat(found)[: len(x)]]

    def _predict_grouped(self, x: Tensor, decision: Choice) -> Tensor:
        """Route everything first, then let each expert answer all its samples."""
        parts = [decision.choose(self, part, self.step(part)) for part in self._parts(x)]
        chosen = torch.cat(parts)[: len(x)]
        found = torch.empty_like(chosen)
        for group in self._grouped(chosen, self._limits(x)):
            rows = group.rows.flatten()
            scores = self._consult(group, self.step(x[rows]))
            found[rows] = scores.argmax(2).flatten()
        return found

    def _position(self, expert: int) -> int:
        owners = self.owners.tolist()
        if expert not in owners:
            raise InputError(f"there is no expert {expert}; there are {owners}")
        return int(owners.index(expert))

    def _limits(self, x: Tensor) -> Limits:
        if not x.is_cuda:
            return Limits(CHUNK)
        chunk = max(4 * CHUNK, CHUNK_ON_GPU // max(1, prod(self.step.output_shape)))
        return Limits(chunk, MANY_ON_GPU, 2 * chunk, even=True)

    def _parts(self, x: Tensor) -> Iterator[Tensor]:
        """Yield samples in chunks; on a GPU the last sample may be repeated."""
        chunk = self._limits(x).chunk
        return (filled(part, chunk) for part in x.split(chunk) if len(part))

    def _grouped(self, chosen: Tensor, limits: Limits) -> Iterator[Group]:
        shelf = self.experts[-1]
        if not isinstance(shelf, Shelf):
            return grouped(chosen, limits, [-1] * len(self._homes), lambda _: False)
        return grouped(chosen, limits, shelf.kinds(self._homes[:, 1]).tolist(), shelf.team.pays)

    def _consult(self, group: Group, ready: Tensor) -> Tensor:
        """Return (experts, samples, labels) log-probabilities of a group."""
        positions = group.positions
        if len(positions) == 1:
            return self.consult(positions[0], ready).unsqueeze(0)
        shelf, rows = self.experts[-1], self._homes[positions, 1].tolist()
        assert isinstance(shelf, Shelf)  # noqa: S101 (no others are grouped)
        each = ready.unflatten(0, tuple(group.rows.shape))
        outputs = shelf.ask_together(rows, each, shared=False)
        known = self.seen[sent(positions, self.seen.device)]
        return self._score(outputs, known.unsqueeze(1))

    def _outputs(self, position: int, ready: Tensor) -> Tensor:
        place, row = self._homes[position].tolist()
        home = self.experts[place]
        outputs: Tensor = home.ask(row, ready) if isinstance(home, Shelf) else home(ready)
        return outputs

    def _score(self, outputs: Tensor, known: Tensor) -> Tensor:
        scores = outputs.new_full((*outputs.shape[:-1], len(self.labels)), float("-inf"))
        width = min(outputs.shape[-1], len(self.labels))
        hidden = ~known[..., :width]
        scores[..., :width] = outputs[..., :width].masked_fill(hidden, float("-inf"))
        return scores.log_softmax(-1)


def _homes(owners: Sequence[int], experts: Sequence[nn.Module]) -> np.ndarray:
    """Return the place among the experts of each owner, and its row if that is a shelf (-1)."""
    shelf = experts[-1] if experts and isinstance(experts[-1], Shelf) else None
    packed = np.isin(owners, [] if shelf is None else shelf.ids)
    homes = np.full((len(owners), 2), -1)
    homes[~packed, 0] = np.arange(int((~packed).sum()))
    if shelf is not None:
        homes[packed, 0] = len(experts) - 1
        homes[packed, 1] = np.searchsorted(shelf.ids, np.asarray(owners)[packed])
    return homes
