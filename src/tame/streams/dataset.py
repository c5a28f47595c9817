"""A labelled data set in memory, as its files hold it."""

from dataclasses import dataclass

import numpy as np

from tame.registry import DATASETS

Array = np.ndarray


@dataclass(frozen=True)
class Dataset:
    """Raw inputs and labels, a part to learn from and a part held out.

    `groups[label]` is the superclass of a label, where the data set has any.
    """

    name: str
    x: Array
    y: Array
    held_x: Array
    held_y: Array
    groups: tuple[int, ...] = ()


def read(name: str) -> Dataset:
    """Read a registered data set."""
    found: Dataset = DATASETS.get(name)()
    return found
