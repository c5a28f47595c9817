"""The shipped contract, over every registered detector."""

from importlib.util import find_spec

import pytest

from tame.checks import detector_checks
from tame.registry import DETECTORS

CHECKS = dict(detector_checks())


@pytest.mark.parametrize("detector", list(DETECTORS))
@pytest.mark.parametrize("check", CHECKS)
def test_contract(check: str, detector: str):
    if detector == "river" and find_spec("river") is None:
        pytest.skip("River is not installed (tame[river])")
    CHECKS[check](DETECTORS.get(detector))
