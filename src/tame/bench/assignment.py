"""Whose samples the experts' reservoirs hold: what is left of changes that were noticed late."""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from torch import Tensor

from tame.bench.metrics import in_burst, same_as
from tame.bench.record import NOBODY
from tame.methods.single import label_hash
from tame.types import Stream, Truth

MOST = 200_000  # samples of a stream that is looked through


@runtime_checkable
class Remembers(Protocol):
    """A learner whose experts keep samples."""

    @property
    def expert_ids(self) -> tuple[int, ...]: ...
    def remembered(self, expert: int) -> tuple[Tensor, Tensor]: ...


def misplaced(learner: Any, stream: Stream, stands: Mapping[int, int]) -> dict[str, int] | None:
    """Count the samples that experts keep, and those of another origin than an expert stands for.

    A sample is known again by its bytes and label; one that several origins show is in its place
    with any of them, one that only a burst showed with nobody. None where that cannot be said: a
    learner that keeps no samples, or not as they came, a stream of more than 200,000 samples or
    one that does not tell.
    """
    truth = stream.truth()
    if truth.owners is None or not isinstance(learner, Remembers):
        return None
    if sum(sum(truth.composition(step).values()) for step in range(len(stream))) > MOST:
        return None
    kept = {expert: _hashes(*learner.remembered(expert)) for expert in learner.expert_ids}
    places = origins_of(np.concatenate(list(kept.values())), stream, truth) if kept else {}
    if not all(places.values()):
        return None
    wrong = sum(
        same_as(truth, stands[expert]) not in places[number]
        for expert, numbers in kept.items()
        for number in numbers.tolist()
    )
    return {"kept": sum(map(len, kept.values())), "misplaced": wrong}


def origins_of(numbers: np.ndarray, stream: Stream, truth: Truth) -> dict[int, set[int]]:
    """Return for each sample, by its number, the origins that show it (-1: a burst does)."""
    wanted = np.unique(numbers)
    found: dict[int, set[int]] = {number: set() for number in wanted.tolist()}
    for seen, owners in _shown(stream, truth):
        for place in np.flatnonzero(np.isin(seen, wanted)).tolist():
            found[int(seen[place])].add(owners[place])
    return found


def _shown(stream: Stream, truth: Truth) -> Iterator[tuple[np.ndarray, list[int]]]:
    assert truth.owners is not None  # noqa: S101 (asked before)
    for step, batch in enumerate(stream.batches()):
        owners = [same_as(truth, origin) for origin in truth.owners(step)]
        burst = in_burst(truth, step)
        yield _hashes(batch.x, batch.y), [NOBODY] * len(owners) if burst else owners


def _hashes(x: Tensor, y: Tensor) -> np.ndarray:
    return label_hash(x, y) if len(y) else np.empty(0, dtype=np.uint64)
