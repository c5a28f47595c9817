"""Which sample fills each slot of a stream, and where its batches begin and end."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tame.engine.randomness import derive, numpy_generator
from tame.errors import ConfigError
from tame.streams.course import Course
from tame.streams.dataset import Array


class Pool(NamedTuple):
    """The samples one kind of segment draws from: their numbers, and the origin of each."""

    numbers: Array
    owners: Array


@dataclass(frozen=True)
class Schedule:
    """Slot `i` holds sample `numbers[i]` of origin `owners[i]`; batch `k` ends at `cuts[k + 1]`.

    `starts[i]` is the first batch with a slot of the segment at place `i`, `settled[i]` the first
    without any slot of the segment before it.
    """

    numbers: Array
    owners: Array
    cuts: Array
    starts: tuple[int, ...]
    settled: tuple[int, ...]


def schedule(pools: Sequence[Pool], order: Sequence[int], course: Course, seed: int) -> Schedule:
    """Lay out the segments of a course, one after the other, and blend them."""
    for kind in order:
        if not len(pools[kind].numbers):
            raise ConfigError(f"segment {kind} has no samples to show")
    lengths = [
        wanted or course.passes * len(pools[kind].numbers)
        for kind, wanted in zip(order, course.samples(len(order)), strict=True)
    ]
    ends = np.cumsum(lengths).tolist()
    numbers, owners = _filled([pools[kind] for kind in order], lengths, seed)
    firsts, lasts = [0, *ends[:-1]], [end - 1 for end in ends[:-1]]
    for place, (zone, moved) in enumerate(_blends(ends, course), start=1):
        numbers[zone] = numbers[zone][moved]
        owners[zone] = owners[zone][moved]
        half = len(moved) // 2
        firsts[place] = zone.start + int(np.argmax(moved >= half))
        lasts[place - 1] = zone.stop - 1 - int(np.argmax(moved[::-1] < half))
    cuts = np.array(_cuts(ends, course, derive(seed, "batch sizes")), dtype=np.int64)
    starts = _batch_of(cuts, firsts)
    settled = (0, *(batch + 1 for batch in _batch_of(cuts, lasts)))
    return Schedule(numbers, owners, cuts, starts, settled)


def _filled(pools: Sequence[Pool], lengths: Sequence[int], seed: int) -> Pool:
    """Return the slots of all segments, each filled pass by pass, in an order of its own."""
    highest = max(int(pool.numbers.max(initial=0)) for pool in pools)
    whole = Pool(
        np.empty(sum(lengths), np.min_scalar_type(-1 - highest)),
        np.empty(sum(lengths), np.min_scalar_type(-1 - max(int(p.owners.max()) for p in pools))),
    )
    slot = 0
    for place, (pool, length) in enumerate(zip(pools, lengths, strict=True)):
        draws = numpy_generator(derive(seed, "order", place))
        end = slot + length
        while slot < end:
            chosen = draws.permutation(len(pool.numbers))[: end - slot]
            span = slice(slot, slot + len(chosen))
            whole.numbers[span], whole.owners[span] = pool.numbers[chosen], pool.owners[chosen]
            slot = span.stop
    return whole


def _blends(ends: list[int], course: Course) -> Iterator[tuple[slice, Array]]:
    """Yield the slots around each boundary, and the order their samples take there.

    Of the first m of 2h slots, m squared over 4h (rounded) are of the new segment: its share
    rises linearly from 0 to 1, and each side gives h samples.
    """
    half = course.blend * course.batch // 2
    if not half:
        return
    _refuse_overlap([0, *ends], half, course)
    slots = np.arange(2 * half + 1)
    is_new = np.diff(np.floor(slots**2 / (4 * half) + 0.5)) > 0
    moved = np.empty(2 * half, dtype=np.int64)
    moved[~is_new], moved[is_new] = np.arange(half), np.arange(half, 2 * half)
    for end in ends[:-1]:
        yield slice(end - half, end + half), moved


def _refuse_overlap(bounds: list[int], half: int, course: Course) -> None:
    for place, (begin, end) in enumerate(pairwise(bounds)):
        sides = (place > 0) + (place < len(bounds) - 2)
        if end - begin < sides * half:
            raise ConfigError(
                f"segment {place} has {end - begin} samples, too few for blends over "
                f"{course.blend} batches of {course.batch}"
            )


def _cuts(ends: list[int], course: Course, seed: int) -> list[int]:
    bounds = [0, ends[-1]] if course.straddle else [0, *ends]
    draws = numpy_generator(seed)
    cuts = [cut for begin, end in pairwise(bounds) for cut in _within(begin, end, course, draws)]
    return [*cuts, ends[-1]]


def _within(begin: int, end: int, course: Course, draws: np.random.Generator) -> Iterable[int]:
    """Return where batches begin between two slots."""
    if not course.smallest_batch:
        return range(begin, end, course.batch)
    most = -(-(end - begin) // course.smallest_batch)
    sizes = draws.integers(course.smallest_batch, course.batch + 1, most)
    begins = begin + np.concatenate([[0], np.cumsum(sizes)])
    return [int(cut) for cut in begins[begins < end]]


def _batch_of(cuts: Array, slots: list[int]) -> tuple[int, ...]:
    return tuple((np.searchsorted(cuts, slots, side="right") - 1).tolist())
