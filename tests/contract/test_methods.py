"""The shipped contract, over every registered method."""

from functools import partial
from pathlib import Path

import pytest
from worlds import a, b, feed, small_method

import tame
from tame.checks import learner_checks
from tame.checks.failure import difference
from tame.checks.repetition import unpickling_refused
from tame.config import dump
from tame.registry import METHODS

CHECKS = dict(learner_checks())


@pytest.mark.parametrize("method", list(METHODS))
@pytest.mark.parametrize("check", CHECKS)
def test_contract(check: str, method: str):
    CHECKS[check](partial(small_method, method))


@pytest.mark.parametrize("method", list(METHODS))
def test_file_resumes(method: str, tmp_path: Path):
    """What `save` writes, `load` rebuilds: settings, net and seed come from the file alone."""
    stream = a() + b()
    whole, first = small_method(method, 5), small_method(method, 5)
    expected = feed(whole, stream)
    seen = feed(first, stream[:70])
    first.save(tmp_path / "model.tame")
    with unpickling_refused():
        second = tame.load(tmp_path / "model.tame")
    seen += feed(second, stream[70:])
    assert repr(seen) == repr(expected)
    whole.consolidate()
    second.consolidate()
    assert difference(whole.state_dict(), second.state_dict()) is None
    assert dump(second.settings) == dump(whole.settings)
    assert type(second) is METHODS.get(method)


def test_only_joint_is_exempt_from_bounded_memory():
    assert [name for name in METHODS if METHODS.get(name).unbounded] == ["joint"]
