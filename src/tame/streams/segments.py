"""A stream made of segments, each drawn from one origin; any order, with returns."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from tame.engine.randomness import derive, numpy_generator
from tame.errors import ConfigError
from tame.streams.course import Course
from tame.streams.dataset import Array
from tame.streams.imbalance import thinned
from tame.streams.origin import Origin
from tame.streams.rotation import turned
from tame.streams.schedule import Pool, schedule
from tame.types import Batch, HeldOut, Truth


class SegmentedStream:
    """Batches of samples, segment after segment; the same seed gives the same stream.

    Segments draw from their own origin alone, unless `pools` says which samples of which origins
    each kind of segment holds.
    """

    def __init__(
        self,
        origins: Sequence[Origin],
        course: Course,
        seed: int,
        pools: Sequence[Pool] | None = None,
    ) -> None:
        self._origins = origins
        self._course = course
        self._seed = seed
        self._blurry = pools is not None
        self._order = course.sequence(len(origins), seed)
        if self._blurry and set(self._order) != set(range(len(origins))):
            raise ConfigError("a blurry stream shows something of every segment: order names all")
        for origin in origins:
            course.burst.refuse(len(origin.labels))
        self._plan = schedule(self._thinned(pools or _own(origins)), self._order, course, seed)
        self._bursts = tuple(course.burst.spans(self._plan.starts, self._plan.settled, len(self)))
        self._spoiled = {step for begin, end in self._bursts for step in range(begin, end)}
        self._shown = {
            owner: np.flatnonzero(self._plan.owners == owner) if course.rotation else np.empty(0)
            for owner in sorted(set(self._order))
        }

    def __len__(self) -> int:
        return len(self._plan.cuts) - 1

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """Yield the batches from number `start` on."""
        for step in range(start, len(self)):
            yield self._batch(step)

    def __iter__(self) -> Iterator[Batch]:
        return self.batches()

    def truth(self) -> Truth:
        """Return what really happens, for benchmarks alone."""
        return Truth(
            origins=self._order,
            starts=self._plan.starts,
            names={number: self._origins[number].name for number in self._shown},
            labels={number: self._origins[number].labels for number in self._shown},
            composition=self._composition,
            local=self._local,
            settled=self._plan.settled,
            bursts=self._bursts,
            alike=_alike({number: self._origins[number] for number in self._shown}),
            blurry=self._blurry,
            owners=self._owners,
        )

    def held_out(self) -> list[HeldOut]:
        """Return the held-out samples of every origin that occurs, labelled as in the stream.

        Where images turn, these have angles spread evenly over all that the stream shows.
        """
        found = []
        for number in self._shown:
            origin = self._origins[number]
            x, y = origin.render_held(local=self._local)
            if self._course.rotation:
                draws = numpy_generator(derive(self._seed, "held angles", number))
                places = torch.from_numpy((draws.permutation(len(x)) + 0.5) / len(x))
                x = turned(x, self._course.rotation * places)
            found.append(HeldOut(number, origin.name, x, y))
        return found

    @property
    def _local(self) -> bool:
        return self._course.labels == "local"

    def _batch(self, step: int) -> Batch:
        begin, end = self._plan.cuts[step : step + 2].tolist()
        numbers, owners = self._plan.numbers[begin:end], self._plan.owners[begin:end]
        if (owners == owners[0]).all():
            return Batch(*self._part(int(owners[0]), numbers, step))
        order = np.argsort(owners, kind="stable")
        present = np.unique(owners).tolist()
        parts = [self._part(owner, numbers[owners == owner], step) for owner in present]
        x, y = (torch.cat(column) for column in zip(*parts, strict=True))
        back = torch.from_numpy(np.argsort(order))
        return Batch(x[back], y[back])

    def _part(self, owner: int, numbers: Array, step: int) -> tuple[Tensor, Tensor]:
        origin = self._origins[owner]
        x, y = origin.render(numbers, self._local)
        if self._course.rotation:
            shown = self._shown[owner]
            before = np.searchsorted(shown, self._plan.cuts[step])
            x = turned(x, self._course.rotation * float(before) / len(shown))
        if step in self._spoiled:
            told = range(len(origin.labels)) if self._local else origin.labels
            seed = derive(self._seed, "burst", step, owner)
            x, y = self._course.burst.spoil(x, y, told, seed)
        return x, y

    def _composition(self, step: int) -> Mapping[int, int]:
        begin, end = self._plan.cuts[step : step + 2].tolist()
        owners, counts = np.unique(self._plan.owners[begin:end], return_counts=True)
        return dict(zip(owners.tolist(), counts.tolist(), strict=True))

    def _owners(self, step: int) -> list[int]:
        begin, end = self._plan.cuts[step : step + 2].tolist()
        found: list[int] = self._plan.owners[begin:end].tolist()
        return found

    def _thinned(self, pools: Sequence[Pool]) -> Sequence[Pool]:
        rule = self._course.imbalance
        if not rule.present:
            return pools
        found = []
        for place, pool in enumerate(pools):
            labels = self._labels(pool)
            classes = self._origins[place].labels
            classes += tuple(sorted(set(labels.tolist()) - set(classes)))
            most = max(int(np.count_nonzero(labels == label)) for label in classes)
            quotas = rule.quotas(most, len(classes), place, len(pools))
            kept = thinned(labels, classes, quotas, derive(self._seed, "imbalance", place))
            found.append(Pool(pool.numbers[kept], pool.owners[kept]))
        return found

    def _labels(self, pool: Pool) -> Array:
        labels = np.empty(len(pool.numbers), dtype=np.int64)
        for owner in np.unique(pool.owners).tolist():
            labels[pool.owners == owner] = self._origins[owner].data.y[
                pool.numbers[pool.owners == owner]
            ]
        return labels


def _alike(origins: Mapping[int, Origin]) -> dict[int, int]:
    """Return the origins that show what an earlier one shows, and which that is."""
    first: dict[tuple[str, str], int] = {}
    for number, origin in origins.items():
        first.setdefault((origin.data.name, origin.name), number)
    found = {n: first[origin.data.name, origin.name] for n, origin in origins.items()}
    return {number: other for number, other in found.items() if number != other}


def _own(origins: Sequence[Origin]) -> list[Pool]:
    return [
        Pool(origin.train, np.full(len(origin.train), number, dtype=np.int32))
        for number, origin in enumerate(origins)
    ]
