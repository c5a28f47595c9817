"""A labelled data set, as its files hold it."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tame.registry import DATASETS

Array = np.ndarray


class Samples(Protocol):
    """What inputs must be able to do: an array can, and so can one that stays in its file."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, chosen: Array, /) -> Array: ...


@dataclass(frozen=True)
class Dataset:
    """Raw inputs and labels, a part to learn from and a part held out.

    `groups[label]` is the superclass of a label, where the data set has any.
    """

    name: str
    x: Samples
    y: Array
    held_x: Samples
    held_y: Array
    groups: tuple[int, ...] = ()


def read(name: str) -> Dataset:
    """Read a registered data set; what follows a colon is handed to its reader.

    >>> read("embedded").name
    'embedded'
    """
    kind, colon, place = name.partition(":")
    found: Dataset = DATASETS.get(kind)(*([place] if colon else []))
    return found
