"""Metrics on cases worked out by hand."""

from collections import Counter
from dataclasses import replace

import pytest
import torch

from tame.bench.metrics import change_points, detection, evaluate, stands_for, summarise, teaching
from tame.types import HeldOut, Truth


def truth(origins=(0, 1, 0), starts=(0, 10, 20), *, local=False):
    labels = {0: (0, 1), 1: (2, 3)}
    return Truth(
        origins, starts, {0: "a", 1: "b"}, labels, lambda step: {int(step >= 10): 4}, local
    )


class Fixed:
    """Answers and routes as told."""

    def __init__(self, answers, routes) -> None:
        self.answers, self.routes = torch.tensor(answers), torch.tensor(routes)

    def predict(self, x):
        return self.answers[x[:, 0].long()]


class Routed(Fixed):
    expert_ids = (0, 1)

    def route(self, x):
        return self.routes[x[:, 0].long()]

    def predict_by(self, x, expert):
        return torch.full((len(x),), expert * 2)


@pytest.mark.parametrize(
    ("alarms", "delays", "false", "missed"),
    [
        ([10, 20], [0, 0], 0, 0),
        ([12, 21], [2, 1], 0, 0),
        ([10, 15, 20], [0, 0], 1, 0),
        ([3, 10], [0], 1, 1),
        ([], [], 0, 2),
    ],
)
def test_the_first_alarm_inside_a_segment_belongs_to_its_start(alarms, delays, false, missed):
    found = detection(truth(), alarms)
    assert found == {"delays": delays, "false_alarms": false, "missed": missed}


def test_a_segment_that_continues_the_one_before_is_no_change():
    assert detection(truth((0, 0, 1)), [10, 20]) == {"delays": [0], "false_alarms": 1, "missed": 0}


def gradual(bursts=(), alike=None):
    return replace(truth(), settled=(0, 15, 24), bursts=bursts, alike=alike or {})


@pytest.mark.parametrize(
    ("alarms", "delays", "false", "missed"),
    [
        ([10, 20], [0, 0], 0, 0),
        ([13, 17, 20], [3, 0], 1, 0),  # the second comes when the change is over
        ([10, 13, 14, 20, 23], [0, 0], 0, 0),  # it is under way until 15, and until 24
        ([17, 18], [7], 1, 1),
        ([3, 9, 12], [2], 2, 1),
    ],
)
def test_while_a_gradual_change_is_under_way_more_alarms_are_not_false(
    alarms, delays, false, missed
):
    found = detection(gradual(), alarms)
    assert found == {"delays": delays, "false_alarms": false, "missed": missed}


def test_an_alarm_in_a_burst_is_false_and_finds_nothing():
    upset = gradual(bursts=((3, 5), (16, 18)))
    assert detection(upset, [4, 17, 20]) == {"delays": [0], "false_alarms": 2, "missed": 1}
    assert detection(upset, [18, 20]) == {"delays": [8, 0], "false_alarms": 0, "missed": 0}


def test_a_change_to_the_same_distribution_is_none():
    same = gradual(alike={1: 0})
    assert detection(same, [10, 20]) == {"delays": [], "false_alarms": 2, "missed": 0}
    assert change_points(same) == []


def test_an_expert_stands_for_what_taught_it_most_ties_to_the_earlier():
    taught = {0: Counter({0: 5, 1: 5}), 1: Counter({1: 7, 0: 2})}
    assert stands_for(truth((1, 0)), taught) == {0: 1, 1: 1}
    assert stands_for(truth((0, 1)), taught) == {0: 0, 1: 1}
    assert teaching(truth(), [0] * 10 + [3] * 2) == {0: {0: 40}, 3: {1: 8}}


def held(y, origin=0):
    return HeldOut(origin, "a", torch.arange(4).float()[:, None], torch.tensor(y))


def test_global_labels_strict_and_within():
    # Labels 0, 1 | 2, 3: the answer 2 for 0 is the right place in the wrong segment.
    learner = Routed([0, 2, 1, 3], [0, 1, 0, 1])
    (row,) = evaluate(learner, truth(), [held([0, 0, 1, 0])], {0: 0, 1: 1})
    assert row["strict"] == 0.5
    assert row["within_segment"] == 0.75
    assert row["selector"] == 0.5
    assert row["oracle"] == 0.75
    assert row["routed"] == {"0": 2, "1": 2}


def test_local_labels_demand_the_right_segment_too():
    learner = Routed([0, 1, 1, 0], [0, 1, 0, 0])
    (row,) = evaluate(learner, truth(local=True), [held([0, 1, 1, 1])], {0: 0, 1: 1})
    assert row["within_segment"] == 0.75
    assert row["strict"] == 0.5


def test_local_labels_without_experts_have_no_strict_figure():
    learner = Fixed([0, 1, 1, 0], [])
    rows = evaluate(learner, truth(local=True), [held([0, 1, 1, 1])], {})
    assert rows[0]["strict"] is None
    assert summarise(rows) == {
        "strict": None, "within_segment": 0.75, "oracle": None, "pooled": None,
    }  # fmt: skip


def test_a_segment_no_expert_stands_for_counts_as_wrong():
    learner = Routed([0, 0, 0, 0], [0, 0, 0, 0])
    (row,) = evaluate(learner, truth(), [held([2, 2, 3, 3], origin=1)], {0: 0, 1: 0})
    assert row["oracle"] == 0.0
    assert row["selector"] == 0.0


def test_means_are_unweighted_and_pooled_is_not():
    rows = [
        {"samples": 3, "strict": 1.0, "within_segment": 1.0, "oracle": 1.0},
        {"samples": 1, "strict": 0.0, "within_segment": 0.5, "oracle": 1.0},
    ]
    assert summarise(rows) == {
        "strict": 0.5, "within_segment": 0.75, "oracle": 1.0, "pooled": 0.75,
    }  # fmt: skip
