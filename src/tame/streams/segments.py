"""A stream made of segments, each drawn from one origin; any order, with returns."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from tame.engine.randomness import derive, numpy_generator
from tame.errors import ConfigError
from tame.streams.dataset import Array
from tame.streams.origin import Origin
from tame.types import Batch, HeldOut, Truth

Labels = Literal["global", "local"]


@dataclass(frozen=True)
class Course:
    """How a stream runs over its origins.

    `order` names the origin of each segment (empty: each once); a segment shows its samples
    `passes` times, shuffled anew each time. A batch may `straddle` two segments or not. Labels
    are the data set's own (`global`), or renumbered from 0 in each segment (`local`).
    """

    order: tuple[int, ...] = ()
    passes: int = 1
    batch: int = 32
    straddle: bool = False
    labels: Labels = "global"

    def __post_init__(self) -> None:
        if self.passes < 1 or self.batch < 1:
            raise ValueError("passes and batch are 1 or more")


class SegmentedStream:
    """Batches of samples, segment after segment; the same seed gives the same stream."""

    def __init__(self, origins: Sequence[Origin], course: Course, seed: int) -> None:
        order = course.order or tuple(range(len(origins)))
        for number in order:
            if not 0 <= number < len(origins):
                raise ConfigError(f"order names segment {number}; there are {len(origins)}")
        self._origins = origins
        self._order = order
        self._local = course.labels == "local"
        self._visits = [
            _visits(origins[number].train, course.passes, derive(seed, "order", place))
            for place, number in enumerate(order)
        ]
        self._ends = np.cumsum([len(part) for part in self._visits]).tolist()
        self._cuts = _cuts(self._ends, course.batch, straddle=course.straddle)

    def __len__(self) -> int:
        return len(self._cuts) - 1

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """Yield the batches from number `start` on."""
        for step in range(start, len(self)):
            parts = [self._part(*part) for part in self._parts(step)]
            if len(parts) == 1:
                yield parts[0]
            else:
                x, y = zip(*parts, strict=True)
                yield Batch(torch.cat(x), torch.cat(y))

    def __iter__(self) -> Iterator[Batch]:
        return self.batches()

    def truth(self) -> Truth:
        """Return what really happens, for benchmarks alone."""
        begins = [0, *self._ends[:-1]]
        used = sorted(set(self._order))
        return Truth(
            origins=self._order,
            starts=tuple(bisect_right(self._cuts, begin) - 1 for begin in begins),
            names={number: self._origins[number].name for number in used},
            labels={number: self._origins[number].labels for number in used},
            composition=self._composition,
            local=self._local,
        )

    def held_out(self) -> list[HeldOut]:
        """Return the held-out samples of every origin that occurs, labelled as in the stream."""
        found = []
        for number in sorted(set(self._order)):
            origin = self._origins[number]
            x, y = origin.render_held(local=self._local)
            found.append(HeldOut(number, origin.name, x, y))
        return found

    def _part(self, place: int, begin: int, end: int) -> Batch:
        origin = self._origins[self._order[place]]
        offset = self._ends[place - 1] if place else 0
        return Batch(
            *origin.render(self._visits[place][begin - offset : end - offset], self._local)
        )

    def _composition(self, step: int) -> Mapping[int, int]:
        counts: Counter[int] = Counter()
        for place, begin, end in self._parts(step):
            counts[self._order[place]] += end - begin
        return counts

    def _parts(self, step: int) -> Iterator[tuple[int, int, int]]:
        begin, end = self._cuts[step], self._cuts[step + 1]
        place = bisect_right(self._ends, begin)
        while begin < end:
            stop = min(end, self._ends[place])
            yield place, begin, stop
            begin, place = stop, place + 1


def _visits(samples: Array, passes: int, seed: int) -> Array:
    draws = numpy_generator(seed)
    return np.concatenate([draws.permutation(samples) for _ in range(passes)])


def _cuts(ends: list[int], batch: int, *, straddle: bool) -> list[int]:
    spans = [(0, ends[-1])] if straddle else list(zip([0, *ends[:-1]], ends, strict=True))
    cuts = [cut for begin, end in spans for cut in range(begin, end, batch)]
    return [*cuts, ends[-1]]
