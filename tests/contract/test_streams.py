"""The shipped contract, over every registered stream."""

import pytest
import torch

from tame.checks import stream_checks
from tame.registry import STREAMS
from tame.streams.burst import Burst
from tame.streams.imbalance import Imbalance

CHECKS = dict(stream_checks())
COURSES = {
    "once each": {"batch": 100},
    "with returns": {"order": (0, 1, 0), "batch": 90},
    "straddling": {"order": (1, 0, 1), "batch": 90, "passes": 2, "straddle": True},
    "local labels": {"order": (1, 0), "batch": 90, "labels": "local"},
    "blended": {"order": (0, 1, 0), "batch": 50, "blend": 8},
    "uneven": {"order": (0, 1, 0), "batch": 16, "smallest_batch": 1, "lengths": (20, 3, 40)},
    "drawn": {"drawn": 6, "lengths": (4,), "batch": 90, "straddle": True},
    "turning": {"order": (0, 1, 0), "batch": 200, "rotation": 45.0},
    "bad labels": {"order": (0, 1), "batch": 40, "burst": Burst(every=6, batches=2)},
    "bad pixels": {
        "order": (1, 0), "batch": 40, "burst": Burst(every=6, batches=2, kind="pixels", share=0.5),
    },
    "long tail": {"order": (0, 1), "batch": 40, "imbalance": Imbalance(classes=8.0, segments=2.0)},
    "all at once": {
        "order": (0, 1, 0), "batch": 24, "smallest_batch": 8, "straddle": True, "labels": "local",
        "blend": 5, "rotation": 30.0, "burst": Burst(every=7, batches=2),
        "imbalance": Imbalance(classes=2.0, segments=2.0),
    },
}  # fmt: skip
SMALLER = {
    "permute": {"segments": 2},
    "relabel": {"segments": 2},
    "blurry": {"segments": 2},
    "domains": {"data": ("embedded", "embedded")},
}


def small_stream(name: str, course: str, seed: int = 0):
    kind = STREAMS.get(name)
    return kind(**COURSES[course], **SMALLER.get(name, {})).open(seed=seed)


@pytest.mark.parametrize("course", COURSES)
@pytest.mark.parametrize("stream", list(STREAMS))
@pytest.mark.parametrize("check", CHECKS)
def test_contract(check: str, stream: str, course: str):
    CHECKS[check](small_stream(stream, course))


@pytest.mark.parametrize("stream", list(STREAMS))
def test_seed_decides_the_order(stream: str):
    one, same, other = (next(small_stream(stream, "once each", s).batches()) for s in (0, 0, 1))
    assert torch.equal(one.x, same.x)
    assert torch.equal(one.y, same.y)
    assert not torch.equal(one.y, other.y)
