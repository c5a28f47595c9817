"""A learner hears what it declares in `hints`, remembers it, and answers from it."""

from collections.abc import Callable, Iterator

import torch

from tame.checks.failure import (
    CheckFailed,
    difference,
    generators_untouched,
    require,
    require_same,
    snapshot,
)
from tame.checks.material import SEGMENT, SIZE, there_and_back, world
from tame.checks.repetition import reloaded
from tame.errors import TameError
from tame.types import AnswersTold, Batch, Hint, Hints, Informed, Learner

Make = Callable[[int], Learner]

TRAINING = Hints.BOUNDARY | Hints.TRAIN_TASK | Hints.TASK_COUNT
TESTING = Hints.TEST_TASK | Hints.TEST_GROUP
TASKS = (0, 1, 0)


def check_hears_what_it_declares(make: Make) -> None:
    """Fail unless a learner that declares hints has the methods to be told, and no other has."""
    learner = make(0)
    hears, answers = isinstance(learner, Informed), isinstance(learner, AnswersTold)
    declared = learner.hints
    require(hears == bool(declared & TRAINING), f"it declares {declared}, but inform does not fit")
    require(
        answers == bool(declared & TESTING),
        f"it declares {declared}, but predict_told does not fit",
    )


def check_told_and_resumed(make: Make) -> None:
    """Fail unless saved, loaded and resumed among things told is the same as never stopping."""
    whole = make(0)
    if not isinstance(whole, Informed):
        return
    with generators_untouched("the learner, being told,"):
        _tell(whole, _life(whole.hints))
    for stop in (1, SEGMENT // 2, SEGMENT + 1, 2 * SEGMENT + 10):
        first = make(0)
        life = _life(first.hints)
        _tell(first, life[:stop])
        second = reloaded(first, make)
        _tell(second, life[stop:])
        text = f"told, stopped after {stop} calls and resumed,"
        require_same(whole.state_dict(), second.state_dict(), f"{text} the state differs")


def check_telling_matters(make: Make) -> None:
    """Fail if a learner that is told where the stream changes is as if it had not been."""
    told, untold = make(0), make(0)
    if not isinstance(told, Informed):
        return
    _tell(told, _life(told.hints))
    for batch in there_and_back():
        untold.observe(batch)
    differs = difference(told.state_dict(), untold.state_dict())
    require(differs, "what the learner was told changed nothing")


def check_predict_told_pure(make: Make) -> None:
    """Fail if `predict_told` changes anything, gives two answers or no known label."""
    learner = make(0)
    if not isinstance(learner, AnswersTold):
        return
    x = world(1, seed=9)[0].x
    for hint in _questions(learner.hints):
        found = learner.predict_told(x, hint)
        require(found.tolist() == [-1] * SIZE, f"predict_told before any data gave {found}")
    _tell(learner, _life(learner.hints))
    for hint in _questions(learner.hints):
        before = snapshot(learner.state_dict())
        first, second = learner.predict_told(x, hint), learner.predict_told(x, hint)
        require(torch.equal(first, second), "predict_told differs from itself")
        require_same(before, learner.state_dict(), "predict_told changed the learner")
        require(set(first.tolist()) <= set(range(4)), f"predict_told gave {first.tolist()}")
        empty = learner.predict_told(x[:0], hint)
        require(empty.shape == (0,), f"for no samples predict_told gave {tuple(empty.shape)}")


def check_wrong_hints_refused(make: Make) -> None:
    """Fail unless a task that is no number, or no hint at all, is refused and changes nothing."""
    learner = make(0)
    bad: tuple[object, ...] = (Hint(task=-1), Hint(task=True), "task 1")
    if not isinstance(learner, Informed):
        return
    _tell(learner, _life(learner.hints)[:5])
    for hint in bad:
        before = snapshot(learner.state_dict())
        inform: Callable[..., object] = learner.inform
        _require_refused(inform, hint)
        require_same(before, learner.state_dict(), f"refusing {hint!r} changed the learner")


CHECKS: tuple[Callable[[Make], None], ...] = (
    check_hears_what_it_declares,
    check_told_and_resumed,
    check_telling_matters,
    check_predict_told_pure,
    check_wrong_hints_refused,
)


def _require_refused(call: Callable[..., object], bad: object) -> None:
    try:
        call(bad)
    except TameError:
        return
    raise CheckFailed(f"{bad!r} was accepted as a hint")


def _questions(declared: Hints) -> Iterator[Hint]:
    """Yield what may be told with samples to predict: known tasks, and one that never was."""
    group = 4 if Hints.TEST_GROUP in declared else None
    tasks = (0, 1, 5) if Hints.TEST_TASK in declared else (None,)
    return (Hint(task=task, group=group) for task in tasks)


def _life(declared: Hints) -> list[Hint | Batch]:
    """Return batches with what is told before each segment of them."""
    stream = there_and_back()
    segments = stream[:SEGMENT], stream[SEGMENT : 2 * SEGMENT], stream[2 * SEGMENT :]
    life: list[Hint | Batch] = []
    for task, part in zip(TASKS, segments, strict=True):
        life += [_begins(declared, task), *part]
    return life


def _begins(declared: Hints, task: int) -> Hint:
    return Hint(
        boundary=True if Hints.BOUNDARY in declared else None,
        task=task if Hints.TRAIN_TASK in declared else None,
        tasks=len(set(TASKS)) if Hints.TASK_COUNT in declared else None,
    )


def _tell(learner: Learner, life: list[Hint | Batch]) -> None:
    for call in life:
        if isinstance(call, Batch):
            learner.observe(call)
        elif isinstance(learner, Informed):
            learner.inform(call)
