"""A data set's classes divided into segments: five pairs of digits, say."""

from dataclasses import dataclass

import numpy as np

from tame.errors import ConfigError
from tame.streams.dataset import read
from tame.streams.segments import Course, Origin, SegmentedStream


@dataclass(frozen=True)
class Split(Course):
    """Each segment shows `classes` classes of a data set and no others.

    >>> stream = Split(order=(0, 1, 0)).open(seed=0)
    >>> len(stream), stream.truth().names
    (75, {0: '0, 1', 1: '2, 3'})
    """

    data: str = "embedded"
    classes: int = 2

    def open(self, seed: int) -> SegmentedStream:
        """Return the stream of this seed."""
        data = read(self.data)
        labels = np.unique(data.y)
        if self.classes < 1 or len(labels) % self.classes:
            raise ConfigError(f"{len(labels)} classes do not divide into {self.classes} a segment")
        groups = labels.reshape(-1, self.classes)
        origins = [
            Origin(
                ", ".join(str(label) for label in group),
                np.flatnonzero(np.isin(data.y, group)),
                np.flatnonzero(np.isin(data.held_y, group)),
            )
            for group in groups
        ]
        return SegmentedStream(data, origins, self, seed)
