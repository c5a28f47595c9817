"""Nearest class mean: a running mean of each label's features, and the nearest one answers.

Mensink, Verbeek, Perronnin, Csurka, "Distance-Based Image Classification: Generalizing to New
Classes at Near-Zero Cost" (2013), without the learned metric; as a continual learner on a frozen
trunk it is iCaRL's classifier with every sample as exemplar. Streaming and exact:

    sum_y <- sum_y + f(x),  n_y <- n_y + 1;      label = argmin over y of |f(x) - sum_y / n_y|

It is told nothing.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from tame.checkpoint import save_learner
from tame.core.inputs import Inputs
from tame.methods.frozen import Frozen, Kind
from tame.types import (
    ArrayLike,
    Batch,
    Consolidation,
    Hints,
    NetMaker,
    Observation,
    Progress,
    Sizes,
    State,
    When,
    silent,
)


@dataclass(frozen=True)
class NCMSettings:
    """What can be set about nearest class mean.

    `features` is "trunk", "inputs", or chosen by the net ("auto"). `unit_length` shortens features
    and means to length one, as iCaRL does.
    """

    inputs: Inputs = field(default_factory=Inputs)
    features: Kind = "auto"
    unit_length: bool = False


class NCM:
    """A mean for each label, kept as a sum and a count.

    >>> learner = NCM(net="mlp")
    >>> _ = learner.observe(Batch([[0.0, 1.0], [0.0, 3.0], [5.0, 5.0]], [7, 7, 2]))
    >>> learner.means(), learner.predict([[0.0, 9.0], [4.0, 4.0]])
    (tensor([[0., 2.], [5., 5.]], dtype=torch.float64), tensor([2, 2]))
    """

    hints: ClassVar[Hints] = Hints.NOTHING
    unbounded: ClassVar[bool] = False
    settings_type: ClassVar[type] = NCMSettings

    def __init__(
        self,
        net: str | Mapping[str, Any] | NetMaker = "lenet",
        seed: int = 0,
        settings: NCMSettings | None = None,
        device: str = "cpu",
    ) -> None:
        self.net = net
        self.seed = seed
        self.settings = settings or NCMSettings()
        self.device = torch.device(device)
        own = self.settings
        self._frozen = Frozen(net, seed, own.inputs, own.features, self.device)
        self._sums = torch.zeros(0, 0, dtype=torch.float64, device=self.device)
        self._counts = torch.zeros(0, dtype=torch.float64, device=self.device)
        self._steps = 0

    def observe(self, batch: Batch) -> Observation:
        """Add the batch to its labels' sums; nothing is measured, so there is no loss."""
        raw, slots, live = self._frozen.admit(batch)
        vectors, slots = self._vectors(raw), slots.to(self.device)
        self._sums = widened(self._sums, live, vectors.shape[1])
        self._counts = F.pad(self._counts, (0, live - len(self._counts)))
        self._sums.index_add_(0, slots, vectors)
        self._counts += torch.bincount(slots, minlength=live)
        self._steps += 1
        return Observation(self._steps - 1, math.nan, math.nan, math.nan, 0)

    def consolidate(self, progress: Progress = silent) -> Consolidation:
        """Do nothing: the means are exact at any time."""
        progress("nothing to consolidate", 1, 1)
        return Consolidation(experts=0, sizes=self.sizes())

    def predict(self, x: ArrayLike, when: When = "ever") -> Tensor:  # noqa: ARG002 (one model)
        x = self._frozen.check(x)
        if not len(self._counts) or not len(x):
            return self._frozen.unknown(x)
        means = self.means()
        # |f|^2 is the same for every label
        near = self._vectors(x) @ means.T - 0.5 * means.square().sum(1)
        return self._frozen.answers(near.argmax(1))

    def means(self) -> Tensor:
        """Return each label's mean, by slot."""
        means = self._sums / self._counts[:, None]
        return F.normalize(means) if self.settings.unit_length else means

    def sizes(self) -> Sizes:
        own, trunk = self._sums.numel(), self._frozen.parameters()
        model = self._sums.nbytes + self._counts.nbytes + self._frozen.nbytes()
        nonzero = int(self._sums.count_nonzero()) + trunk
        return Sizes(nonzero, own + trunk, own + trunk, model)

    def save(self, path: str | Path) -> None:
        """Write everything to one file, all or nothing."""
        save_learner(self, path)

    def state_dict(self) -> State:
        return {
            "steps": self._steps,
            "frozen": self._frozen.state_dict(),
            "sums": self._sums,
            "counts": self._counts,
        }

    def load_state_dict(self, state: State) -> None:
        self._steps = state["steps"]
        self._frozen.load_state_dict(state["frozen"])
        self._sums = state["sums"].to(self.device, copy=True)
        self._counts = state["counts"].to(self.device, copy=True)

    def _vectors(self, raw: Tensor) -> Tensor:
        vectors = self._frozen.vectors(raw).double()
        return F.normalize(vectors) if self.settings.unit_length else vectors


def widened(table: Tensor, rows: int, columns: int) -> Tensor:
    """Return a table with room for this many rows and columns; what is new is zero.

    >>> widened(torch.ones(1, 2), 2, 2)
    tensor([[1., 1.], [0., 0.]])
    """
    return F.pad(table, (0, columns - table.shape[1], 0, rows - table.shape[0]))
