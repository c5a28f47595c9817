"""Samples whose pixels are shown in another order."""

from collections import OrderedDict

import numpy as np

from tame.streams.dataset import Array, Samples

COPIES = 2  # a change may blend two orders


class Desk:
    """Room for whole copies in the orders that are shown just now."""

    def __init__(self) -> None:
        self._copies: OrderedDict[object, Array] = OrderedDict()

    def find(self, owner: object) -> Array | None:
        """Return the copy that was put there, if it is still there."""
        return self._copies.get(owner)

    def put(self, owner: object, copy: Array) -> None:
        """Put a copy there, and drop the oldest if there are too many."""
        self._copies[owner] = copy
        while len(self._copies) > COPIES:
            self._copies.popitem(last=False)


class Reordered:
    """Samples with their pixels in another order.

    Reordering a batch takes longer than cutting it out, so what comes a second time is reordered
    as a whole, once, if it lies in memory; the copy has a place on the desk.

    >>> shown = Reordered(np.arange(6).reshape(2, 3), np.array([2, 0, 1]), Desk())
    >>> shown[np.array([1])]
    array([[5, 3, 4]])
    """

    def __init__(self, samples: Samples, pixels: Array, desk: Desk) -> None:
        self._samples = samples
        self._pixels = pixels
        self._desk = desk
        self._shown = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """Their number, and the shape of one."""
        return self._samples.shape

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, chosen: Array, /) -> Array:
        whole = self._desk.find(self)
        if whole is None and self._comes_again(len(chosen)):
            whole = self._reorder(np.asarray(self._samples))
            self._desk.put(self, whole)
        found: Array = self._reorder(self._samples[chosen]) if whole is None else whole[chosen]
        return found

    def _comes_again(self, count: int) -> bool:
        self._shown += count
        near = type(self._samples) is np.ndarray  # and not in a file
        if not near or self._shown <= len(self):
            return False
        self._shown = 0
        return True

    def _reorder(self, samples: Array) -> Array:
        flat = samples.reshape(len(samples), -1)
        return flat.take(self._pixels, axis=1).reshape(samples.shape)
