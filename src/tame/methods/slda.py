"""Streaming linear discriminant analysis: a mean for each label, one covariance for all.

Hayes, Kanan, "Lifelong Machine Learning with Deep Streaming Linear Discriminant Analysis" (2020),
on features f of a frozen trunk. With t samples seen, for the next one of label y:

    S   <- (t S + D) / (t + 1),   D = t / (t + 1) (f - m_y) (f - m_y)^T
    m_y <- (n_y m_y + f) / (n_y + 1),  n_y <- n_y + 1

    label = argmax over y of m_y^T P f - m_y^T P m_y / 2,   P = ((1 - e) S + e I)^-1

The first sample of a label has no mean to be compared with and adds nothing to S; the authors'
program takes a mean of zero there ("code"). "pooled" weighs D by n_y / (n_y + 1) instead, which
makes S the within-label covariance exactly, whatever the order. It is told nothing.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

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

Scatter = Literal["paper", "code", "pooled"]


@dataclass(frozen=True)
class SLDASettings:
    """What can be set about streaming LDA.

    `shrinkage` (e) mixes the identity into the covariance. `scatter` says how a sample enters it.
    `features` is "trunk", "inputs", or chosen by the net ("auto").
    """

    inputs: Inputs = field(default_factory=Inputs)
    features: Kind = "auto"
    shrinkage: float = 1e-4
    scatter: Scatter = "paper"

    def __post_init__(self) -> None:
        if not 0 <= self.shrinkage <= 1:
            raise ValueError(f"shrinkage is between 0 and 1, not {self.shrinkage}")


class SLDA(RestingLearner[SLDASettings]):
    """Running means and a running covariance; the linear classifier is solved when asked.

    >>> from tame.types import Batch
    >>> learner = SLDA(net="mlp")
    >>> x = [[0.0, 1.0], [0.0, 3.0], [5.0, 5.0], [5.0, 7.0]]
    >>> _ = learner.observe(Batch(x, [7, 7, 2, 2]))
    >>> learner.predict([[0.0, 9.0], [4.0, 4.0]])
    tensor([7, 2])
    """

    settings_type: ClassVar[type] = SLDASettings

    def _set_up(self) -> None:
        super()._set_up()
        self._means = self._nothing(0, 0)
        self._counts = self._nothing(0)
        self._scatter = self._nothing(0, 0)  # t S
        self._seen = 0
        self._solved: tuple[Tensor, Tensor] | None = None

    def _add(self, raw: Tensor, slots: Tensor, live: int) -> None:
        vectors, slots = self._frozen.vectors(raw).double(), slots.to(self.device)
        size = vectors.shape[1]
        self._means = widened(self._means, live, size)
        self._counts = F.pad(self._counts, (0, live - len(self._counts)))
        self._scatter = widened(self._scatter, size, size)
        self._spread(vectors, slots)

    def _scores(self, x: Tensor) -> Tensor:
        weights, bias = self.classifier()
        return self._frozen.vectors(x).double() @ weights + bias

    def covariance(self) -> Tensor:
        """Return S."""
        return self._scatter / max(self._seen, 1)

    def classifier(self) -> tuple[Tensor, Tensor]:
        """Return weights (features, labels) and biases, solved anew only after new samples."""
        if self._solved is None:
            share = self.settings.shrinkage
            identity = torch.eye(len(self._scatter), dtype=torch.float64, device=self.device)
            precision = torch.linalg.pinv(
                (1 - share) * self.covariance() + share * identity, hermitian=True
            )
            weights = precision @ self._means.T
            self._solved = weights, -0.5 * (self._means * weights.T).sum(1)
        return self._solved

    def sizes(self) -> Sizes:
        own, trunk = self._means.numel(), self._frozen.parameters()
        own += self._scatter.numel()
        parts = (self._means, self._counts, self._scatter)
        model = sum(part.nbytes for part in parts) + self._frozen.nbytes()
        nonzero = int(self._means.count_nonzero() + self._scatter.count_nonzero()) + trunk
        return Sizes(nonzero, own + trunk, own + trunk, model)

    def state_dict(self) -> State:
        return super().state_dict() | {
            "seen": self._seen,
            "means": self._means,
            "counts": self._counts,
            "scatter": self._scatter,
        }

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self._seen = state["seen"]
        self._means = state["means"].to(self.device, copy=True)
        self._counts = state["counts"].to(self.device, copy=True)
        self._scatter = state["scatter"].to(self.device, copy=True)
        self._solved = None

    def _spread(self, vectors: Tensor, slots: Tensor) -> None:
        """Take samples one after the other, all at once: grouped by label, in their order."""
        order = slots.argsort(stable=True)
        grouped, labels = vectors[order], slots[order]
        counts = torch.bincount(slots, minlength=len(self._counts)).double()
        rank = torch.arange(len(slots), device=self.device) - (counts.cumsum(0) - counts)[labels]
        before = self._counts[labels] + rank  # n_y when each sample comes
        sums = grouped.cumsum(0) - grouped  # of those before it in the batch, all labels
        _, group = labels.unique_consecutive(return_inverse=True)
        start = sums[rank == 0][group]
        total = self._means[labels] * self._counts[labels][:, None] + sums - start
        away = grouped - total / before.clamp(min=1)[:, None]
        away = away * self._weights(before, order).sqrt()[:, None]
        self._scatter += away.T @ away
        whole = self._means * self._counts[:, None]
        self._counts += counts
        self._means = whole.index_add_(0, slots, vectors) / self._counts.clamp(min=1)[:, None]
        self._seen += len(slots)
        self._solved = None

    def _weights(self, before: Tensor, order: Tensor) -> Tensor:
        """Return by how much each sample's scatter counts."""
        if self.settings.scatter == "pooled":
            return before / (before + 1)
        time = (self._seen + order).double()
        weights = time / (time + 1)
        return weights if self.settings.scatter == "code" else weights * (before > 0)

    def _nothing(self, *shape: int) -> Tensor:
        return torch.zeros(shape, dtype=torch.float64, device=self.device)
