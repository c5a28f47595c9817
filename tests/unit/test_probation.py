"""Who may take a newcomer's data back: who knows enough batches in a row, and better."""

from types import SimpleNamespace
from typing import Any

import pytest

from tame.core import probation as module
from tame.core.mark import Mark
from tame.core.probation import Probation
from tame.types import Reading

MARK = Mark(0.04, 0.06, 0.69, 0.0)
RETURNS = 3


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch):
    """Return a probation, and a function that shows it a batch as watcher and newcomer read it."""
    probation, said = Probation([7], 0, 0), []
    watcher = SimpleNamespace(id=7, mark=MARK)
    pool = SimpleNamespace(known=lambda numbers, live: [watcher], plan=None)  # noqa: ARG005
    monkeypatch.setattr(module, "Readings", lambda *_, **__: [said[-1]])

    def show(loss: float, own: float = 1.0, *, strange: bool = False) -> int | None:
        said.append(Reading(loss))
        scene: Any = SimpleNamespace(pool=pool)
        lesson: Any = SimpleNamespace(live=2)
        probation.watch(scene, lesson, Reading(own), lambda: strange)
        return probation.claimant(RETURNS)

    return show


def test_three_batches_in_a_row_are_a_return(watched):
    assert [watched(0.05) for _ in range(3)] == [None, None, 7]


def test_a_batch_in_between_that_it_does_not_know_begins_the_count_anew(watched):
    assert [watched(loss) for loss in (0.05, 0.05, 2.0, 0.05, 0.05, 0.05)] == [None] * 5 + [7]


def test_late_in_a_probation_three_are_not_enough(watched):
    for _ in range(12):
        watched(2.0)
    found = [watched(0.05) for _ in range(7)]
    assert found == [None] * 4 + [7, 7, 7]  # five of seventeen


def test_what_the_newcomer_reads_better_is_nobody_elses(watched):
    assert [watched(0.05, own=0.01) for _ in range(4)] == [None] * 4
    assert [watched(0.05, own=0.06) for _ in range(3)] == [None, None, 7]


def test_of_samples_that_look_strange_only_what_it_surely_knows_is_its_own(watched):
    hard, easy = 0.18, 0.05  # a fifth of the way to guessing, and next to none of it
    assert [watched(hard, strange=True) for _ in range(4)] == [None] * 4
    assert [watched(hard) for _ in range(3)] == [None, None, 7]
    assert [watched(easy, strange=True) for _ in range(4)][-1] == 7
