"""One table from label to slot, in order of first sight."""

import torch
from worlds import a, feed, small_tame

from tame import Batch
from tame.core.labels import LabelTable

HUGE = 2**63 - 1


def test_slots_are_given_in_order_of_first_sight():
    table = LabelTable()
    table.open(table.unknown(torch.tensor([9, 4, 9, 7])))
    table.open(table.unknown(torch.tensor([1, 4, 100])))
    assert table.labels().tolist() == [9, 4, 7, 1, 100]
    assert table.slots(torch.tensor([100, 9, 1, 7, 4])).tolist() == [4, 0, 3, 2, 1]
    assert len(table) == 5


def test_huge_labels_cost_no_more_than_small_ones():
    table = LabelTable()
    table.open(table.unknown(torch.tensor([HUGE, 0, HUGE - 1])))
    assert table.slots(torch.tensor([HUGE - 1, HUGE, 0])).tolist() == [2, 0, 1]
    assert table.unknown(torch.tensor([HUGE, HUGE - 2, 0])) == [HUGE - 2]


def test_learner_predicts_huge_labels():
    learner = small_tame()
    shifted = [Batch(batch.x, batch.y + HUGE - 3) for batch in a(80)]
    feed(learner, shifted)
    x, y = shifted[-1]
    assert (learner.predict(x) == y).float().mean() > 0.9


def test_asking_opens_nothing():
    table = LabelTable()
    assert table.unknown(torch.tensor([3])) == [3]
    assert len(table) == 0


def test_small_integer_dtypes_are_labels_too():
    learner = small_tame()
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32):
        feed(learner, [Batch(batch.x, batch.y.to(dtype)) for batch in a(1)])
    assert learner._intake.labels.labels().dtype == torch.int64
