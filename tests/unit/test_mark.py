"""What losses an expert is used to, and who claims or refuses others."""

import math

import numpy as np
import pytest

from tame.core.dating import date
from tame.core.mark import Level, Mark, together
from tame.core.waiting import Waiting
from tame.types import Reading

TEN = np.full(10, 10)


def level(losses: list[float], error: float = 0.0, before: Mark | None = None) -> Level:
    found = Level(before)
    for loss in losses:
        found.add(Reading(loss, error))
    return found


def test_a_learning_curve_does_not_widen_the_spread():
    falling = level([2.3 - 0.07 * step for step in range(30)]).mark(TEN, "logits")
    assert falling is not None
    assert falling.spread < 0.08
    assert falling.fit(Reading(2.3)).refuses


def test_a_young_expert_claims_nothing():
    mark = level([2.3, 2.2, 2.25] * 4).mark(TEN, "logits")
    assert mark is not None
    assert not mark.learned
    assert not mark.fit(Reading(2.2)).claims
    assert mark.fit(Reading(2.2)).refuses
    assert level([0.1] * 9).mark(TEN, "logits") is None


def test_an_expert_that_came_back_is_known_by_its_old_mark():
    old = Mark(0.1, 0.02, 2.3, 0.0)
    assert level([1.0] * 9, before=old).mark(TEN, "logits") == old
    assert level([1.0] * 10, before=old).mark(TEN, "logits") != old


def test_a_converged_expert_claims_a_rise_nobody_minds():
    mark = level([0.001] * 30).mark(TEN, "logits")
    assert mark is not None
    assert mark.fit(Reading(0.1)).deviations > 10
    assert mark.fit(Reading(0.1)).claims


def test_a_wide_spread_claims_nothing_half_way_to_guessing():
    mark = Mark(0.5, 0.5, 2.3, 0.0)
    assert mark.fit(Reading(1.3)).claims
    assert not mark.fit(Reading(1.5)).claims


def test_several_batches_tell_more_than_one():
    mark = Mark(0.3, 0.2, 2.3, 0.0)
    once, often = mark.fit(Reading(0.9)), mark.fit(*[Reading(0.9)] * 10)
    assert once.claims
    assert often.refuses
    assert often.deviations > once.deviations


def test_a_loss_that_few_samples_make_is_neither_claimed_nor_refused():
    """Six of its own deviations above, but only one and a half of what the batch tells."""
    mark = Mark(0.02, 0.03, 0.69, 0.0)
    fit = mark.fit(Reading(0.21, 0.13, 32))
    assert not fit.claims
    assert not fit.refuses
    assert fit.allowed < 2
    assert fit.deviations > 5
    assert mark.fit(*[Reading(0.21, 0.03, 32)] * 3).refuses


def test_losses_of_a_mixture_have_moved_though_no_batch_of_them_is_refused():
    """Ten batches of blending permuted digits, as they were read."""
    mark, mixed = Mark(0.3, 0.18, 2.3, 0.0), [Reading(1.13, 0.5, 32)] * 10
    assert mark.fit(*mixed).has_moved
    assert not mark.fit(*mixed).refuses
    assert not mark.fit(*[Reading(0.5, 0.5, 32)] * 10).has_moved  # a sixth of the way at most


def test_one_batch_is_enough_only_for_a_loss_close_to_the_level():
    mark = Mark(0.04, 0.06, 0.69, 0.0)
    near, so_so = mark.fit(Reading(0.08)), mark.fit(Reading(0.15))
    assert near.claims
    assert near.is_clear
    assert so_so.claims
    assert not so_so.is_clear


def test_no_number_is_refused():
    fit = Mark(0.3, 0.2, 2.3, 0.0).fit(Reading(math.nan))
    assert fit.refuses
    assert not fit.claims


@pytest.mark.parametrize("form", ["logits", "sigmoid"])
def test_an_expert_of_one_label_can_know_it(form):
    counts = np.array([0, 30, 0])
    least = 0.0 if form == "logits" else math.log(math.e + 2) - 1
    mark = level([least + 0.001] * 20).mark(counts, form)
    assert mark is not None
    assert mark.learned
    assert mark.fit(Reading(least + 0.002)).claims
    assert mark.fit(Reading(least + 1.0)).refuses


def test_saved_and_restored():
    found = level([0.5, 0.4, 0.3] * 8, 0.1, Mark(1.0, 0.1, 2.3, 0.0))
    again = Level.restore(found.state_dict())
    assert again.state_dict() == found.state_dict()
    assert again.mark(TEN, "logits") == found.mark(TEN, "logits")


def test_batches_of_other_sizes_are_weighed():
    found = together([Reading(1.0, 0.1, 30), Reading(3.0, 0.1, 10, 2)])
    assert (found.loss, found.samples, found.unseen) == (1.5, 40, 2)


def test_a_change_is_dated_to_where_losses_rose_and_no_earlier():
    usual = Mark(0.1, 0.02, 2.3, 0.0)
    none = Waiting(0, *[np.empty(0)] * 2, 0)  # type: ignore[arg-type]
    calm = [none._replace(step=step, loss=0.1) for step in range(10)]
    assert date(usual, calm, 10) == 10
    rising = [none._replace(step=10 + n, loss=0.2 + 0.1 * n) for n in range(4)]
    assert date(usual, calm + rising, 14) == 10
    assert date(usual, [], 5) == 5
