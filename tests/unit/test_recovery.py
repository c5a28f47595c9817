"""How soon a learner is right again after a change."""

from tame.bench.recovery import recoveries
from tame.types import Truth


def found(shares, *origins: int, length=30):
    starts = tuple(range(0, length * len(origins), length))
    truth = Truth(origins, starts, {}, {}, lambda step: {})  # noqa: ARG005
    return [(one["returned"], one["batches"]) for one in recoveries(truth, shares)]


def test_the_level_is_that_of_the_last_twenty():
    learning = [0.0] * 10 + [0.8] * 20
    assert found(learning + [0.0] * 4 + [0.73] * 26, 0, 1) == [(False, 4)]
    assert found(learning + [0.0] * 4 + [0.71] * 26, 0, 1) == [(False, None)]


def test_one_lucky_batch_is_no_recovery():
    shares = [1.0] * 30 + [0.0, 1.0, 0.0, 0.0, 0.0] + [1.0] * 25
    assert found(shares, 0, 1) == [(False, 5)]


def test_never_before_the_next_change_is_never():
    shares = [1.0] * 30 + [0.2] * 30 + [0.0] + [1.0] * 29
    # after a segment that was never learned the level to reach is low
    assert found(shares, 0, 1, 0) == [(False, None), (True, 1)]


def test_batches_that_were_not_asked_are_passed_over():
    asked = [1.0 if step % 5 == 0 else None for step in range(60)]
    asked[30] = 0.0
    assert found(asked, 0, 1) == [(False, 5)]
    assert found([None] * 60, 0, 1) == [(False, None)]


def test_a_segment_like_the_one_before_is_no_change():
    assert found([1.0] * 60, 0, 0) == []


def test_a_gradual_change_has_no_moment_to_count_from():
    truth = Truth((0, 1), (0, 30), {}, {}, lambda _: {}, settled=(0, 40))
    assert recoveries(truth, [1.0] * 60) == []
