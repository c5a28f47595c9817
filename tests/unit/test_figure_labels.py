"""Labels in figures do not lie on top of each other."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from tame.bench.labels import LINE, Mark, at_ends, beside, spread_out

PLACES = st.lists(st.floats(0.0, 100.0), min_size=1, max_size=20).map(sorted)


@given(PLACES)
def test_places_are_apart_and_inside_if_there_is_room(wanted):
    found = spread_out(wanted, 5.0, 0.0, 100.0)
    assert all(after - before >= 5.0 - 1e-6 for before, after in pairwise(found))
    assert found[0] >= -1e-6
    assert found[-1] <= 100.0 + 1e-6


@given(PLACES)
def test_places_that_are_apart_stay(wanted):
    apart = [place + 6.0 * number for number, place in enumerate(wanted)]
    assert spread_out(apart, 5.0, -1e3, 1e3) == pytest.approx(apart)


def test_with_too_little_room_they_begin_at_the_bottom():
    assert spread_out([1.0, 1.0, 1.0], 5.0, 0.0, 6.0) == [0.0, 5.0, 10.0]


@pytest.mark.parametrize("write", [beside, at_ends])
def test_labels_of_one_place_are_written_one_above_the_other(write):
    figure = Figure(figsize=(6, 4), dpi=72)
    axes = figure.add_axes((0.1, 0.1, 0.6, 0.8))
    axes.set_xlim(0, 10)
    axes.set_ylim(0, 100)
    write(axes, [Mark(5.0, 95.0, f"method {number}") for number in range(6)], 150.0)
    heights = sorted(text.get_position()[1] for text in axes.texts)
    assert len(heights) == 6
    assert all(after - before >= LINE - 1e-6 for before, after in pairwise(heights))


def test_labels_far_apart_stay_beside_their_marks():
    figure = Figure(figsize=(6, 4), dpi=72)
    axes = figure.add_axes((0.1, 0.1, 0.6, 0.8))
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 100)
    beside(axes, [Mark(1.0, 50.0, "left"), Mark(90.0, 50.0, "right")], 150.0)
    assert [text.get_position()[1] for text in axes.texts] == pytest.approx([0.0, 0.0])
