"""A data set judged on training data: what is to be chosen is chosen without its test data."""

from dataclasses import replace

import numpy as np

from tame.engine.randomness import derive, numpy_generator
from tame.streams.dataset import Dataset, read

SHARE = 10


def read_held_back(name: str = "embedded") -> Dataset:
    """Return a data set with a tenth of each class's training samples as its held-out part.

    The tenth is always the same, whatever the seed of a run; the test samples are not read.

    >>> data = read_held_back("embedded")
    >>> len(data.y), len(data.held_y)
    (3600, 400)
    """
    whole = read(name)
    draws = numpy_generator(derive(0, "held back"))
    held = np.zeros(len(whole.y), dtype=bool)
    for label in np.unique(whole.y):
        rows = np.flatnonzero(whole.y == label)
        held[draws.permutation(rows)[: len(rows) // SHARE]] = True
    kept, back = np.flatnonzero(~held), np.flatnonzero(held)
    return replace(
        whole,
        name=f"held-back:{whole.name}",
        x=whole.x[kept],
        y=whole.y[kept],
        held_x=whole.x[back],
        held_y=whole.y[back],
    )
