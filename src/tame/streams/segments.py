"""A stream made of segments, each drawn from one origin; any order, with returns."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tame.engine.randomness import derive, numpy_generator
from tame.errors import ConfigError
from tame.streams.dataset import Array, Dataset
from tame.types import Batch, HeldOut, Truth


@dataclass(frozen=True)
class Origin:
    """A distribution: which samples of a data set belong to it, and how it orders their pixels."""

    name: str
    train: Array
    held: Array
    pixels: Array | None = None

    def render(self, x: Array, chosen: Array) -> Tensor:
        """Return the chosen samples as this origin shows them."""
        samples = x[chosen]
        if self.pixels is not None:
            flat = samples.reshape(len(samples), -1)
            samples = flat[:, self.pixels].reshape(samples.shape)
        return torch.from_numpy(np.ascontiguousarray(samples))


@dataclass(frozen=True)
class Course:
    """How a stream runs over its origins.

    `order` names the origin of each segment (empty: each once); a segment shows its samples
    `passes` times, shuffled anew each time. A batch may `straddle` two segments or not.
    """

    order: tuple[int, ...] = ()
    passes: int = 1
    batch: int = 32
    straddle: bool = False

    def __post_init__(self) -> None:
        if self.passes < 1 or self.batch < 1:
            raise ValueError("passes and batch are 1 or more")


class SegmentedStream:
    """Batches of a data set, segment after segment; the same seed gives the same stream."""

    def __init__(self, data: Dataset, origins: Sequence[Origin], course: Course, seed: int) -> None:
        order = course.order or tuple(range(len(origins)))
        for number in order:
            if not 0 <= number < len(origins):
                raise ConfigError(f"order names segment {number}; there are {len(origins)}")
        self._data = data
        self._origins = origins
        self._order = order
        visits = [
            _visits(origins[number].train, course.passes, derive(seed, "order", place))
            for place, number in enumerate(order)
        ]
        self._visits = np.concatenate(visits)
        self._ends = np.cumsum([len(part) for part in visits]).tolist()
        self._cuts = _cuts(self._ends, course.batch, straddle=course.straddle)

    def __len__(self) -> int:
        return len(self._cuts) - 1

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """Yield the batches from number `start` on."""
        for step in range(start, len(self)):
            parts = list(self._parts(step))
            x = [self._origins[o].render(self._data.x, self._visits[a:b]) for o, a, b in parts]
            chosen = self._visits[self._cuts[step] : self._cuts[step + 1]]
            yield Batch(
                torch.cat(x) if len(x) > 1 else x[0], torch.from_numpy(self._data.y[chosen])
            )

    def __iter__(self) -> Iterator[Batch]:
        return self.batches()

    def truth(self) -> Truth:
        """Return what really happens, for benchmarks alone."""
        begins = [0, *self._ends[:-1]]
        used = sorted(set(self._order))
        labels = {o: np.unique(self._data.y[self._origins[o].train]).tolist() for o in used}
        return Truth(
            origins=self._order,
            starts=tuple(bisect_right(self._cuts, begin) - 1 for begin in begins),
            names={o: self._origins[o].name for o in used},
            labels={o: tuple(found) for o, found in labels.items()},
            composition=self._composition,
        )

    def held_out(self) -> list[HeldOut]:
        """Return the held-out samples of every origin that occurs."""
        found = []
        for number in sorted(set(self._order)):
            origin = self._origins[number]
            x = origin.render(self._data.held_x, origin.held)
            y = torch.from_numpy(self._data.held_y[origin.held])
            found.append(HeldOut(number, origin.name, x, y))
        return found

    def _composition(self, step: int) -> Mapping[int, int]:
        counts: Counter[int] = Counter()
        for origin, begin, end in self._parts(step):
            counts[origin] += end - begin
        return counts

    def _parts(self, step: int) -> Iterator[tuple[int, int, int]]:
        begin, end = self._cuts[step], self._cuts[step + 1]
        place = bisect_right(self._ends, begin)
        while begin < end:
            stop = min(end, self._ends[place])
            yield self._order[place], begin, stop
            begin, place = stop, place + 1


def _visits(samples: Array, passes: int, seed: int) -> Array:
    draws = numpy_generator(seed)
    return np.concatenate([draws.permutation(samples) for _ in range(passes)])


def _cuts(ends: list[int], batch: int, *, straddle: bool) -> list[int]:
    spans = [(0, ends[-1])] if straddle else list(zip([0, *ends[:-1]], ends, strict=True))
    cuts = [cut for begin, end in spans for cut in range(begin, end, batch)]
    return [*cuts, ends[-1]]
