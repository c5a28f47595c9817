"""What the methods have in common that keep sums of frozen features, and solve when asked."""

import math
from abc import abstractmethod
from typing import Any, TypeVar

from torch import Tensor
from torch.nn import functional as F

from tame.methods.frozen import Frozen
from tame.methods.method import Method
from tame.types import ArrayLike, Batch, Observation, State, When

S = TypeVar("S", bound=Any)


class RestingLearner(Method[S]):
    """Adds every batch to its sums; nothing is measured meanwhile, so there is no loss."""

    def _set_up(self) -> None:
        own = self.settings
        self._frozen = Frozen(self.net, self.seed, own.inputs, own.features, self.device)
        self._steps = 0

    def observe(self, batch: Batch) -> Observation:
        raw, slots, live = self._frozen.admit(batch)
        self._add(raw, slots, live)
        self._steps += 1
        return Observation(self._steps - 1, math.nan, math.nan, math.nan, 0)

    def predict(self, x: ArrayLike, when: When = "ever") -> Tensor:  # noqa: ARG002 (one model)
        x = self._frozen.check(x)
        if not len(self._frozen.intake.labels) or not len(x):
            return self._frozen.unknown(x)
        return self._frozen.answers(self._scores(x).argmax(1))

    def state_dict(self) -> State:
        return {"steps": self._steps, "frozen": self._frozen.state_dict()}

    def load_state_dict(self, state: State) -> None:
        self._steps = state["steps"]
        self._frozen.load_state_dict(state["frozen"])

    @abstractmethod
    def _add(self, raw: Tensor, slots: Tensor, live: int) -> None:
        """Take raw samples of these slots into the sums, which hold `live` labels from now on."""

    @abstractmethod
    def _scores(self, x: Tensor) -> Tensor:
        """Return how well each label fits each raw sample."""


def widened(table: Tensor, rows: int, columns: int) -> Tensor:
    """Return a table with room for this many rows and columns; what is new is zero.

    >>> import torch
    >>> widened(torch.ones(1, 2), 2, 2)
    tensor([[1., 1.], [0., 0.]])
    """
    return F.pad(table, (0, columns - table.shape[1], 0, rows - table.shape[0]))
