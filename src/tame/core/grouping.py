"""Samples grouped by the expert they go to; many small groups side by side."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import torch
from torch import Tensor

from tame.engine.sending import sent
from tame.engine.sizes import usual


class Limits(NamedTuple):
    """How many samples an expert is asked about at once, experts at once, and samples of them all.

    On a processor small pieces stay in its caches; on a GPU starting an operation costs more, and
    so does a number of samples that was not met before: `even` repeats some up to a usual one.
    """

    chunk: int
    many: int = 64
    together: int = 2**14
    even: bool = False


class Group(NamedTuple):
    """Experts by position, and the samples of each: (experts, samples) numbers of rows.

    Where an expert has fewer samples than asked for its last one is repeated.
    """

    positions: list[int]
    rows: Tensor


class _Stretch(NamedTuple):
    position: int
    begin: int
    length: int
    kind: int = -1


def grouped(
    chosen: Tensor,
    limits: Limits,
    kinds: Sequence[int],
    pays: Callable[[int], bool],
) -> Iterator[Group]:
    """Yield every sample once, by the position of the expert chosen for it.

    Experts of one of the `kinds` (by position) whose numbers of samples are so small that it `pays`
    come in one group; every other expert comes alone, in chunks, and so does one of no kind (-1).

    >>> chosen = torch.tensor([1, 0, 1, 2])
    >>> limits, kinds = Limits(8), [0, 0, 0]
    >>> [group.rows.tolist() for group in grouped(chosen, limits, kinds, lambda _: False)]
    [[[1]], [[0, 2]], [[3]]]
    >>> [group.rows.tolist() for group in grouped(chosen, limits, kinds, lambda _: True)]
    [[[1, 1], [3, 3], [0, 2]]]
    """
    order = chosen.argsort(stable=True)
    alone, small = _stretches(chosen.bincount(minlength=len(kinds)).tolist(), kinds, pays)
    for one in alone:
        for part in order[one.begin : one.begin + one.length].split(limits.chunk):
            more = usual(len(part), limits.chunk) - len(part) if limits.even else 0
            rows = torch.cat([part, part[-1:].expand(more)]) if more else part
            yield Group([one.position], rows.unsqueeze(0))
    for team in _teams(small, limits):
        yield Group([stretch.position for stretch in team], _rows(order, team))


def _stretches(
    counts: Sequence[int], kinds: Sequence[int], pays: Callable[[int], bool]
) -> tuple[list[_Stretch], list[_Stretch]]:
    """Return the samples of each expert: of those that come alone, and of those in groups."""
    begin = 0
    alone: list[_Stretch] = []
    small: list[_Stretch] = []
    for position, (count, kind) in enumerate(zip(counts, kinds, strict=True)):
        if count and kind >= 0 and pays(count):
            small.append(_Stretch(position, begin, count, kind))
        elif count:
            alone.append(_Stretch(position, begin, count))
        begin += count
    return alone, small


def _teams(small: Sequence[_Stretch], limits: Limits) -> Iterator[list[_Stretch]]:
    """Put stretches of one kind and like lengths together, not too many samples at once."""
    ranked = sorted(small, key=lambda one: (one.kind, one.length))
    for _, alike in groupby(ranked, key=lambda one: one.kind):
        team: list[_Stretch] = []
        for stretch in alike:
            samples = (len(team) + 1) * stretch.length
            full = len(team) == limits.many or samples > limits.together
            if team and full:
                yield team
                team = []
            team.append(stretch)
        yield team


def _rows(order: Tensor, team: Sequence[_Stretch]) -> Tensor:
    spans = sent([(stretch.begin, stretch.length) for stretch in team], order.device)
    begins, last = spans[:, :1], spans[:, 1:] - 1
    places = torch.arange(max(stretch.length for stretch in team), device=order.device)
    return order[begins + torch.minimum(places, last)]
