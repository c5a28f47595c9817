"""What a method remembers of what it was told: the task, and the labels of each."""

import json

import pytest
import torch
from torch import nn

from tame.errors import InputError
from tame.methods.told import Told, check_hint, masked
from tame.methods.vectors import (
    add_to_gradients,
    gradients,
    normalised,
    pieces,
    shapes,
    spread,
    weights,
)
from tame.types import Hint


def taught():
    """Return a table of two tasks: labels 0 and 2, then 1."""
    told = Told()
    told.see(torch.tensor([2, 0, 2]))
    told.hear(Hint(task=4))
    told.see(torch.tensor([1]))
    return told


def test_labels_belong_to_the_task_they_came_with():
    assert taught().allowed([0, 4, 4], 3).tolist() == [
        [True, False, True],
        [False, True, False],
        [False, True, False],
    ]


def test_tasks_may_come_from_a_generator():
    assert taught().allowed((task for task in [4]), 3).tolist() == [[False, True, False]]


def test_a_task_never_told_allows_every_label():
    assert taught().allowed([9], 3).all()


def test_a_task_that_returns_keeps_its_labels_and_adds_to_them():
    told = taught()
    told.hear(Hint(task=0))
    told.see(torch.tensor([1]))
    assert told.allowed([0], 3).all()


def test_a_hint_without_a_task_changes_none():
    told = taught()
    told.hear(Hint(boundary=True))
    assert told.task == 4


def test_state_survives_json():
    told, other = taught(), Told()
    other.load_state_dict(json.loads(json.dumps(told.state_dict())))
    assert other.task == told.task
    assert torch.equal(other.allowed([0, 4, 9], 3), told.allowed([0, 4, 9], 3))


def test_masked_scores_take_no_part():
    scores = torch.tensor([[1.0, 9.0, 2.0], [1.0, 9.0, 2.0]], requires_grad=True)
    allowed = torch.tensor([[True, False, True], [True, True, True]])
    found = masked(scores, allowed)
    assert found.argmax(1).tolist() == [2, 1]
    loss = nn.functional.cross_entropy(found, torch.tensor([0, 0]), reduction="none")
    assert loss[0].item() == pytest.approx(torch.tensor([1.0, 2.0]).logsumexp(0).item() - 1)
    loss[0].backward()
    assert scores.grad is not None
    assert float(scores.grad[0, 1]) == 0


@pytest.mark.parametrize(
    "bad", [Hint(task=-1), Hint(task=True), Hint(tasks=0), Hint(group=0), Hint(task="a")]
)
def test_impossible_hints_are_refused(bad):
    with pytest.raises(InputError, match="is a whole number"):
        check_hint(bad)
    with pytest.raises(InputError, match="is told a Hint, not dict"):
        check_hint({"task": 1})


def test_vectors_are_all_parameters_in_their_order():
    net = nn.Sequential(nn.Linear(2, 1), nn.Linear(1, 2))
    vector = weights(net)
    assert vector.numel() == 2 + 1 + 2 + 2
    back = pieces(vector, shapes(net))
    assert all(torch.equal(a, b) for a, b in zip(back, net.parameters(), strict=True))
    vector.zero_()
    assert weights(net).any()


def test_gradients_are_zero_where_there_are_none_and_can_be_added_to():
    net = nn.Linear(1, 1)
    assert gradients(net).tolist() == [0, 0]
    add_to_gradients(net, torch.tensor([1.0, 2.0]))
    add_to_gradients(net, torch.tensor([1.0, 2.0]))
    assert gradients(net).tolist() == [2, 4]


def test_spread_keeps_each_piece_in_its_corner():
    before, after = shapes(nn.Linear(2, 1)), shapes(nn.Linear(2, 2))
    found = spread(torch.tensor([1.0, 2.0, 3.0]), before, torch.zeros(6), after)
    assert found.tolist() == [1, 2, 0, 0, 3, 0]


def test_normalised_lies_between_zero_and_one():
    assert normalised(torch.tensor([-1.0, 0.0, 3.0])).tolist() == [0, 0.25, 1]
    assert normalised(torch.tensor([5.0, 5.0])).tolist() == [0, 0]
