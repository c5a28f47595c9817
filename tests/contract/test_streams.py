"""The shipped contract, over every registered stream."""

import pytest
import torch

from tame.checks import stream_checks
from tame.registry import STREAMS

CHECKS = dict(stream_checks())
COURSES = {
    "once each": {"batch": 100},
    "with returns": {"order": (0, 1, 0), "batch": 90},
    "straddling": {"order": (1, 0, 1), "batch": 90, "passes": 2, "straddle": True},
    "local labels": {"order": (1, 0), "batch": 90, "labels": "local"},
}
SMALLER = {"permute": {"segments": 2}, "domains": {"data": ("embedded", "embedded")}}


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
