"""Labels an expert was never taught: how they are counted, and the rule that watches them."""

import torch
from worlds import NET, small_settings

from tame import TAME, Batch, Change, Reading
from tame.core.detectors.label_set import LabelSet
from tame.core.expert import unseen
from tame.engine.lesson import Lesson


def lesson(slots: list[int], live: int):
    return Lesson(torch.zeros(len(slots), 2), torch.tensor(slots), live, torch.nn.Identity(), "cpu")


def test_labels_never_taught_are_counted_once_each():
    taught = torch.tensor([True, False, True]).numpy()
    assert unseen(lesson([0, 2, 2], 3), taught) == 0
    assert unseen(lesson([0, 1, 1, 4, 3], 5), taught) == 3
    assert unseen(lesson([0], 1), taught) == 0
    assert unseen(lesson([1, 1], 2), taught[:0]) == 1


def test_loss_means_nothing_to_it():
    detector = LabelSet(burn_in=1)
    detector.update(Reading(1.0))
    assert detector.accepts(Reading(1e9))
    assert not detector.accepts(Reading(0.0, unseen=1))


def test_first_readings_bring_new_labels_without_alarm():
    detector = LabelSet(burn_in=3)
    alarms = [detector.update(Reading(1.0, unseen=1)).shift for _ in range(5)]
    assert alarms == [False, False, False, True, True]
    detector.rebase([])
    assert detector.accepts(Reading(1.0, unseen=1))
    detector.rebase([Reading(1.0)])
    assert not detector.accepts(Reading(1.0, unseen=1))


def segment(labels: tuple[int, int], count: int, seed: int):
    draws = torch.Generator().manual_seed(seed)
    for _ in range(count):
        y = torch.randint(0, 2, (16,), generator=draws)
        x = torch.randn(16, 4, generator=draws) + 3 * y[:, None]
        yield Batch(x, torch.tensor(labels)[y])


def test_experts_come_and_return_with_their_labels_packed_or_not():
    settings = small_settings(detector=LabelSet(burn_in=5))
    learner = TAME(net=NET, seed=0, settings=settings)
    changes = []
    for place, labels in enumerate([(0, 1), (2, 3), (4, 5), (0, 1), (2, 3)]):
        if place == 4:
            learner.consolidate()
        for batch in segment(labels, 20, place):
            seen = learner.observe(batch)
            if seen.change is not Change.NONE:
                changes.append((seen.step, seen.change, seen.expert))
    recruited, switched = Change.RECRUITED, Change.SWITCHED
    assert changes == [
        (20, recruited, 1),
        (40, recruited, 2),
        (60, switched, 0),
        (80, switched, 1),
    ]
