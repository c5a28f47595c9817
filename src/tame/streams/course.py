"""How a stream runs over its origins: order, lengths, batches, and what makes it hard."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from tame.engine.randomness import derive, numpy_generator
from tame.errors import ConfigError
from tame.streams.burst import Burst
from tame.streams.imbalance import Imbalance

Labels = Literal["global", "local"]


@dataclass(frozen=True)
class Course:
    """How a stream runs over its origins; every option goes with every other.

    `order` names the origin of each segment (empty: each once); `drawn` draws so many segments
    from the seed instead, never the same twice running. A segment shows its samples `passes`
    times, shuffled anew each time, or goes on for `lengths` batches (one number for all segments
    or one for each; 0: as `passes` says).

    A batch has `batch` samples, or a number drawn between `smallest_batch` and that; it may
    `straddle` two segments or not. Labels are the data set's own (`global`), or renumbered from 0
    in each segment (`local`).

    Over `blend` batches a segment gives way to the next, its share falling linearly. `rotation`
    turns the images of an origin by so many degrees, little by little from its first batch to its
    last. `imbalance` thins out classes and segments, `burst` spoils a few batches now and then.
    """

    order: tuple[int, ...] = ()
    drawn: int = 0
    lengths: tuple[int, ...] = ()
    passes: int = 1
    batch: int = 32
    smallest_batch: int = 0
    straddle: bool = False
    labels: Labels = "global"
    blend: int = 0
    rotation: float = 0.0
    imbalance: Imbalance = field(default_factory=Imbalance)
    burst: Burst = field(default_factory=Burst)

    def __post_init__(self) -> None:
        if self.passes < 1 or self.batch < 1:
            raise ValueError("passes and batch are 1 or more")
        if not 0 <= self.smallest_batch <= self.batch:
            raise ValueError(f"smallest_batch is between 0 and batch, not {self.smallest_batch}")
        if min(self.drawn, self.blend, *self.lengths, 0) < 0:
            raise ValueError("drawn, blend and lengths are 0 or more")
        if self.order and self.drawn:
            raise ValueError("order and drawn exclude each other")

    def sequence(self, kinds: int, seed: int) -> tuple[int, ...]:
        """Return which of so many kinds of segment comes at each place.

        >>> Course(drawn=8).sequence(3, seed=0)
        (0, 1, 2, 0, 2, 1, 2, 0)
        """
        for number in self.order:
            if not 0 <= number < kinds:
                raise ConfigError(f"order names segment {number}; there are {kinds}")
        if not self.drawn:
            return self.order or tuple(range(kinds))
        draws = numpy_generator(derive(seed, "drawn order"))
        steps = draws.integers(min(1, kinds - 1), kinds, self.drawn)
        steps[0] = draws.integers(kinds)
        return tuple((np.cumsum(steps) % kinds).tolist())

    def samples(self, places: int) -> list[int]:
        """Return how many samples the segment at each place shows; 0: as many as `passes` say."""
        if len(self.lengths) not in {0, 1, places}:
            raise ConfigError(f"{len(self.lengths)} lengths do not fit {places} segments")
        lengths = self.lengths or (0,)
        return [lengths[place % len(lengths)] * self.batch for place in range(places)]
