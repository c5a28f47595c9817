"""The e-detector: fair bets under the null, a kept promise, and power."""

import json
from typing import Any

import numpy as np
import pytest

from tame import Reading
from tame.core.detectors.betting import STAKES, Betting, Ramp, upper_bound


def run_length(detector: Betting, losses: np.ndarray):
    for number, loss in enumerate(losses.tolist(), start=1):
        if detector.update(Reading(loss)).shift:
            return number
    return len(losses)


def test_ramp_and_bets_by_hand():
    detector = Betting()
    detector._used, detector._level = Ramp(1.0, 2.0), 0.1
    detector._money = [3.0] * len(STAKES)
    found = detector._bets(2.0)  # the score is one half, five times the level
    assert found == pytest.approx([4.0 * (1 + stake * 4.0) for stake in STAKES])
    assert detector._bets(0.5) == pytest.approx([4.0 * (1 - stake) for stake in STAKES])
    assert detector._bets(99.0) == pytest.approx([4.0 * (1 + stake * 9.0) for stake in STAKES])


def test_money_less_its_income_is_a_martingale_where_the_level_is_exact():
    """With the expected score itself as level, each bettor's mean wealth after t bets is t."""
    draws, steps, runs = np.random.default_rng(0), 5, 20_000
    scores = draws.beta(0.5, 4.5, (runs, steps))  # expected score 0.1
    detector = Betting(false_alarms_every=1e12)
    wealth = []
    for row in scores.tolist():
        detector._used, detector._level = Ramp(0.0, 1.0), 0.1
        detector._money = [0.0] * len(STAKES)
        for score in row:
            detector._money = detector._bets(score)
        wealth.append(detector._money)
    means, spread = np.mean(wealth, 0), np.std(wealth, 0) / np.sqrt(runs)
    assert np.all(np.abs(means - steps) < 4 * spread)
    assert np.all(spread < 0.6)


@pytest.mark.parametrize("shape", [(1, 1), (0.2, 2.0), (0.05, 5.0)])
def test_upper_bound_covers_and_is_not_idle(shape: Any):
    draws, count, risk = np.random.default_rng(1), 128, 0.1
    mean = shape[0] / sum(shape)
    found = [upper_bound(draws.beta(*shape, count), risk) for _ in range(500)]
    assert np.mean(np.array(found) < mean) <= risk
    assert np.median(found) < mean + 0.15


def test_upper_bound_covers_scores_that_depend_on_the_past():
    """The bound is on the average of what was expected at each step, not on a common mean."""
    draws, misses = np.random.default_rng(2), 0
    for _ in range(300):
        expected, scores, last = [], [], 0.0
        for _ in range(100):
            expected.append(0.05 + 0.5 * last)
            last = float(draws.random() < expected[-1])
            scores.append(last)
        misses += upper_bound(np.array(scores), 0.1) < np.mean(expected)
    assert misses <= 30


@pytest.mark.parametrize("noise", ["exponential", "lognormal", "cauchy"])
def test_run_length_is_at_least_the_promise(noise: str):
    promise, longest, runs = 100.0, 4_000, 60
    draws = np.random.default_rng(7)
    make = {
        "exponential": lambda: draws.exponential(1.0, longest),
        "lognormal": lambda: draws.lognormal(0.0, 1.5, longest),
        "cauchy": lambda: np.abs(draws.standard_cauchy(longest)),
    }[noise]
    lengths = [run_length(Betting(false_alarms_every=promise), make()) for _ in range(runs)]
    low = np.mean(lengths) - 2 * np.std(lengths) / np.sqrt(runs)
    assert low >= 0.95 * promise  # censored at 4,000, which only lowers the mean
    within = np.mean(np.array(lengths) <= 50)
    assert within <= 0.05 + 50 / promise + 0.1


def test_a_level_that_is_too_low_breaks_the_promise():
    """The condition is needed: bet against half the expected score and alarms come too early."""
    draws, lengths = np.random.default_rng(3), []
    for _ in range(40):
        detector = Betting(false_alarms_every=100.0)
        detector._used, detector._level, detector._size = Ramp(0.0, 1.0), 0.05, 10_000
        lengths.append(run_length(detector, draws.beta(0.5, 4.5, 2_000)))
    assert np.mean(lengths) < 80


def test_greater_promise_waits_longer_and_is_found_all_the_same():
    delays = []
    for promise in (1e3, 1e7):
        detector, draws = Betting(false_alarms_every=promise), np.random.default_rng(0)
        for loss in draws.normal(1.0, 0.1, 1000):
            assert not detector.update(Reading(loss)).shift
        delays.append(run_length(detector, draws.normal(2.0, 0.1, 30)))
    assert delays[0] < delays[1] < 12


def test_blocks_double_and_each_uses_the_ramp_laid_before_it():
    detector, draws = Betting(), np.random.default_rng(0)
    ramps, ends = [], []
    for step in range(20 + 32 + 64 + 128 + 1):
        before = detector._ramp
        detector.update(Reading(draws.exponential()))
        if detector._ramp is not before:
            ends.append(step + 1)
            assert detector._used == before
            ramps.append(detector._ramp)
    assert ends == [20, 52, 116, 244]
    assert detector._blocks == 3


def test_resumed_in_the_middle_of_a_block():
    detector, other = Betting(), Betting()
    draws = np.random.default_rng(5)
    for loss in draws.exponential(1.0, 150):
        detector.update(Reading(loss, 0.1, 32))
    other.load_state_dict(json.loads(json.dumps(detector.state_dict())))
    for loss in draws.exponential(1.2, 600):
        assert other.update(Reading(loss)) == detector.update(Reading(loss))
    assert other.state_dict() == detector.state_dict()


@pytest.mark.parametrize("count", [1, 2, 3, 30, 2000])
def test_rebased_on_any_number_of_readings(count: int):
    detector = Betting()
    detector.rebase([Reading(1.0 + 0.1 * (step % 3)) for step in range(count)])
    assert detector.accepts(Reading(1.0))
    assert len(detector.state_dict()["block"]) <= 512


@pytest.mark.parametrize(
    "wrong",
    [
        {"false_alarms_every": 0.5},
        {"error": 1.0},
        {"tolerance": 1.0},
        {"floor": 0.0},
        {"burn_in": 0},
    ],
)
def test_impossible_settings_are_refused(wrong: dict[str, Any]):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Betting(**wrong)
