"""A long tail: few samples of some classes, or of some segments."""

from dataclasses import dataclass

import numpy as np

from tame.engine.randomness import numpy_generator
from tame.streams.dataset import Array


@dataclass(frozen=True)
class Imbalance:
    """How many times as many samples the most frequent has as the rarest; 1: all alike.

    `classes` is for the classes of one segment, in the order of its labels; `segments` for the
    segments in the order of their numbers. Numbers fall off exponentially, as in long-tailed CIFAR.
    Held-out samples stay as they are.

    >>> Imbalance(classes=4.0).quotas(100, classes=3, place=0, places=1).tolist()
    [100, 50, 25]
    """

    classes: float = 1.0
    segments: float = 1.0

    def __post_init__(self) -> None:
        if self.classes < 1 or self.segments < 1:
            raise ValueError("an imbalance is 1 (none) or more")

    @property
    def present(self) -> bool:
        """Say whether anything is thinned out."""
        return self.classes > 1 or self.segments > 1

    def quotas(self, most: int, classes: int, place: int, places: int) -> Array:
        """Return how many samples each class may have, where the largest has `most`."""
        within = self.classes ** -(np.arange(classes) / max(classes - 1, 1))
        among = self.segments ** -(place / max(places - 1, 1))
        found: Array = np.maximum(np.rint(most * within * among).astype(np.int64), 1)
        return found


def thinned(labels: Array, classes: tuple[int, ...], quotas: Array, seed: int) -> Array:
    """Return which samples to keep, in order, so that no class has more than its quota.

    >>> thinned(np.array([0, 0, 0, 1, 1]), (0, 1), np.array([2, 1]), seed=0).tolist()
    [0, 2, 4]
    """
    shuffled = numpy_generator(seed).permutation(len(labels))
    kept = [
        shuffled[labels[shuffled] == label][:quota]
        for label, quota in zip(classes, quotas.tolist(), strict=True)
    ]
    return np.sort(np.concatenate(kept))
