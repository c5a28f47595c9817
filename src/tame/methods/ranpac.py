"""RanPAC: a random non-linear projection of frozen features, then ridge regression on labels.

McDonnell and others, "RanPAC: Random Projections and Pre-trained Models for Continual Learning"
(2023), without its first phase (adapting the trunk to the first task, which needs its boundary).
With W drawn once from N(0, 1), h = relu(W^T f), and one-hot labels:

    G <- G + h h^T,   C <- C + h onehot(y)^T;      label = argmax of h^T (G + ridge I)^-1 C

The ridge is chosen from powers of ten by squared error on held-out samples. The paper holds a
fifth of each task back and solves again for each ridge; here every fifth sample of the stream
keeps sums of its own, from which that error follows without the samples:

    error(V) = tr(V^T G' V) - 2 tr(V^T C') + n',     V = (G + ridge I)^-1 C

The answer uses all samples. It is told nothing, and no order of the samples changes G and C in all.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from tame.core.inputs import Inputs
from tame.engine.randomness import derive, torch_generator
from tame.methods.frozen import Kind
from tame.methods.resting import RestingLearner, widened
from tame.types import (
    Sizes,
    State,
)

HOLD = 5
RIDGES = tuple(10.0**power for power in range(-8, 9))


@dataclass(frozen=True)
class RanPACSettings:
    """What can be set about RanPAC.

    `width` (M) is the size of the projection: the paper takes 10,000, which is 1.6 GB of sums; 0
    leaves the projection and the relu out. `ridge` fixes what is otherwise chosen. `features` is
    "trunk", "inputs", or chosen by the net ("auto").
    """

    inputs: Inputs = field(default_factory=Inputs)
    features: Kind = "auto"
    width: int = 1000
    ridge: float | None = None

    def __post_init__(self) -> None:
        if self.width < 0:
            raise ValueError(f"width is 0 (no projection) or more, not {self.width}")
        if self.ridge is not None and self.ridge <= 0:
            raise ValueError(f"ridge is positive, not {self.ridge}")


class RanPAC(RestingLearner[RanPACSettings]):
    """Two sums over the stream; the linear classifier is solved when asked.

    >>> from tame.types import Batch
    >>> learner = RanPAC(net="mlp", settings=RanPACSettings(width=50))
    >>> _ = learner.observe(Batch([[0.0, 1.0], [5.0, 0.0]] * 5, [7, 2] * 5))
    >>> learner.predict([[0.0, 1.0], [4.0, 0.0]])
    tensor([7, 2])
    """

    settings_type: ClassVar[type] = RanPACSettings

    def _set_up(self) -> None:
        super()._set_up()
        self._projection: Tensor | None = None
        empty = torch.zeros(0, 0, dtype=torch.float64, device=self.device)
        self._gram = [empty, empty]  # of the samples to fit on, and of those held out
        self._cross = [empty, empty]
        self._seen = 0
        self._solved: Tensor | None = None

    def _add(self, raw: Tensor, slots: Tensor, live: int) -> None:
        hidden = self._hidden(raw)
        held = (torch.arange(len(slots)) + self._seen) % HOLD == HOLD - 1
        for part, chosen in enumerate((~held, held)):
            rows = hidden[chosen.to(self.device)]
            self._sum_up(part, rows, slots[chosen].to(self.device), live)
        self._seen += len(slots)
        self._solved = None

    def _scores(self, x: Tensor) -> Tensor:
        return self._hidden(x) @ self.weights()

    def weights(self) -> Tensor:
        """Return the classifier (hidden, labels), solved anew only after new samples."""
        if self._solved is None:
            gram, cross = self._gram[0] + self._gram[1], self._cross[0] + self._cross[1]
            self._solved = _solve(gram, cross, self.ridge())
        return self._solved

    def ridge(self) -> float:
        """Return the ridge: the one set, or the best for the samples held out."""
        if self.settings.ridge is not None:
            return self.settings.ridge
        if self._seen < HOLD:
            return 1.0
        values, vectors = torch.linalg.eigh(self._gram[0])
        turned = vectors.T @ self._cross[0]
        gram, cross = vectors.T @ self._gram[1] @ vectors, vectors.T @ self._cross[1]

        def error(ridge: float) -> float:
            found = turned / (values.clamp(min=0) + ridge)[:, None]
            return float((found * (gram @ found)).sum() - 2 * (found * cross).sum())

        return min(RIDGES, key=error)

    def sizes(self) -> Sizes:
        width, labels = self._cross[0].shape
        trunk = self._frozen.parameters()
        projection = 0 if self._projection is None else self._projection.numel()
        dense = width * labels + projection + trunk
        model = dense * 4 + self._frozen.nbytes() - trunk * 4
        sums = sum(part.nbytes for part in (*self._gram, *self._cross))
        return Sizes(dense, dense, dense, max(model, 0), training_bytes=sums)

    def state_dict(self) -> State:
        return super().state_dict() | {
            "seen": self._seen,
            "gram": list(self._gram),
            "cross": list(self._cross),
        }

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self._seen = state["seen"]
        self._gram = [part.to(self.device, copy=True) for part in state["gram"]]
        self._cross = [part.to(self.device, copy=True) for part in state["cross"]]
        self._projection, self._solved = None, None

    def _hidden(self, raw: Tensor) -> Tensor:
        vectors = self._frozen.vectors(raw)
        width = self.settings.width
        if not width:
            return vectors.double()
        if self._projection is None:
            drawn = torch_generator(derive(self._frozen.seed, "ranpac"))
            shape = (vectors.shape[1], width)
            self._projection = torch.randn(shape, generator=drawn).to(self.device)
        return (vectors @ self._projection).relu().double()

    def _sum_up(self, part: int, hidden: Tensor, slots: Tensor, live: int) -> None:
        width = hidden.shape[1]
        gram, cross = widened(self._gram[part], width, width), self._cross[part]
        cross = widened(cross, width, live)
        self._gram[part] = gram + hidden.T @ hidden
        self._cross[part] = cross.index_add(1, slots, hidden.T)


def _solve(gram: Tensor, cross: Tensor, ridge: float) -> Tensor:
    """Return (gram + ridge I)^-1 cross, by its eigenvalues: safe where it is nearly singular."""
    values, vectors = torch.linalg.eigh(gram)
    found: Tensor = vectors @ ((vectors.T @ cross) / (values.clamp(min=0) + ridge)[:, None])
    return found
