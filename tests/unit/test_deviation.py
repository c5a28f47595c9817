"""The paper's rule, and where it is deviated from."""

import math
from dataclasses import dataclass
from typing import Any

import pytest

from tame import Deviation, Reading
from tame.types import Verdict


@dataclass
class Printed(Deviation):
    """Line 11 as printed: the loss that raised the alarm stays in the smoothed loss."""

    def update(self, reading: Reading) -> Verdict:
        verdict = super().update(reading)
        self._smoothed = verdict.statistic
        return verdict


def converged(detector: Any):
    """Return the detector of an expert with mean loss 0.05 and deviation 0.03."""
    for step in range(100):
        assert not detector.update(Reading(0.05 + (0.03 if step % 2 else -0.03))).shift
    return detector


def test_printed_rule_refuses_the_returning_segment_and_ours_accepts_it():
    ours, printed = converged(Deviation()), converged(Printed())
    alarm, home = Reading(2.5), Reading(0.05)
    assert ours.update(alarm).shift
    assert printed.update(alarm).shift
    assert ours.accepts(home)
    assert not printed.accepts(home)
    refused = printed.update(home)
    assert refused.threshold == pytest.approx(0.14)
    assert refused.statistic == pytest.approx(0.2 * 0.05 + 0.8 * 0.54, abs=0.01)


def test_threshold_is_mean_and_three_deviations_of_raw_losses():
    detector = converged(Deviation())
    verdict = detector.update(Reading(0.05))
    assert verdict.threshold == pytest.approx(0.05 + 3 * 0.03)


def test_smoothed_loss_weighs_the_newest_by_alpha():
    detector = Deviation(smoothing=0.25)
    detector.update(Reading(1.0))
    assert detector.update(Reading(2.0)).statistic == 0.25 * 2.0 + 0.75 * 1.0


def test_first_reading_has_no_threshold():
    verdict = Deviation().update(Reading(0.7))
    assert verdict.statistic == 0.7
    assert math.isnan(verdict.threshold)
    assert not verdict.shift


@pytest.mark.parametrize(("loss", "shift"), [(1.07, False), (1.08, True)])
def test_floor_holds_a_deviation_of_nothing(loss: float, *, shift: bool):
    detector = Deviation()
    for _ in range(100):
        detector.update(Reading(1.0))
    assert detector.update(Reading(loss)).shift is shift  # 1 + 3 x 0.005 / 0.2 = 1.075


@pytest.mark.parametrize(("loss", "shift"), [(2.49, False), (2.51, True)])
def test_standard_error_holds_a_small_deviation(loss: float, *, shift: bool):
    detector = Deviation()
    for _ in range(100):
        detector.update(Reading(1.0, error=0.1))
    assert detector.update(Reading(loss, error=0.1)).shift is shift  # 1 + 3 x 0.1 / 0.2


def test_no_alarm_during_burn_in():
    for before, shift in ((19, False), (20, True)):
        detector = Deviation()
        for _ in range(before):
            detector.update(Reading(1.0))
        assert detector.update(Reading(100.0)).shift is shift


def test_window_forgets():
    detector = Deviation(window=5, burn_in=0)
    for loss in (9.0, 1.0, 1.0, 1.0, 1.0):
        detector.update(Reading(loss))
    assert detector.update(Reading(1.0)).threshold > 3.0
    assert detector.update(Reading(1.0)).threshold == pytest.approx(1.015)


def test_refused_while_inactive_leaves_no_trace():
    """An expert that is asked often while inactive is as it was when it was left."""
    detector = converged(Deviation())
    before = repr(detector.state_dict())
    assert not any(detector.accepts(Reading(2.5)) for _ in range(50))
    assert repr(detector.state_dict()) == before


def test_rebase_ends_the_burn_in_and_nothing_rebased_starts_it_again():
    detector = Deviation()
    detector.rebase([Reading(0.1)] * 5)
    assert detector.update(Reading(5.0)).shift
    detector.rebase([])
    assert not detector.update(Reading(5.0)).shift


@pytest.mark.parametrize(
    "wrong",
    [
        {"smoothing": 0.0},
        {"smoothing": 1.5},
        {"window": 0},
        {"width": 0.0},
        {"floor": -1.0},
        {"burn_in": -1},
    ],
)
def test_impossible_settings_are_refused(wrong: dict[str, Any]):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Deviation(**wrong)


def test_one_bad_sample_in_a_batch_of_a_converged_expert_is_no_shift():
    detector = Deviation()
    for _ in range(200):
        detector.update(Reading(0.001, 0.0005, 32))
    # One of 32 samples at loss 3: mean 0.094, and the standard error is as large.
    assert detector.accepts(Reading(0.0947, 0.0937, 32))
    # The same rise shared by all samples is a shift.
    assert not detector.accepts(Reading(0.0947, 0.003, 32))
