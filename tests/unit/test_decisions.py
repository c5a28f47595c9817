"""Whom a learner took back and whom it recruited, against the truth."""

from typing import Any

import pytest

from tame.bench.decisions import commits, decisions, leaks
from tame.bench.episodes import Said
from tame.types import Truth

LENGTH = 10


def truth(*origins: int, **more: Any):
    """Return segments of ten batches of four samples, without labels to tell them apart."""
    starts = tuple(LENGTH * place for place in range(len(origins)))
    labels = dict.fromkeys(origins, (0, 1))
    return Truth(origins, starts, {}, labels, lambda step: {origins[step // LENGTH]: 4}, **more)


def told(steps: int, changes: dict[int, tuple[str, int]], since: dict[int, int] | None = None):
    """Return what was said: nothing but these changes; an expert goes on until the next."""
    said, expert = [], 0
    for step in range(steps):
        change, expert = changes.get(step, ("none", expert))
        said.append(Said(step, change, expert, (since or {}).get(step)))
    return said


def test_all_right():
    said = told(30, {10: ("recruited", 1), 21: ("switched", 0)})
    found = decisions(truth(0, 1, 0), said, (0, 1))
    assert (found["wrong_reuse"], found["wrong_recruits"], found["expert_error"]) == (0, 0, 0)
    assert found["sample_delays"] == [4, 8]
    assert found["commit_sample_delays"] == [4, 8]


def test_a_return_that_is_recruited_again_is_a_wrong_recruit():
    said = told(30, {10: ("recruited", 1), 20: ("recruited", 2)})
    found = decisions(truth(0, 1, 0), said, (0, 1, 2))
    assert (found["wrong_reuse"], found["wrong_recruits"], found["expert_error"]) == (0, 1, 1)


def test_something_new_given_to_an_old_expert_is_a_wrong_reuse():
    said = told(30, {10: ("recruited", 1), 20: ("switched", 0)})
    found = decisions(truth(0, 1, 2), said, (0, 1))
    assert (found["wrong_reuse"], found["wrong_recruits"], found["expert_error"]) == (1, 0, -1)


def test_a_recruit_without_change_is_wrong_and_the_way_back_right():
    said = told(10, {4: ("recruited", 1), 7: ("switched", 0)})
    found = decisions(truth(0), said, (0, 1))
    assert (found["wrong_reuse"], found["wrong_recruits"], found["expert_error"]) == (0, 1, 1)
    assert found["sample_delays"] == []


def test_an_expert_stands_for_what_taught_it_most_before_the_alarm():
    """The second change is missed: expert 1 learned eight batches of 1 and ten of 2."""
    said = told(40, {12: ("recruited", 1), 30: ("recruited", 2)})
    (_, late) = commits(truth(0, 1, 2, 1), said, (0, 1, 2))
    assert late.known == {0: 0, 1: 2}
    assert decisions(truth(0, 1, 2, 1), said, (0, 1, 2))["wrong_recruits"] == 0
    again = told(40, {12: ("recruited", 1), 30: ("switched", 1)})
    assert decisions(truth(0, 1, 2, 1), again, (0, 1))["wrong_reuse"] == 1


def test_a_probation_is_judged_when_it_is_sure_and_dated_back():
    changes = {12: ("suspected", 1), 18: ("recruited", 1)}
    said = told(20, changes, {12: 10, 18: 10})
    (commit,) = commits(truth(0, 1), said, (0, 1))
    assert commit == (12, 18, True, 1, {0: 0})
    found = decisions(truth(0, 1), said, (0, 1))
    assert (found["sample_delays"], found["commit_sample_delays"]) == ([12], [36])


def test_a_newcomer_at_the_end_counts_if_it_stayed():
    said = told(20, {12: ("suspected", 1)})
    assert [commit.step for commit in commits(truth(0, 1), said, (0, 1))] == [19]
    assert not list(commits(truth(0, 1), said, (0,)))


def test_a_change_within_a_burst_is_no_delay():
    found = decisions(truth(0, 1, bursts=((12, 14),)), told(20, {13: ("recruited", 1)}), (0, 1))
    assert found["sample_delays"] == []


def test_origins_that_are_alike_are_one():
    found = decisions(truth(0, 1, 2, alike={2: 0}), told(30, {20: ("switched", 0)}), (0,))
    assert (found["expert_error"], found["wrong_reuse"]) == (-1, 0)


def test_without_experts_there_is_nothing_to_be_wrong_about():
    found = decisions(truth(0, 1), told(20, {}), ())
    assert found["wrong_reuse"] is found["wrong_recruits"] is found["expert_error"] is None


@pytest.mark.parametrize(("local", "expected"), [(True, 0), (False, 2)])
def test_labels_that_are_places_leak_nothing(local: Any, expected: int):
    labels = {0: (0, 1), 1: (2, 3)}
    assert leaks(Truth((0, 1, 0), (0, 5, 9), {}, labels, dict, local=local)) == expected
