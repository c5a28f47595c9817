"""A uniform sample of everything offered, in fixed memory."""

import heapq
from typing import Any

import numpy as np
import pytest
import torch

from tame.core.reservoir import Reservoir
from tame.engine.randomness import numpy_generator


def filled(seed: int, count: int = 40, capacity: int = 10, batch: int = 7):
    reservoir = Reservoir(capacity, seed)
    for start in range(0, count, batch):
        rows = torch.arange(start, min(start + batch, count))
        reservoir.add(rows, rows * 2)
    return reservoir


def chi_square(times: Any, expected: Any):
    return float(((times - expected) ** 2 / expected).sum())


def test_every_entry_is_equally_likely():
    runs, count, capacity = 2000, 40, 10
    times = np.zeros(count)
    for seed in range(runs):
        times[filled(seed, count, capacity).columns()[0].numpy()] += 1
    # 39 degrees of freedom, less for the fixed sum within a run: 72.1 is the 0.1 % point
    assert chi_square(times, runs * capacity / count) < 72.1


def test_prefix_of_any_length_is_uniform_too():
    runs, count = 4000, 40
    times = np.zeros(count)
    for seed in range(runs):
        times[filled(seed, count).columns()[0][:2].numpy()] += 1
    assert chi_square(times, runs * 2 / count) < 72.1


def test_smaller_reservoir_is_the_prefix_of_the_larger():
    large, small = filled(3, 200, 50).columns()[0], filled(3, 200, 8).columns()[0]
    assert large[:8].tolist() == small.tolist()


def test_two_reservoirs_choose_independently():
    together = sum(
        len(set(filled(s).columns()[0].tolist()) & set(filled(s + 10_000).columns()[0].tolist()))
        for s in range(500)
    )
    assert together / 500 == pytest.approx(10 * 10 / 40, abs=0.2)


@pytest.mark.parametrize("batch", [1, 3, 10, 64, 200])
@pytest.mark.parametrize("capacity", [1, 5, 64])
def test_equals_a_heap_given_the_same_keys(batch: int, capacity: int):
    reservoir = filled(11, 200, capacity, batch)
    draws, heap = numpy_generator(11), []
    for start in range(0, 200, batch):
        rows = range(start, min(start + batch, 200))
        keys = draws.integers(0, 2**63, size=len(rows), dtype=np.int64)
        for row, key in zip(rows, keys.tolist(), strict=True):
            heapq.heappush(heap, (key, row))
            if len(heap) > capacity:
                heapq.heappop(heap)
    best = sorted(heap, reverse=True)
    rows, doubled = reservoir.columns()
    assert rows.tolist() == [row for _, row in best]
    assert doubled.tolist() == [2 * row for _, row in best]
    assert reservoir.keys().tolist() == [key for key, _ in best]
    assert reservoir.seen == 200


def test_keeps_what_it_was_given_as_it_was_given():
    reservoir = Reservoir(4, 0)
    images = torch.randint(0, 255, (9, 1, 3, 3), dtype=torch.uint8)
    reservoir.add(images, torch.arange(9, dtype=torch.int32))
    kept, numbers = reservoir.columns()
    assert kept.dtype == torch.uint8
    assert torch.equal(kept, images[numbers.long()])
    assert reservoir.nbytes() == 4 * (9 + 4 + 8)


def test_memory_is_fixed():
    reservoir = filled(0, 1000)
    rows = reservoir._columns[0]
    reservoir.add(torch.arange(500), torch.arange(500))
    assert reservoir._columns[0] is rows
    assert len(reservoir) == len(rows) == 10


@pytest.mark.parametrize("count", [0, 4, 25])
def test_resumes_exactly(count: int):
    reservoir, other = filled(5, count), Reservoir(10, 99)
    other.load_state_dict(reservoir.state_dict())
    for each in (reservoir, other):
        each.add(torch.arange(100, 130), torch.arange(30))
    assert other.keys().tolist() == reservoir.keys().tolist()
    pairs = zip(other.columns(), reservoir.columns(), strict=True)
    assert all(torch.equal(one, two) for one, two in pairs)


def test_holds_at_least_one():
    with pytest.raises(ValueError, match="1 entry or more, not 0"):
        Reservoir(0, 0)
