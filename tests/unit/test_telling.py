"""Learners are told what they declare, when it is due, and nothing else."""

from dataclasses import fields
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

from tame.bench.metrics import evaluate
from tame.bench.telling import GROUP, TESTING, TRAINING, Telling, answers, told
from tame.errors import ConfigError
from tame.types import HeldOut, Hint, Hints, Truth

TRUTH = Truth((2, 0, 2), (0, 3, 5), {0: "a", 2: "b"}, {0: (0,), 2: (1,)}, lambda _: {})
FIELD = {
    Hints.BOUNDARY: "boundary",
    Hints.TRAIN_TASK: "task",
    Hints.TASK_COUNT: "tasks",
    Hints.TEST_TASK: "task",
    Hints.TEST_GROUP: "group",
}


class Listener:
    """Writes down what it is told; answers the number of samples it was asked about."""

    def __init__(self, hints: Hints) -> None:
        self.hints = hints
        self.heard: list[Any] = []

    def inform(self, hint):
        self.heard.append(hint)

    def predict(self, x):
        self.heard.append("asked")
        return torch.full((len(x),), 7)

    def predict_told(self, x, hint):
        self.heard.append(hint)
        return torch.full((len(x),), 8)


class Deaf:
    """Declares what it has no method to hear."""

    hints = Hints.BOUNDARY | Hints.TEST_TASK


def sets_of(flags: Hints):
    """Return every set of hints made of these."""
    names = list(flags)
    for chosen in product([False, True], repeat=len(names)):
        found = Hints.NOTHING
        for name, wanted in zip(names, chosen, strict=True):
            found |= name if wanted else Hints.NOTHING
        yield found


def given(hint: Hint):
    """Return the names of the fields that say something."""
    return {field.name for field in fields(hint) if getattr(hint, field.name) is not None}


@pytest.mark.parametrize("declared", list(sets_of(TRAINING)), ids=str)
def test_training_tells_the_declared_fields_alone(declared: Hints):
    learner = Listener(declared | TESTING)
    for step in range(7):
        Telling(learner.hints, TRUTH).inform(learner, step)
    assert len(learner.heard) == (3 if declared else 0)
    for hint in learner.heard:
        assert given(hint) == {FIELD[flag] for flag in declared}


@pytest.mark.parametrize("declared", list(sets_of(TESTING)), ids=str)
def test_testing_tells_the_declared_fields_alone(declared: Hints):
    learner = Listener(declared | TRAINING)
    found = answers(learner, torch.zeros(3, 2), origin=5)
    if not declared:
        assert found.tolist() == [7, 7, 7]
        assert learner.heard == ["asked"]
    else:
        assert found.tolist() == [8, 8, 8]
        assert [given(hint) for hint in learner.heard] == [{FIELD[flag] for flag in declared}]


def test_what_is_told_is_true():
    telling = Telling(TRAINING, TRUTH)
    assert telling.hints(0) == [Hint(boundary=True, task=2, tasks=2)]
    assert telling.hints(3) == [Hint(boundary=True, task=0, tasks=2)]
    assert telling.hints(5) == [Hint(boundary=True, task=2, tasks=2)]
    assert [telling.hints(step) for step in (1, 2, 4, 6)] == [[], [], [], []]
    learner = Listener(TESTING)
    answers(learner, torch.zeros(1, 2), origin=5)
    assert learner.heard == [Hint(task=5, group=GROUP)]


def test_segments_that_begin_in_one_batch_are_told_in_turn():
    truth = Truth((0, 1, 2), (0, 4, 4), {}, {}, lambda _: {})
    assert [hint.task for hint in Telling(Hints.TRAIN_TASK, truth).hints(4)] == [1, 2]


def test_a_method_that_declares_but_cannot_hear_is_refused():
    learner = Deaf()
    with pytest.raises(ConfigError, match="Deaf declares hints, but has no method 'inform'"):
        Telling(learner.hints, TRUTH).inform(learner, 0)
    with pytest.raises(ConfigError, match="has no method 'predict_told'"):
        answers(learner, torch.zeros(1, 2), origin=0)


def test_result_says_what_was_told():
    every = TRAINING | TESTING
    assert told(every) == {
        "training": ["BOUNDARY", "TRAIN_TASK", "TASK_COUNT"],
        "testing": ["TEST_TASK", "TEST_GROUP"],
    }
    assert told(Hints.NOTHING) == {"training": [], "testing": []}


def test_evaluation_gives_the_told_and_the_untold_figure():
    held = [HeldOut(0, "a", torch.zeros(4, 2), torch.tensor([7, 8, 8, 8]))]
    (row,) = evaluate(Listener(Hints.TEST_TASK), TRUTH, held, {})
    assert row["strict"] == 0.75
    assert row["untold"] == 0.25
    (row,) = evaluate(Listener(Hints.TRAIN_TASK), TRUTH, held, {})
    assert row["strict"] == 0.25
    assert row["untold"] is None


class Reader(Listener):
    """Answers what is written in a sample."""

    def predict_told(self, x, hint):
        self.heard.append((x[:, 0].tolist(), hint))
        return torch.as_tensor(x)[:, 0].long()


@pytest.mark.parametrize("given_as", [torch.as_tensor, np.asarray])
def test_groups_are_of_samples_from_anywhere_and_answers_in_their_order(given_as):
    x = given_as([[number] for number in range(60)])
    grouped, single = Reader(Hints.TEST_GROUP), Reader(Hints.TEST_TASK)
    for learner in (grouped, single):
        assert answers(learner, x, origin=0).tolist() == list(range(60))
    order = grouped.heard[0][0]
    assert sorted(order) == single.heard[0][0] == list(range(60))
    assert max(order[:GROUP]) > 2 * GROUP
