"""The same images in every segment, their pixels reordered each time; labels stay."""

from dataclasses import dataclass, replace

import numpy as np

from tame.engine.randomness import derive, numpy_generator
from tame.streams.course import Course
from tame.streams.dataset import read
from tame.streams.origin import Origin
from tame.streams.reordering import Desk, Reordered
from tame.streams.segments import SegmentedStream


@dataclass(frozen=True)
class Permute(Course):
    """The first segment shows the images as they are, each further one permutes all pixels.

    >>> Permute(segments=3).open(seed=0).truth().names
    {0: 'identity', 1: 'permutation 1', 2: 'permutation 2'}
    """

    data: str = "embedded"
    segments: int = 5

    def open(self, seed: int) -> SegmentedStream:
        """Return the stream of this seed."""
        data = read(self.data)
        size = int(np.prod(data.x.shape[1:]))
        origins, desks = [Origin.of_all("identity", data)], (Desk(), Desk())
        for number in range(1, self.segments):
            pixels = numpy_generator(derive(seed, "pixels", number)).permutation(size)
            x, held_x = (
                Reordered(samples, pixels, desk)
                for samples, desk in zip((data.x, data.held_x), desks, strict=True)
            )
            shown = replace(data, x=x, held_x=held_x)
            origins.append(Origin.of_all(f"permutation {number}", shown))
        return SegmentedStream(origins, self, seed)
