"""One table from label to output slot, in order of first sight, shared by all experts."""

import numpy as np
import torch
from torch import Tensor


class LabelTable:
    """Maps arbitrary non-negative labels to output slots 0, 1, 2, ...

    >>> table = LabelTable()
    >>> table.open(table.unknown(torch.tensor([7, 3, 7])))
    >>> table.slots(torch.tensor([3, 7])), table.labels()
    (tensor([1, 0]), tensor([7, 3]))
    """

    def __init__(self) -> None:
        self._labels: list[int] = []
        self._sorted = np.empty(0, dtype=np.int64)
        self._slots = np.empty(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._labels)

    def unknown(self, y: Tensor) -> list[int]:
        """Return the labels the table has not seen, in order of first sight."""
        values = y.cpu().numpy()
        if len(self._sorted):
            place = np.searchsorted(self._sorted, values)
            new = self._sorted.take(place, mode="clip") != values
            if not new.any():
                return []
        else:
            new = np.ones(len(values), dtype=bool)
        found, first = np.unique(values[new], return_index=True)
        return [int(label) for label in found[np.argsort(first)]]

    def open(self, labels: list[int]) -> None:
        """Give each of these new labels the next slot."""
        self._labels += labels
        known = np.array(self._labels, dtype=np.int64)
        self._slots = np.argsort(known)
        self._sorted = known[self._slots]

    def slots(self, y: Tensor) -> Tensor:
        """Return the slots of known labels."""
        found = self._slots[np.searchsorted(self._sorted, y.cpu().numpy())]
        return torch.from_numpy(found).to(y.device)

    def labels(self) -> Tensor:
        """Return every known label, by slot."""
        return torch.tensor(self._labels, dtype=torch.int64)
