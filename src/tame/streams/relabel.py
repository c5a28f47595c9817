"""The same images in every segment, their labels called differently each time."""

from dataclasses import dataclass, replace

import numpy as np

from tame.engine.randomness import derive, numpy_generator
from tame.errors import ConfigError
from tame.streams.course import Course
from tame.streams.dataset import read
from tame.streams.origin import Origin
from tame.streams.segments import SegmentedStream


@dataclass(frozen=True)
class Relabel(Course):
    """The first segment has the labels as they are; in any two, every label differs.

    The labels stand in a circle, in an order drawn from the seed; each segment moves on by one.
    An unlabelled sample cannot tell which meaning is meant, so only `predict(x, when="now")` can
    be right about more than one segment.

    >>> stream = Relabel(segments=3).open(seed=0)
    >>> [part.y[::100].tolist() for part in stream.held_out()][1]
    [2, 9, 1, 7, 6, 0, 8, 4, 5, 3]
    """

    data: str = "embedded"
    segments: int = 5

    def open(self, seed: int) -> SegmentedStream:
        """Return the stream of this seed."""
        whole = Origin.of_all("as they are", read(self.data))
        count = len(whole.labels)
        if not 1 <= self.segments <= count:
            raise ConfigError(f"{count} labels have 1 to {count} meanings, not {self.segments}")
        circle = numpy_generator(derive(seed, "meanings")).permutation(whole.labels)
        rank = np.argsort(circle)
        origins = [whole]
        for number in range(1, self.segments):
            told = tuple(circle[(rank + number) % count].tolist())
            origins.append(replace(whole, name=f"moved by {number}", told=told))
        return SegmentedStream(origins, self, seed)
