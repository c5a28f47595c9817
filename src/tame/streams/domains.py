"""One data set after another with the same labels: SVHN, then MNIST."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from tame.errors import ConfigError
from tame.streams.course import Course
from tame.streams.dataset import Array, read
from tame.streams.origin import Origin
from tame.streams.segments import SegmentedStream

GREY = ((0.1307,), (0.3081,))
COLOUR = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))


@dataclass(frozen=True)
class Domains(Course):
    """Each segment is a whole data set, brought to one size and three channels.

    `own_normalisation` shows each data set normalised by its own constants, as the paper does,
    test samples too: that tells the domain, and every table marks it. Without it the samples are
    bytes, and the learner's input step normalises them all alike.

    >>> Domains(data=("embedded", "embedded")).open(seed=0).truth().names
    {0: 'embedded', 1: 'embedded'}
    """

    data: tuple[str, ...] = ("svhn", "mnist")
    size: int = 32
    own_normalisation: bool = False

    def open(self, seed: int) -> SegmentedStream:
        """Return the stream of this seed."""
        if not self.data:
            raise ConfigError("'stream.data' names no data set")
        origins = []
        for name in self.data:
            data = read(name)
            constants = (
                (GREY if data.x.shape[1] == 1 else COLOUR) if self.own_normalisation else None
            )
            view = partial(uniform, size=self.size, constants=constants)
            origins.append(Origin.of_all(name, data, view))
        return SegmentedStream(origins, self, seed)


def uniform(
    samples: Array, size: int, constants: tuple[tuple[float, ...], tuple[float, ...]] | None
) -> Tensor:
    """Show images at one size and with three channels, as bytes or normalised."""
    x = torch.from_numpy(np.ascontiguousarray(samples))
    if x.shape[-1] != size:
        larger = F.interpolate(x.float(), (size, size), mode="bilinear", antialias=True)
        x = larger.round().clamp(0, 255).to(torch.uint8)
    if constants is not None:
        mean, std = (torch.tensor(values).view(1, -1, 1, 1) for values in constants)
        x = (x.float() / 255 - mean) / std
    return x.expand(-1, 3, -1, -1).contiguous()
