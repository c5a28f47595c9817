"""One table from label to output slot, in order of first sight, shared by all experts."""

import numpy as np
import torch
from torch import Tensor

SMALL = 1 << 16


class LabelTable:
    """Maps arbitrary non-negative labels to output slots 0, 1, 2, ...

    Small labels are looked up in a list by label, others by bisection.

    >>> table = LabelTable()
    >>> table.open(table.unknown(torch.tensor([7, 3, 7])))
    >>> table.slots(torch.tensor([3, 7])), table.labels()
    (tensor([1, 0]), tensor([7, 3]))
    """

    def __init__(self) -> None:
        self._labels: list[int] = []
        self._sorted = np.empty(0, dtype=np.int64)
        self._slots = np.empty(0, dtype=np.int64)
        self._list: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self._labels)

    def unknown(self, y: Tensor) -> list[int]:
        """Return the labels the table has not seen, in order of first sight."""
        values = y.cpu().numpy()
        places = self._places(values)
        if not len(places) or places.min() >= 0:
            return []
        found, first = np.unique(values[places < 0], return_index=True)
        return [int(label) for label in found[np.argsort(first)]]

    def open(self, labels: list[int]) -> None:
        """Give each of these new labels the next slot."""
        self._labels += labels
        known = np.array(self._labels, dtype=np.int64)
        self._slots = np.argsort(known)
        self._sorted = known[self._slots]
        self._list = None
        if known.max() < SMALL:
            self._list = np.full(int(known.max()) + 2, -1)  # the last for all that are larger
            self._list[known] = np.arange(len(known))

    def slots(self, y: Tensor) -> Tensor:
        """Return the slots of known labels."""
        return torch.from_numpy(self._places(y.cpu().numpy())).to(y.device)

    def labels(self) -> Tensor:
        """Return every known label, by slot."""
        return torch.tensor(self._labels, dtype=torch.int64)

    def _places(self, values: np.ndarray) -> np.ndarray:
        """Return the slot of each label, -1 if it has none."""
        if self._list is not None:
            return self._list.take(values, mode="clip")
        if not len(self._sorted):
            return np.full(len(values), -1)
        place = np.searchsorted(self._sorted, values)
        known = self._sorted.take(place, mode="clip") == values
        return np.where(known, self._slots.take(place, mode="clip"), -1)
