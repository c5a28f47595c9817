"""The record of a learner consolidated along its stream."""

import pytest
import variants
from lifelong import Lifelong


@pytest.fixture(scope="module")
def rows():
    quick = {"stream": {"lengths": [40]}, "selector": {"training": {"epochs": 1}}}
    return Lifelong(variants.held_back("embedded-split", [quick])).run(3)


def test_it_consolidates_after_equal_parts_wherever_segments_end(rows):
    assert [row["steps"] for row in rows] == [67, 133, 200]
    assert [row["segments"] for row in rows] == [2, 4, 5]


def test_it_tells_experts_and_what_they_know(rows):
    assert [row["experts"] for row in rows] == [2, 4, 5]
    assert all(row["oracle"] > 0.9 for row in rows)
    assert all(0 <= row["strict"] <= 1 for row in rows)
    assert rows[-1]["bytes"] > rows[0]["bytes"]
