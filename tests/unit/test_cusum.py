"""CUSUM and Page-Hinkley: the recursions by hand, and losses of any scale."""

import json
import math
from typing import Any

import numpy as np
import pytest

from tame import Reading
from tame.core.detectors.baseline import Baseline
from tame.core.detectors.cusum import Cusum
from tame.core.detectors.page_hinkley import PageHinkley

BOTH = [Cusum, PageHinkley]


def warm(detector: Any, scale: float = 1.0, seed: int = 0):
    for loss in scale * np.random.default_rng(seed).normal(1.0, 0.1, 300):
        assert not detector.update(Reading(loss)).shift
    return detector


def test_cusum_recursion_by_hand():
    detector = Cusum(allowance=0.5, threshold=5.0, burn_in=2, floor=1e-9)
    for loss in (0.0, 2.0):  # mean 1, deviation 1
        detector.update(Reading(loss))
    first = detector.update(Reading(3.0))  # z = 2
    assert first.statistic == pytest.approx(2 - 0.5)
    mean, deviation = 5 / 3, math.sqrt((0 + 4 + 9) / 3 - (5 / 3) ** 2)
    second = detector.update(Reading(4.0))
    assert second.statistic == pytest.approx(1.5 + (4 - mean) / deviation - 0.5)
    assert not second.shift
    mean, deviation = 9 / 4, math.sqrt((0 + 4 + 9 + 16) / 4 - (9 / 4) ** 2)
    third = detector.update(Reading(9.0))
    assert third.statistic == pytest.approx(second.statistic + (9 - mean) / deviation - 0.5)
    assert third.shift


def test_cusum_never_falls_below_nothing():
    detector = warm(Cusum())
    assert detector.update(Reading(-50.0)).statistic == 0.0


def test_page_hinkley_recursion_by_hand():
    detector = PageHinkley(allowance=0.5, threshold=5.0, burn_in=2, fading=0.25, floor=1e-9)
    for loss in (0.0, 2.0):  # plain mean 1 and variance 1 so far: 1/2 > fading
        detector.update(Reading(loss))
    found = detector.update(Reading(4.0))  # weight 1/3: mean 2 with itself, deviation 1 before
    assert found.statistic == pytest.approx((4 - 2) / 1 - 0.5)
    variance = (1 - 1 / 3) * (1 + (4 - 1) ** 2 / 3)
    later = detector.update(Reading(2.0))  # weight 1/4, mean stays 2
    assert later.statistic == pytest.approx(found.statistic + 0 / math.sqrt(variance) - 0.5)


def test_page_hinkley_is_the_sum_above_its_minimum():
    """The recursion max(0, s + z - allowance) is Page and Hinkley's sum less its least value."""
    detector = PageHinkley(threshold=1e9)
    sums, total = [0.0], 0.0
    for loss in np.random.default_rng(1).normal(1.0, 0.1, 200):
        if detector._seen >= detector.burn_in:
            mean = detector._moved(Reading(loss)).mean
            total += (loss - mean) / detector._deviation() - detector.allowance
            sums.append(total)
        verdict = detector.update(Reading(loss))
    assert verdict.statistic == pytest.approx(sums[-1] - min(sums))


@pytest.mark.parametrize("make", BOTH)
def test_scale_of_the_losses_does_not_matter(make: Any):
    floor = 0.005
    one = warm(make(floor=floor))
    thousand = warm(make(floor=1000 * floor), 1000.0)
    for loss in (1.1, 1.25, 1.3):
        small = one.update(Reading(loss)).statistic
        assert thousand.update(Reading(1000 * loss)).statistic == pytest.approx(small)


@pytest.mark.parametrize("make", BOTH)
def test_small_rise_that_lasts_is_found_and_one_value_as_high_is_not(make: Any):
    detector = warm(make())
    assert detector.accepts(Reading(1.5))
    assert any(detector.update(Reading(1.5)).shift for _ in range(15))


@pytest.mark.parametrize("make", BOTH)
def test_rebased_judges_at_once_and_after_nothing_waits_again(make: Any):
    detector = warm(make())
    detector.rebase([Reading(4.0)] * 5)
    assert detector.accepts(Reading(4.0))
    assert not detector.accepts(Reading(5.0))
    detector.rebase([])
    assert detector.accepts(Reading(99.0))


@pytest.mark.parametrize("make", BOTH)
def test_standard_error_is_a_floor_under_the_deviation(make: Any):
    detector = make()
    for _ in range(50):
        detector.update(Reading(1.0, 0.5, 8))
    assert detector.update(Reading(2.0, 0.5, 8)).statistic == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("make", BOTH)
def test_resumed_judges_the_same(make: Any):
    detector, other = warm(make()), make()
    detector.update(Reading(1.4))
    other.load_state_dict(json.loads(json.dumps(detector.state_dict())))
    for loss in np.random.default_rng(5).exponential(1.0, 300):
        assert other.update(Reading(loss)) == detector.update(Reading(loss))
    assert other.state_dict() == detector.state_dict()


@pytest.mark.parametrize(
    ("make", "wrong", "word"),
    [(make, {name: 0}, name) for make in BOTH for name in ("allowance", "threshold", "floor")]
    + [(Cusum, {"window": 0}, "window"), (PageHinkley, {"fading": 1.0}, "fading")],
)
def test_impossible_settings_are_refused(make: Any, wrong: dict[str, Any], word: str):
    with pytest.raises(ValueError, match=word):
        make(**wrong)


def test_baseline_takes_a_high_loss_as_five_deviations():
    usual = Baseline(window=10, floor=0.1, burn_in=2)
    for loss in (1.0, 1.0, 100.0):
        usual.add(Reading(loss))
    assert usual.state_dict()["losses"] == [1.0, 1.0, 1.5]
