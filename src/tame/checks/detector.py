"""What every shift detector must do."""

import json
import math
from collections.abc import Callable, Iterator

import numpy as np

from tame.checks.failure import generators_untouched, require, require_same, snapshot
from tame.types import Reading, ShiftDetector

Make = Callable[[], ShiftDetector]
Check = Callable[[Make], None]

WARM = 300
NULL = 20_000
DELAY = 5
MEAN, SIGMA = 1.0, 0.1


def check_detector(make: Make) -> None:
    """Run every check on detectors that `make()` returns."""
    for _, check in detector_checks():
        check(make)


def detector_checks() -> Iterator[tuple[str, Check]]:
    """Yield every check of a detector with its name.

    >>> len(dict(detector_checks()))
    10
    """
    yield from ((check.__name__, check) for check in CHECKS)


def check_accepts_pure(make: Make) -> None:
    """Fail if `accepts` changes anything, or says other than `update` then decides."""
    detector = make()
    with generators_untouched("the detector"):
        for loss in [*_noise(WARM), 10.0, *_noise(20, seed=1)]:
            before = snapshot(detector.state_dict())
            said = detector.accepts(Reading(loss, SIGMA, 32))
            require_same(before, detector.state_dict(), "accepts changed the detector")
            verdict = detector.update(Reading(loss, SIGMA, 32))
            require(said != verdict.shift, f"accepts({loss}) was {said}, then update disagreed")


def check_constant_loss_never_alarms(make: Make) -> None:
    """Fail if a loss that stays the same, but for rounding (to float32), is ever a shift."""
    for level in (0.0, 0.1, 2.3, 1e4):
        detector = make()
        for step in range(3 * WARM):
            loss = level * (1 + 1e-7 * (step % 150 == 0))
            shift = detector.update(Reading(loss)).shift
            require(not shift, f"a constant loss of {level} raised an alarm at reading {step}")


def check_step_alarms(make: Make) -> None:
    """Fail unless a step of ten deviations raises an alarm within five readings."""
    for seed in range(10):
        detector = _warm(make, seed)
        losses = _noise(DELAY, seed + 100) + 10 * SIGMA
        alarms = [detector.update(_foreign(loss)).shift for loss in losses]
        require(any(alarms), f"a step of ten deviations went unnoticed for {DELAY} readings")


def check_normal_noise_never_alarms(make: Make) -> None:
    """Fail at any false alarm in 20,000 readings of normal noise."""
    _require_quiet(make(), _noise(NULL), "normal")


def check_exponential_noise_never_alarms(make: Make) -> None:
    """Fail at any false alarm in 20,000 readings of exponential noise."""
    noise = np.random.Generator(np.random.PCG64(0)).exponential(SIGMA, NULL)
    _require_quiet(make(), noise, "exponential")


def check_state_survives_json(make: Make) -> None:
    """Fail unless the state, written as JSON and read back, is the same bit for bit."""
    detector, other = _warm(make), make()
    text = json.dumps(detector.state_dict())
    other.load_state_dict(json.loads(text))
    require_same(detector.state_dict(), other.state_dict(), "the state did not survive JSON")
    for loss in _noise(WARM, seed=1):
        one, two = detector.update(Reading(loss)), other.update(Reading(loss))
        require(one == two, f"a reloaded detector judged {two}, not {one}")


def check_shift_enters_nothing(make: Make) -> None:
    """Fail if a loss that is a shift changes the detector: its own data may return."""
    detector = _warm(make)
    waited = 0
    while detector.accepts(_foreign(100.0)):
        require(waited < DELAY, "a loss a thousand deviations away was ordinary")
        detector.update(_foreign(100.0))
        waited += 1
    before = snapshot(detector.state_dict())
    for _ in range(WARM):
        require(detector.update(_foreign(100.0)).shift, "what was a shift is one no longer")
    require_same(before, detector.state_dict(), "a shifted loss entered the baseline")
    require(detector.accepts(Reading(MEAN, SIGMA, 32)), "its own data was refused on return")


def check_broken_loss_is_a_shift(make: Make) -> None:
    """Fail unless a loss that is no finite number is a shift at any time, and enters nothing."""
    for detector in (make(), _warm(make)):
        before = snapshot(detector.state_dict())
        for loss in (math.nan, math.inf):
            require(not detector.accepts(Reading(loss)), f"a loss of {loss} was accepted")
            require(detector.update(Reading(loss)).shift, f"a loss of {loss} was no shift")
        require_same(before, detector.state_dict(), "a broken loss entered the baseline")


def check_fresh(make: Make) -> None:
    """Fail unless `fresh` gives the same settings, nothing seen and nothing shared."""
    detector = _warm(make)
    before = snapshot(detector.state_dict())
    other = detector.fresh()
    require(type(other) is type(detector), "fresh gave a detector of another kind")
    require_same(make().state_dict(), other.state_dict(), "a fresh detector has seen something")
    new = make()
    for loss in _noise(WARM, seed=1):
        one, two = new.update(Reading(loss)), other.update(Reading(loss))
        require(repr(one) == repr(two), "a fresh detector has other settings")
    require_same(before, detector.state_dict(), "a fresh detector shares memory with the old")


def check_rebase(make: Make) -> None:
    """Fail unless `rebase` forgets what was seen and takes the new readings as ordinary."""
    readings = [Reading(loss, SIGMA, 32) for loss in _noise(100, seed=1) + 4]
    one, two = _warm(make, 0), _warm(make, 7)
    one.rebase(readings)
    two.rebase(readings)
    require_same(one.state_dict(), two.state_dict(), "after rebase the past still shows")
    require(one.accepts(Reading(MEAN + 4, SIGMA, 32)), "after rebase the new level is refused")
    refused = any(one.update(_foreign(MEAN + 40)).shift for _ in range(2 * DELAY))
    require(refused, "after rebase anything is accepted")


CHECKS: tuple[Check, ...] = (
    check_accepts_pure,
    check_constant_loss_never_alarms,
    check_step_alarms,
    check_normal_noise_never_alarms,
    check_exponential_noise_never_alarms,
    check_state_survives_json,
    check_shift_enters_nothing,
    check_broken_loss_is_a_shift,
    check_fresh,
    check_rebase,
)


def _foreign(loss: float) -> Reading:
    """Return a reading of data the expert does not know: another loss, and a label never seen."""
    return Reading(float(loss), SIGMA, 32, unseen=1)


def _noise(count: int, seed: int = 0) -> np.ndarray:
    return np.random.Generator(np.random.PCG64(seed)).normal(MEAN, SIGMA, count)


def _warm(make: Make, seed: int = 0) -> ShiftDetector:
    detector = make()
    for loss in _noise(WARM, seed):
        shift = detector.update(Reading(float(loss), SIGMA, 32)).shift
        require(not shift, "ordinary noise raised an alarm")
    return detector


def _require_quiet(detector: ShiftDetector, losses: np.ndarray, kind: str) -> None:
    for number, loss in enumerate(losses.tolist()):
        shift = detector.update(Reading(loss)).shift
        require(not shift, f"{kind} noise raised a false alarm at reading {number}")
