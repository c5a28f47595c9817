"""Whether samples look unlike others, label by label, by their means alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from tame.core.mark import median
from tame.core.waiting import Waiting

TOGETHER = 32  # samples that are judged together, at least
MOST = 64  # samples of a batch that are looked at
FEWEST = 10  # groups of them that tell what is usual, at least
KNOWN = 8  # samples of a label that tell its mean, at least
ROOM = 0.1  # of the mean variance: what every number varies by, at least
WIDE, TIMES = 8.0, 3.0  # deviations, and multiples, of what is usual
LARGEST = 4096  # numbers of a sample that are looked at


@dataclass(frozen=True)
class Samples:
    """Samples as rows of numbers, and their labels."""

    rows: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)


def part(batches: Sequence[Waiting]) -> tuple[Samples, Samples] | None:
    """Return the newest samples, as many as are judged together, and all that came before them."""
    place, count = len(batches), 0
    while place and count < TOGETHER:
        place -= 1
        count += len(batches[place].slots)
    if count < TOGETHER or not place:
        return None
    return samples(batches[place:]), samples(batches[:place])


def samples(batches: Sequence[Waiting]) -> Samples:
    """Return some samples of each batch; of large ones neighbouring numbers are averaged."""
    thin = [slice(None, None, -(-len(batch.slots) // MOST)) for batch in batches]
    rows = [_flat(batch.raw[every]) for batch, every in zip(batches, thin, strict=True)]
    labels = [batch.slots[every].numpy() for batch, every in zip(batches, thin, strict=True)]
    return Samples(np.concatenate(rows), np.concatenate(labels))


def unlike(new: Samples, usual: Samples) -> bool:
    """Say whether samples look unlike the usual ones: whether the means of labels have moved.

    How far groups of usual samples, as many, lie from the mean of all of them says how far is too
    far; so nothing is assumed of inputs, but that they are usual in the order they came in. Labels
    that are not among the usual ones say nothing, nor do too few samples.

    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(640) % 2
    >>> usual = Samples(rng.normal(size=(640, 5)), labels)
    >>> new = Samples(rng.normal(size=(32, 5)), labels[:32])
    >>> unlike(new, usual), unlike(Samples(new.rows + 2.0, new.labels), usual)
    (False, True)
    """
    scale, groups = _Scale(usual), len(usual) // max(1, len(new))
    apart = scale.apart(new)
    if apart is None or groups < FEWEST:
        return False
    found = [scale.apart(group, own=True) for group in _cut(usual, groups)]
    others = np.array([one for one in found if one is not None])
    if len(others) < FEWEST:
        return False
    level = median(others)
    spread = 1.4826 * median(np.abs(others - level))
    return apart > max(level + WIDE * spread, TIMES * level)


class _Scale:
    """Means of each label, and how much each number varies around them."""

    def __init__(self, usual: Samples) -> None:
        sums, self._labels, self._counts = _sums(usual)
        self._means = sums / self._counts[:, None]
        places = np.searchsorted(self._labels, usual.labels)
        varied = np.square(usual.rows - self._means[places]).mean(0)
        self._weights = 1.0 / (varied + (ROOM * varied.mean() or 1.0))

    def apart(self, group: Samples, *, own: bool = False) -> float | None:
        """Return how far label means lie away: about 1 for samples drawn at random, or less.

        None if no label is known. `own` says that the samples are among the usual ones.
        """
        sums, labels, counts = _sums(group)
        places = np.searchsorted(self._labels, labels).clip(max=len(self._labels) - 1)
        there = np.where(self._labels[places] == labels, self._counts[places], 0)
        known = there >= np.maximum(KNOWN, counts + 1 if own else 0)
        if not known.any():
            return None
        expected = 1.0 / counts[known] + (-1.0 if own else 1.0) / there[known]
        means = sums[known] / counts[known, None]
        away = np.square(means - self._means[places[known]]) @ self._weights
        return float((away / expected).mean()) / len(self._weights)


def _cut(usual: Samples, groups: int) -> list[Samples]:
    rows, labels = np.array_split(usual.rows, groups), np.array_split(usual.labels, groups)
    return [Samples(*pair) for pair in zip(rows, labels, strict=True)]


def _sums(group: Samples) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the sum of the samples of each label, the labels, and how many there are."""
    order = np.argsort(group.labels, kind="stable")
    labels, begins, counts = np.unique(group.labels[order], return_index=True, return_counts=True)
    return np.add.reduceat(group.rows[order], begins, axis=0), labels, counts


def _flat(raw: Tensor) -> np.ndarray:
    rows = raw.flatten(1).cpu().numpy().astype(np.float64)
    every = -(-rows.shape[1] // LARGEST)
    begins = np.arange(0, rows.shape[1], every)
    return rows if every <= 1 else np.asarray(np.add.reduceat(rows, begins, axis=1))
