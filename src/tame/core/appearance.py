"""Whether samples look unlike others, label by label, by their means alone."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from tame.core.mark import median
from tame.core.waiting import Waiting

TOGETHER = 32  # samples that are judged together, at least; and at most of one batch
FEWEST = 10  # groups of them that tell what is usual, at least
KNOWN = 8  # samples of a label that tell its mean, at least
ROOM = 0.1  # of the mean variance: what every number varies by, at least
WIDE, TIMES = 8.0, 3.0  # deviations, and multiples, of what is usual
LARGEST = 1024  # numbers of a sample that are looked at


@dataclass(frozen=True)
class Samples:
    """Samples as rows of numbers, and their labels."""

    rows: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)


def newest(batches: Sequence[Waiting]) -> int:
    """Return how many of the newest batches are judged together; 0 if all are too few.

    >>> one = Waiting(0, np.zeros(20), np.zeros(20), 0)
    >>> newest([one] * 3), newest([one])
    (2, 0)
    """
    samples = 0
    for number, batch in enumerate(reversed(batches), start=1):
        samples += len(batch.slots)
        if samples >= TOGETHER:
            return number
    return 0


def thinned(batches: Sequence[Waiting]) -> Samples:
    """Return some samples of each batch, all if they are few."""
    every = [-(-len(batch.slots) // TOGETHER) for batch in batches]
    parts = [whole(b.raw[::n], b.slots[::n]) for b, n in zip(batches, every, strict=True)]
    rows, labels = [part.rows for part in parts], [part.labels for part in parts]
    return Samples(np.concatenate(rows), np.concatenate(labels))


def whole(raw: Tensor, slots: Tensor) -> Samples:
    """Return samples as rows of numbers."""
    return Samples(_flat(raw), slots.cpu().numpy())


def unlike(new: Samples, usual: Samples) -> bool:
    """Say whether samples look unlike the usual ones: whether the means of labels have moved.

    How far groups of usual samples, as many, lie from the mean of all of them says how far is too
    far; so nothing is assumed of inputs, but that they are usual in the order they came in. Labels
    that are not among the usual ones say nothing, nor do too few samples, nor what samples drawn at
    random would have.

    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(640) % 2
    >>> usual = Samples(rng.normal(size=(640, 5)), labels)
    >>> new = Samples(rng.normal(size=(32, 5)), labels[:32])
    >>> unlike(new, usual), unlike(Samples(new.rows + 2.0, new.labels), usual)
    (False, True)
    """
    groups = len(usual) // max(1, len(new))
    if groups < FEWEST:
        return False
    origin = usual.rows[0]  # sums of squares are exact only near it
    scale = _Scale(Samples(usual.rows - origin, usual.labels), groups)
    apart = scale.apart(_Sums(Samples(new.rows - origin, new.labels)))
    if not apart > 1.0:
        return False
    others = scale.within()
    if len(others) < FEWEST:
        return False
    level = median(others)
    spread = 1.4826 * median(np.abs(others - level))
    return apart > max(level + WIDE * spread, TIMES * level)


class _Sums:
    """Sums of the samples of each label in each of so many groups, which lie one after another."""

    def __init__(self, of: Samples, groups: int = 1) -> None:
        self.labels, places = np.unique(of.labels, return_inverse=True)
        group = np.arange(len(of)) * groups // max(1, len(of))
        keys = group * len(self.labels) + places
        order = np.argsort(keys, kind="stable")
        found, begins, self.counts = np.unique(keys[order], return_index=True, return_counts=True)
        self.group, self.place = np.divmod(found, max(1, len(self.labels)))
        self.sums = np.add.reduceat(of.rows[order], begins, axis=0)

    @property
    def means(self) -> np.ndarray:
        """The mean of each."""
        return np.asarray(self.sums / self.counts[:, None])


class _Scale:
    """Means of each label, and how much each number varies around them."""

    def __init__(self, usual: Samples, groups: int) -> None:
        self._parts = parts = _Sums(usual, groups)
        self._counts = np.bincount(parts.place, parts.counts)
        each = np.zeros((len(parts.labels), usual.rows.shape[1]))
        np.add.at(each, parts.place, parts.sums)
        self._means = each / self._counts[:, None]
        squares = np.einsum("ij,ij->j", usual.rows, usual.rows)
        varied = (squares - np.einsum("ij,ij->j", each, self._means)).clip(min=0.0) / len(usual)
        self._weights = 1.0 / (varied + (ROOM * varied.mean() or 1.0)) / len(varied)

    def apart(self, new: _Sums) -> float:
        """Return how far label means lie away: about 1 for samples drawn at random.

        Labels count by their samples: one odd sample of a rare one is no more than that. Not a
        number if no label is known.
        """
        places = np.searchsorted(self._parts.labels, new.labels)
        places = places.clip(max=len(self._parts.labels) - 1)
        there = np.where(self._parts.labels[places] == new.labels, self._counts[places], 0)
        known = there >= KNOWN
        if not known.any():
            return math.nan
        away = np.square(new.means[known] - self._means[places[known]]) @ self._weights
        away /= 1.0 / new.counts[known] + 1.0 / there[known]
        return float(np.average(away, weights=new.counts[known]))

    def within(self) -> np.ndarray:
        """Return how far the groups of usual samples lie from all of them, in the same way."""
        parts = self._parts
        there = self._counts[parts.place]
        known = there >= np.maximum(KNOWN, parts.counts + 1)
        away = np.square(parts.means - self._means[parts.place]) @ self._weights
        counts, group = parts.counts[known], parts.group[known]
        away = away[known] / (1.0 / counts - 1.0 / there[known])
        sizes = np.bincount(group, counts)
        return np.asarray(np.bincount(group, counts * away)[sizes > 0] / sizes[sizes > 0])


def _flat(raw: Tensor) -> np.ndarray:
    """Return rows of numbers; of large samples neighbours are added up."""
    rows = raw.flatten(1).cpu().numpy().astype(np.float64)
    every = -(-rows.shape[1] // LARGEST)
    begins = np.arange(0, rows.shape[1], every)
    return rows if every <= 1 else np.asarray(np.add.reduceat(rows, begins, axis=1))
