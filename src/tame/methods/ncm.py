"""Nearest class mean: a running mean of each label's features, and the nearest one answers.

Mensink, Verbeek, Perronnin, Csurka, "Distance-Based Image Classification: Generalizing to New
Classes at Near-Zero Cost" (2013), without the learned metric; as a continual learner on a frozen
trunk it is iCaRL's classifier with every sample as exemplar. Streaming and exact:

    sum_y <- sum_y + f(x),  n_y <- n_y + 1;      label = argmin over y of |f(x) - sum_y / n_y|

It is told nothing.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from tame.core.inputs import Inputs
from tame.methods.frozen import Kind
from tame.methods.resting import RestingLearner, widened
from tame.types import (
    Sizes,
    State,
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


class NCM(RestingLearner[NCMSettings]):
    """A mean for each label, kept as a sum and a count.

    >>> from tame.types import Batch
    >>> learner = NCM(net="mlp")
    >>> _ = learner.observe(Batch([[0.0, 1.0], [0.0, 3.0], [5.0, 5.0]], [7, 7, 2]))
    >>> learner.means(), learner.predict([[0.0, 9.0], [4.0, 4.0]])
    (tensor([[0., 2.], [5., 5.]], dtype=torch.float64), tensor([2, 2]))
    """

    settings_type: ClassVar[type] = NCMSettings

    def _set_up(self) -> None:
        super()._set_up()
        self._sums = torch.zeros(0, 0, dtype=torch.float64, device=self.device)
        self._counts = torch.zeros(0, dtype=torch.float64, device=self.device)

    def _add(self, raw: Tensor, slots: Tensor, live: int) -> None:
        vectors, slots = self._vectors(raw), slots.to(self.device)
        self._sums = widened(self._sums, live, vectors.shape[1])
        self._counts = F.pad(self._counts, (0, live - len(self._counts)))
        self._sums.index_add_(0, slots, vectors)
        self._counts += torch.bincount(slots, minlength=live)

    def _scores(self, x: Tensor) -> Tensor:
        means = self.means()
        # |f|^2 is the same for every label
        near: Tensor = self._vectors(x) @ means.T - 0.5 * means.square().sum(1)
        return near

    def means(self) -> Tensor:
        """Return each label's mean, by slot."""
        means = self._sums / self._counts[:, None]
        return F.normalize(means) if self.settings.unit_length else means

    def sizes(self) -> Sizes:
        own, trunk = self._sums.numel(), self._frozen.parameters()
        model = self._sums.nbytes + self._counts.nbytes + self._frozen.nbytes()
        nonzero = int(self._sums.count_nonzero()) + trunk
        return Sizes(nonzero, own + trunk, own + trunk, model)

    def state_dict(self) -> State:
        return super().state_dict() | {
            "sums": self._sums,
            "counts": self._counts,
        }

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self._sums = state["sums"].to(self.device, copy=True)
        self._counts = state["counts"].to(self.device, copy=True)

    def _vectors(self, raw: Tensor) -> Tensor:
        vectors = self._frozen.vectors(raw).double()
        return F.normalize(vectors) if self.settings.unit_length else vectors
