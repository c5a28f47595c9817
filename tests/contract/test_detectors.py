"""The shipped contract, over every registered detector."""

import pytest

from tame.checks import detector_checks
from tame.registry import DETECTORS

CHECKS = dict(detector_checks())


@pytest.mark.parametrize("detector", list(DETECTORS))
@pytest.mark.parametrize("check", CHECKS)
def test_contract(check: str, detector: str):
    CHECKS[check](DETECTORS.get(detector))
