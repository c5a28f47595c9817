"""A learner repeats itself: by seed, and when saved, loaded and resumed."""

import pickle
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import torch

from tame import checkpoint
from tame.checks.failure import CheckFailed, difference, require, require_same, snapshot
from tame.checks.material import there_and_back, world
from tame.types import Batch, Learner

Make = Callable[[int], Learner]


def check_same_seed_same_state(make: Make) -> None:
    """Fail unless two learners of one seed agree in every bit, records included."""
    one, two = make(3), make(3)
    require_same(_live(one), _live(two), "the same seed gave other records")
    require_same(one.state_dict(), two.state_dict(), "the same seed gave another state")
    other = make(4)
    _live(other)
    require(difference(one.state_dict(), other.state_dict()), "the seed makes no difference")


def check_resumed_equals_uninterrupted(make: Make) -> None:
    """Fail unless saved, loaded and resumed is bit for bit the same as never having stopped."""
    whole = make(0)
    records = _live(whole)
    for stop in (0, 1, 70, 100, len(records)):
        first = make(0)
        told = _live(first, end=stop)
        second = reloaded(first, make)
        told += _live(second, start=stop)
        text = f"stopped after {stop} calls and resumed,"
        require_same(records, told, f"{text} the records differ")
        require_same(whole.state_dict(), second.state_dict(), f"{text} the state differs")


def check_state_loads_by_value(make: Make) -> None:
    """Fail if a learner that took another's state still shares memory with it."""
    one, two = make(0), make(0)
    _live(one, end=70)
    two.load_state_dict(one.state_dict())
    before = snapshot(one.state_dict())
    require_same(before, two.state_dict(), "load_state_dict does not restore what state_dict told")
    _live(two, start=70)
    require_same(before, one.state_dict(), "two learners share memory after load_state_dict")


def check_no_pickle(make: Make) -> None:
    """Fail if reading a saved state unpickles: it could run code."""
    learner = make(0)
    _live(learner, end=70)
    reloaded(learner, make)


CHECKS: tuple[Callable[[Make], None], ...] = (
    check_same_seed_same_state,
    check_resumed_equals_uninterrupted,
    check_state_loads_by_value,
    check_no_pickle,
)


def reloaded(learner: Learner, make: Make) -> Learner:
    """Return a new learner with the state of this one, by way of a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state"
        checkpoint.write(path, {}, learner.state_dict())
        with unpickling_refused():
            _, state = checkpoint.read(path)
            found = make(0)
            found.load_state_dict(state)
    return found


def _live(learner: Learner, start: int = 0, end: int | None = None) -> list[str]:
    """Make the calls of a whole life, or some of them, and return the records as text."""
    return [repr(_call(learner, step)) for step in _life()[start:end]]


def _life() -> list[Batch | None]:
    """Return batches with two consolidations (None) among them."""
    stream: list[Batch | None] = [*there_and_back()]
    return [*stream[:90], None, *stream[90:], None, *world(5, seed=8)]


def _call(learner: Learner, step: Batch | None) -> object:
    return learner.consolidate() if step is None else learner.observe(step)


@contextmanager
def unpickling_refused() -> Iterator[None]:
    """Fail if the body unpickles anything."""

    def refuse(*_: object, **__: object) -> None:
        raise CheckFailed("reading a saved state unpickles")

    with (
        mock.patch.object(pickle, "load", refuse),
        mock.patch.object(pickle, "loads", refuse),
        mock.patch.object(pickle, "Unpickler", refuse),
        mock.patch.object(torch, "load", refuse),
    ):
        yield
