"""The second format, with packed experts, stays readable for good."""

import json
import warnings
from typing import Any

import pytest
import torch
from make_format1 import named
from make_format2 import EXPECTED, MODEL, kept

import tame
from tame.checkpoint import read
from tame.checks.material import world


@pytest.fixture
def learner():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*was written under.*")
        return tame.load(MODEL)


def test_header_is_of_format_two():
    header, state = read(MODEL)
    assert header["format"] == 2
    assert header["method"] == "tame"
    assert {"shelf", "memories"} <= state["pool"].keys()


def test_file_is_small():
    assert MODEL.stat().st_size < 300_000


def test_answers_and_samples_are_those_of_the_day_it_was_written(learner: Any):
    found = json.loads(EXPECTED.read_text())
    x = torch.tensor(found.pop("x"))
    assert kept(learner, x) == found
    assert found["packed"] == [0, 1]
    assert found["expert_ids"] == [0, 1, 2]


def test_it_can_be_gone_on_with(learner: Any):
    """A packed expert wakes up when its world returns."""
    seen = [learner.observe(batch) for batch in named(world(40, seed=8))]
    assert seen[0].change == "switched"
    assert {one.expert for one in seen} == {0}
    assert learner._pool.shelf.ids.tolist() == [1]
    assert learner.consolidate().experts == 3
    assert learner._pool.shelf.ids.tolist() == [1, 2]
