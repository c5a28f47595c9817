"""The same images in every segment, their pixels reordered each time; labels stay."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from torch import Tensor

from tame.engine.randomness import derive, numpy_generator
from tame.streams.course import Course
from tame.streams.dataset import Array, read
from tame.streams.origin import Origin, as_it_is
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
        origins = [Origin.of_all("identity", data)]
        for number in range(1, self.segments):
            pixels = numpy_generator(derive(seed, "pixels", number)).permutation(size)
            view = partial(reordered, pixels=pixels)
            origins.append(Origin.of_all(f"permutation {number}", data, view))
        return SegmentedStream(origins, self, seed)


def reordered(samples: Array, pixels: Array) -> Tensor:
    """Show samples with their pixels in another order."""
    flat = samples.reshape(len(samples), -1)
    return as_it_is(flat.take(pixels, axis=1).reshape(samples.shape))
