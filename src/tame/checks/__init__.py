"""The contract suite, shipped: what every learner, stream and detector must do.

Each `check_*` function takes the thing to check (a learner or detector as a maker, so that it can
be made twice) and raises `CheckFailed` with a sentence about what was violated.

>>> from tame import TAME
>>> from tame.checks import learner_checks
>>> checks = dict(learner_checks())
>>> checks["check_predicts_before_any_data"](lambda seed: TAME(net="mlp", seed=seed))
"""

from tame.checks.detector import check_detector, detector_checks
from tame.checks.failure import CheckFailed
from tame.checks.learner import check_learner, learner_checks
from tame.checks.stream import check_stream, stream_checks

__all__ = [
    "CheckFailed",
    "check_detector",
    "check_learner",
    "check_stream",
    "detector_checks",
    "learner_checks",
    "stream_checks",
]
