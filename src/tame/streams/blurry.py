"""Class-incremental with blurry boundaries: i-Blurry (Koh et al., ICLR 2022)."""

from dataclasses import dataclass
from itertools import starmap

import numpy as np

from tame.engine.randomness import derive, numpy_generator
from tame.errors import ConfigError
from tame.streams.course import Course
from tame.streams.dataset import Array, read
from tame.streams.origin import Origin
from tame.streams.schedule import Pool
from tame.streams.segments import SegmentedStream


@dataclass(frozen=True)
class Blurry(Course):
    """Some classes keep to their segment, the others also turn up in every other one.

    A fraction `disjoint` of the classes (the paper's N %) occurs in one segment only. Of the
    samples of the others a fraction `level` (its M %) is taken out, shuffled, and dealt evenly to
    all segments. Which classes are which is drawn from the seed. An origin is a segment's own
    classes, wherever they turn up.

    >>> Blurry(segments=2).open(seed=0).truth().labels
    {0: (0, 3, 4, 5, 7), 1: (1, 2, 6, 8, 9)}
    """

    data: str = "embedded"
    segments: int = 5
    disjoint: float = 0.5
    level: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (0 <= self.disjoint <= 1 and 0 <= self.level <= 1):
            raise ValueError("disjoint and level are fractions")

    def open(self, seed: int) -> SegmentedStream:
        """Return the stream of this seed."""
        data = read(self.data)
        apart, shared = self._divided(np.unique(data.y), seed)
        origins = []
        for groups in zip(apart, shared, strict=True):
            labels = tuple(sorted(np.concatenate(groups).tolist()))
            name = ", ".join(str(label) for label in labels)
            origins.append(Origin.of_labels(name, data, labels))
        return SegmentedStream(origins, self, seed, self._pools(origins, shared, seed))

    def _divided(self, labels: Array, seed: int) -> tuple[list[Array], list[Array]]:
        """Return the classes of each segment: those that keep to it, and those that do not."""
        if self.segments < 1 or len(labels) % self.segments:
            raise ConfigError(f"{len(labels)} classes do not divide into {self.segments} segments")
        order = numpy_generator(derive(seed, "class order")).permutation(labels)
        kept = round(len(labels) * self.disjoint / self.segments) * self.segments
        apart, shared = order[:kept], order[kept:]
        return np.split(apart, self.segments), np.split(shared, self.segments)

    def _pools(self, origins: list[Origin], shared: list[Array], seed: int) -> list[Pool]:
        """Take a fraction of the shared classes' samples out and deal it to all segments."""
        draws = numpy_generator(derive(seed, "blurry"))
        kept, moved = [], []
        for number, (origin, classes) in enumerate(zip(origins, shared, strict=True)):
            wanders = np.isin(origin.data.y[origin.train], classes)
            mobile = draws.permutation(origin.train[wanders])
            count = round(len(mobile) * self.level)
            kept.append(_pool([origin.train[~wanders], mobile[count:]], number))
            moved.append(_pool([mobile[:count]], number))
        numbers, owners = (np.concatenate(column) for column in zip(*moved, strict=True))
        hands = np.array_split(draws.permutation(len(numbers)), len(origins))
        dealt = [Pool(numbers[hand], owners[hand]) for hand in hands]
        return list(starmap(_joined, zip(kept, dealt, strict=True)))


def _pool(numbers: list[Array], owner: int) -> Pool:
    every = np.concatenate(numbers)
    return Pool(every, np.full(len(every), owner, dtype=np.int32))


def _joined(one: Pool, two: Pool) -> Pool:
    return Pool(*(np.concatenate(pair) for pair in zip(one, two, strict=True)))
