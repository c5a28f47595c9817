"""Reservoirs at rest: nothing of them is lost, and a cap in bytes holds."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from worlds import a, b, c, feed, small_tame

from tame import Magnitude, NetworkSelector
from tame.checks.failure import difference
from tame.core import memories
from tame.core.joined import Joined
from tame.core.memories import Memories
from tame.core.reservoir import Reservoir


def filled(seed: int, count: int, capacity: int = 10):
    reservoir = Reservoir(capacity, seed)
    for start in range(0, count, 7):
        rows = torch.arange(start, min(start + 7, count))
        reservoir.add(rows.float().unsqueeze(1).expand(-1, 3), rows)
    return reservoir


def many(counts: tuple[int, ...] = (0, 3, 10, 40, 25)):
    """Return reservoirs of several sizes, one of them empty, by id."""
    return {7 * seed: filled(seed, count) for seed, count in enumerate(counts)}


@pytest.fixture(params=[1, 400, 2**24], ids=["a block each", "several blocks", "one block"])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(memories, "BLOCK", request.param)
    return request.param


def put(reservoirs: dict[int, Reservoir]):
    made = Memories()
    made.put(list(reservoirs), list(reservoirs.values()))
    return made


def same(one: Reservoir, other: Reservoir):
    return difference(one.state_dict(), other.state_dict()) is None


@pytest.mark.usefixtures("block")
def test_every_reservoir_comes_back_and_goes_on_the_same():
    reservoirs = many()
    made = put(reservoirs)
    for number, reservoir in reservoirs.items():
        found = made.take(number, 10)
        assert same(found, reservoir)
        for each in (found, reservoir):
            each.add(torch.ones(30, 3), torch.arange(30))
        assert same(found, reservoir)


@pytest.mark.usefixtures("block")
def test_what_is_taken_is_a_copy():
    made = put(many())
    made.take(21, 10).add(torch.ones(50, 3), torch.arange(50))
    assert same(made.take(21, 10), many()[21])


@pytest.mark.usefixtures("block")
def test_one_is_dropped_and_the_others_stay():
    made, reservoirs = put(many()), many()
    made.drop(14)
    with pytest.raises(KeyError):
        made.take(14, 10)
    assert all(same(made.take(n, 10), kept) for n, kept in reservoirs.items() if n != 14)
    made.put([14], [reservoirs[14]])
    assert all(same(made.take(n, 10), kept) for n, kept in reservoirs.items())


@pytest.mark.usefixtures("block")
def test_thinning_at_rest_is_thinning():
    made, reservoirs = put(many()), many()
    made.thin(4)
    for number, reservoir in reservoirs.items():
        reservoir.thin(4)
        found = made.take(number, 4)
        assert same(found, reservoir)
        assert len(found) == min(4, reservoir.seen)


@pytest.mark.usefixtures("block")
def test_a_saved_state_is_the_same_however_the_blocks_lie():
    reservoirs = many()
    made, numbers = put(reservoirs), list(reservoirs)
    state = made.state(numbers)
    assert difference(state, Joined.of(reservoirs.values()).state()) is None
    found = Memories.restore(state, np.array(numbers))
    assert difference(found.state(numbers), state) is None
    assert all(same(found.take(number, 10), kept) for number, kept in reservoirs.items())


def test_bytes_and_samples_are_those_of_the_reservoirs(block: int):
    reservoirs = many()
    made = put(reservoirs)
    assert made.nbytes() == sum(kept.nbytes() for kept in reservoirs.values())
    assert made.samples() == 0 + 3 + 10 + 10 + 10
    largest = max(kept.nbytes() for kept in reservoirs.values())
    assert all(joined.nbytes() <= max(block, largest) for _, joined in made._blocks)


@pytest.mark.parametrize("name", ["seen", "sizes", "keys", "generators", "columns"])
def test_a_state_whose_parts_do_not_fit_is_refused(name: str):
    reservoirs = many()
    state, numbers = put(reservoirs).state(list(reservoirs)), np.array(list(reservoirs))
    part = state[name]
    state[name] = [part[0][1:], *part[1:]] if name == "columns" else part[1:]
    with pytest.raises(ValueError, match=r"damaged|reservoirs for"):
        Memories.restore(state, numbers)


def test_thinned_reservoirs_stay_uniform():
    """Thinned at rest half way through the stream, every entry is as likely to be kept."""
    runs, count = 1500, 40
    times = np.zeros(count)
    for seed in range(runs):
        made = put({0: filled(seed, 20)})
        made.thin(5)
        reservoir = made.take(0, 5)
        reservoir.add(torch.ones(20, 3), torch.arange(20, 40))
        times[reservoir.columns()[1].numpy()] += 1
    expected = runs * 5 / count
    # 39 degrees of freedom: 72.1 is the 0.1 % point
    assert float(((times - expected) ** 2 / expected).sum()) < 72.1


def test_cap_in_bytes_holds_at_every_step():
    cap = 6000
    learner = small_tame(
        reservoir_bytes=cap,
        selector=NetworkSelector(memory=16),
        pruner=Magnitude(
            sparsity=0.5, memory=64, retraining=small_tame().settings.pruner.retraining
        ),
    )
    for number, batch in enumerate(a() + b() + c()):
        learner.observe(batch)
        assert learner.sizes().sample_bytes <= cap
        if number % 60 == 59:
            learner.consolidate()
    sizes = [len(expert.memory) for expert in learner._pool.experts]
    assert len(sizes) == 3
    assert len(set(sizes)) == 1
    assert 1 < sizes[0] < 64
    assert len(learner._pool.shelf) == 2
    assert learner.consolidate().thinned == sizes[0]


def test_without_a_cap_reservoirs_fill_up():
    learner = small_tame()
    feed(learner, a() + b())
    assert learner.consolidate().thinned == 0
    assert [len(expert.memory) for expert in learner._pool.experts] == [64, 64]
