"""Class statistics gathered as the stream passes: means, and one spread that all classes share."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tame.core.class_router import open_linear
from tame.types import State

Pair = tuple[int, int]


class Moments:
    """Counts and sums of vectors by pair of expert and label, and the sum of their products.

    What they give depends on no order, and a stream shown ten times gives what it gives once. The
    products are a symmetric matrix, of which one half is kept.

    >>> moments = Moments()
    >>> moments.add(torch.tensor([[0.0, 1.0], [2.0, 1.0], [5.0, 5.0]]), torch.tensor([0, 0, 1]), 7)
    >>> moments.pairs, moments.means().tolist()
    ([(7, 0), (7, 1)], [[1.0, 1.0], [5.0, 5.0]])
    """

    def __init__(self) -> None:
        self.pairs: list[Pair] = []
        self.seen = 0
        self._counts = torch.zeros(0)
        self._sums = torch.zeros(0, 0)
        self._products = torch.zeros(0)

    def add(self, vectors: Tensor, slots: Tensor, expert: int) -> None:
        """Take a batch of vectors that one expert learned from, with their labels' slots."""
        vectors = vectors.detach().float().flatten(1)
        found, each = slots.unique(return_inverse=True)
        rows = self._rows([(expert, slot) for slot in found.tolist()], vectors)
        where = torch.tensor(rows)[each].to(vectors.device)
        ones = torch.ones(len(vectors), device=vectors.device)
        self._counts.index_add_(0, where, ones)
        self._sums.index_add_(0, where, vectors)
        self._products += _half(vectors.T @ vectors)
        self.seen += len(vectors)

    def rename(self, old: int, new: int) -> None:
        """Give all that one expert has to another."""
        pairs = [(new if expert == old else expert, slot) for expert, slot in self.pairs]
        self.pairs = list(dict.fromkeys(pairs))
        places = torch.tensor([self.pairs.index(pair) for pair in pairs], dtype=torch.int64)
        places = places.to(self._sums.device)
        counts = self._counts.new_zeros(len(self.pairs))
        sums = self._sums.new_zeros(len(self.pairs), self._sums.shape[1])
        self._counts = counts.index_add_(0, places, self._counts)
        self._sums = sums.index_add_(0, places, self._sums)

    @property
    def shape(self) -> tuple[int, int]:
        """How many pairs there are, and how wide the vectors."""
        return len(self._sums), self._sums.shape[1]

    def means(self) -> Tensor:
        """Return the mean of each pair."""
        return self._sums / self._counts.unsqueeze(1)

    @torch.no_grad()
    def rule(self, shrinkage: float) -> nn.Linear:
        """Return the scores of all pairs as normal distributions of their means and one spread.

        Of the spread within pairs a share `shrinkage` is replaced by the same spread in all
        directions: there may be more directions than samples to know them by.
        """
        counts, means = self._counts.double(), self.means().double()
        within = _whole(self._products, means.shape[1]).double()
        within -= means.T @ (means * counts.unsqueeze(1))
        within /= max(self.seen - len(self.pairs), 1)
        level = within.diagonal().mean().clamp(min=torch.finfo(torch.float32).eps)
        within *= 1 - shrinkage
        within.diagonal().add_(shrinkage * level + torch.finfo(torch.float32).eps * level)
        middle = means.mean(0)
        away = means - middle
        weights = torch.linalg.solve(within, away.T).T
        made = open_linear(means.shape[1], len(means)).to(means.device)
        made.weight.copy_(weights)
        made.bias.copy_(-0.5 * (weights * (away + 2 * middle)).sum(1))
        return made

    def nbytes(self) -> int:
        """Return the bytes of all that is kept."""
        return self._counts.nbytes + self._sums.nbytes + self._products.nbytes

    def state_dict(self) -> State:
        return {
            "pairs": [list(pair) for pair in self.pairs],
            "seen": self.seen,
            "counts": self._counts,
            "sums": self._sums,
            "products": self._products,
        }

    def load_state_dict(self, state: State) -> None:
        self.pairs = [(expert, slot) for expert, slot in state["pairs"]]
        self.seen = state["seen"]
        self._counts = state["counts"].clone()
        self._sums = state["sums"].clone()
        self._products = state["products"].clone()

    def _rows(self, pairs: Sequence[Pair], vectors: Tensor) -> list[int]:
        """Return the rows of these pairs; those not seen before get new ones."""
        width, device = vectors.shape[1], vectors.device
        if not self.pairs:
            self._counts = torch.zeros(0, device=device)
            self._sums = torch.zeros(0, width, device=device)
            self._products = torch.zeros(width * (width + 1) // 2, device=device)
        self.pairs += [pair for pair in pairs if pair not in self.pairs]
        new = len(self.pairs) - len(self._counts)
        if new:
            self._counts = torch.cat([self._counts, self._counts.new_zeros(new)])
            self._sums = torch.cat([self._sums, self._sums.new_zeros(new, width)])
        return [self.pairs.index(pair) for pair in pairs]


def _half(matrix: Tensor) -> Tensor:
    """Return the lower triangle of a symmetric matrix, row by row."""
    rows, columns = torch.tril_indices(*matrix.shape, device=matrix.device)
    return matrix[rows, columns]


def _whole(half: Tensor, width: int) -> Tensor:
    """Return the symmetric matrix of a lower triangle."""
    rows, columns = torch.tril_indices(width, width, device=half.device)
    matrix = half.new_zeros(width, width)
    matrix[rows, columns] = half
    matrix[columns, rows] = half
    return matrix
