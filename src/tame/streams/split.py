"""A data set's classes divided into segments: five pairs of digits, say."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tame.engine.randomness import derive, numpy_generator
from tame.errors import ConfigError
from tame.streams.course import Course
from tame.streams.dataset import Dataset, read
from tame.streams.origin import Origin
from tame.streams.segments import SegmentedStream


@dataclass(frozen=True)
class Split(Course):
    """Each segment shows `classes` classes of a data set and no others.

    They follow in the order of their labels (`natural`), in an order drawn from the seed
    (`seeded`), or one superclass a segment (`superclass`), where the data set has superclasses.
    With an `overlap` each also shows so many of the next one's classes, the last of the first's.

    >>> stream = Split(order=(0, 1, 0)).open(seed=0)
    >>> len(stream), stream.truth().names
    (75, {0: '0, 1', 1: '2, 3'})
    >>> Split(overlap=1).open(seed=0).truth().labels[4]
    (8, 9, 0)
    """

    data: str = "embedded"
    classes: int = 2
    division: Literal["natural", "seeded", "superclass"] = "natural"
    overlap: int = 0

    def open(self, seed: int) -> SegmentedStream:
        """Return the stream of this seed."""
        data = read(self.data)
        groups = (
            self._superclasses(data) if self.division == "superclass" else self._runs(data, seed)
        )
        origins = [
            Origin.of_labels(", ".join(str(label) for label in group), data, group)
            for group in self._overlapping(groups)
        ]
        return SegmentedStream(origins, self, seed)

    def _runs(self, data: Dataset, seed: int) -> list[tuple[int, ...]]:
        labels = np.unique(data.y)
        if self.classes < 1 or len(labels) % self.classes:
            raise ConfigError(f"{len(labels)} classes do not divide into {self.classes} a segment")
        if self.division == "seeded":
            labels = numpy_generator(derive(seed, "class order")).permutation(labels)
        return [tuple(group) for group in labels.reshape(-1, self.classes).tolist()]

    def _overlapping(self, groups: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        fewest = min(map(len, groups))
        if not 0 <= self.overlap <= (fewest if len(groups) > 1 else 0):
            raise ConfigError(
                f"an overlap of {self.overlap} does not fit {len(groups)} segments "
                f"of {fewest} classes"
            )
        following = [*groups[1:], groups[0]]
        pairs = zip(groups, following, strict=True)
        return [group + after[: self.overlap] for group, after in pairs]

    def _superclasses(self, data: Dataset) -> list[tuple[int, ...]]:
        if not data.groups:
            raise ConfigError(f"{data.name} has no superclasses; cifar100 has")
        members: dict[int, list[int]] = defaultdict(list)
        for label, group in enumerate(data.groups):
            members[group].append(label)
        return [tuple(members[group]) for group in sorted(members)]
