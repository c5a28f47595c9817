"""The same images in every segment, their pixels reordered each time; labels stay."""

from dataclasses import dataclass

import numpy as np

from tame.engine.randomness import derive, numpy_generator
from tame.streams.dataset import read
from tame.streams.segments import Course, Origin, SegmentedStream


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
        train, held = np.arange(len(data.y)), np.arange(len(data.held_y))
        size = int(np.prod(data.x.shape[1:]))
        origins = [Origin("identity", train, held)]
        for number in range(1, self.segments):
            pixels = numpy_generator(derive(seed, "pixels", number)).permutation(size)
            origins.append(Origin(f"permutation {number}", train, held, pixels))
        return SegmentedStream(data, origins, self, seed)
