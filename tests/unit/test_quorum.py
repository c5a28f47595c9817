"""The rule that counts the samples behind a rise."""

import json
from typing import Any

import numpy as np
import pytest

from tame import Reading
from tame.core.detectors.quorum import Quorum


def batch(samples: list[float]):
    """Return the reading of a batch with these losses."""
    values = np.array(samples)
    error = values.std(ddof=1) / np.sqrt(len(values))
    return Reading(float(values.mean()), float(error), len(values))


def converged(detector: Quorum, batches: int = 200):
    for step in range(batches):
        assert not detector.update(Reading(0.02 + 0.01 * (step % 2), 0.005, 32)).shift
    return detector


@pytest.mark.parametrize(("wrong", "shift"), [(1, False), (3, False), (8, True), (32, True)])
def test_samples_decide_and_not_how_wrong_they_are(wrong: int, *, shift: bool):
    for loss in (3.0, 300.0):
        reading = batch([loss] * wrong + [0.02] * (32 - wrong))
        assert converged(Quorum()).update(reading).shift is shift


@pytest.mark.parametrize("wrong", [1, 2, 4])
def test_votes_are_the_samples_that_carry_the_rise_beyond_the_first(wrong: int):
    verdict = converged(Quorum()).update(batch([9.0] * wrong + [0.02] * (32 - wrong)))
    assert verdict.statistic == pytest.approx(wrong - 1, rel=0.2, abs=0.1)


def test_single_samples_must_agree_one_after_another():
    detector = Quorum()
    for loss in np.random.default_rng(0).exponential(0.1, 200):
        assert not detector.update(Reading(loss)).shift
    alarms = [detector.update(Reading(5.0)).shift for _ in range(8)]
    assert alarms == [False] * 7 + [True]  # one vote a sample, and 8 > 7


def test_ordinary_batches_outvote_a_suspicion():
    detector = converged(Quorum())
    suspicion = batch([9.0] * 4 + [0.02] * 28)
    for _ in range(5):
        assert 0 < detector.update(suspicion).statistic < 7
        assert detector.update(Reading(0.02, 0.005, 32)).statistic == 0.0


def test_shift_while_the_loss_is_still_falling():
    """Thirty batches after a recruit; a window of raw losses is all learning curve by then."""
    detector = Quorum()
    for step in range(30):
        assert not detector.update(Reading(2.3 * 0.9**step, 0.1, 32)).shift
    assert any(detector.update(Reading(2.5, 0.2, 32)).shift for _ in range(2))


def test_loss_above_the_line_leaves_the_spread_and_hardly_moves_the_level():
    detector = converged(Quorum())
    before, line = detector.state_dict(), 4 * detector._spread()
    assert not detector.update(batch([9.0] * 2 + [0.02] * 30)).shift
    after = detector.state_dict()
    assert after["votes"] > before["votes"] == 0.0
    assert after["level"] == pytest.approx(before["level"] + 0.1 * line)
    assert (after["rises"], after["errors"]) == (before["rises"], before["errors"])


def test_level_follows_a_slow_rise_without_alarm():
    detector = converged(Quorum())
    noise = np.random.default_rng(0).normal(0.0, 0.01, 2000)
    for step, away in enumerate(noise):
        assert not detector.update(Reading(0.025 + 0.001 * step + away, 0.005, 32)).shift
    assert not detector.accepts(Reading(4.0, 0.005, 32))


def waves(seed: int, count: int):
    """Return noise in which each value remembers nine tenths of the one before."""
    fresh = np.random.default_rng(seed).normal(0.0, np.sqrt(1 - 0.81), count)
    values, last = [], 0.0
    for step in fresh:
        last = 0.9 * last + step
        values.append(1 + 0.1 * last)
    return np.array(values)


def lognormal(seed: int, count: int):
    return 0.1 * np.random.default_rng(seed).lognormal(0.0, 1.5, count)


@pytest.mark.parametrize("noise", [waves, lognormal])
def test_waves_and_heavy_tails_raise_no_alarm(noise: Any):
    detector = Quorum()
    for loss in noise(3, 20_000).tolist():
        assert not detector.update(Reading(loss)).shift


def test_resumed_in_the_middle_of_a_suspicion():
    detector, other = converged(Quorum()), Quorum()
    assert detector.update(batch([9.0] * 4 + [0.02] * 28)).statistic > 1
    other.load_state_dict(json.loads(json.dumps(detector.state_dict())))
    for loss in np.random.default_rng(5).exponential(0.1, 300):
        reading = Reading(loss, loss / 9, 32)
        assert other.update(reading) == detector.update(reading)
    assert other.state_dict() == detector.state_dict()


@pytest.mark.parametrize(
    "name", ["quorum", "width", "steepness", "smoothing", "window", "floor", "burn_in"]
)
def test_impossible_settings_are_refused(name: str):
    with pytest.raises(ValueError, match=name):
        Quorum(**{name: 0})
