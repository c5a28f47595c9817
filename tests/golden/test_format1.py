"""The first format stays readable for good."""

import json
import warnings
from typing import Any

import pytest
import torch
from make_format1 import EXPECTED, MODEL, expected, named

import tame
from tame.checkpoint import read
from tame.checks.material import world


@pytest.fixture
def learner():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*was written under.*")
        return tame.load(MODEL)


def test_header_is_of_format_one():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        header, _ = read(MODEL)
    assert header["format"] == 1
    assert header["method"] == "tame"
    assert header["net"] == {"name": "mlp", "hidden": [8]}
    assert header["seed"] == 1


def test_file_is_small():
    assert MODEL.stat().st_size < 300_000


def test_predictions_are_those_of_the_day_it_was_written(learner: Any):
    kept = json.loads(EXPECTED.read_text())
    x = torch.tensor(kept.pop("x"))
    assert expected(learner, x) == kept
    assert set(kept["route"]) == {0, 1}
    assert set(kept["ever"]) == {5, 15, 25, 35}


def test_it_can_be_gone_on_with(learner: Any):
    seen = [learner.observe(batch) for batch in named(world(40, seed=8))]
    assert [one.step for one in seen] == list(range(163, 203))
    assert seen[0].change == "switched"
    assert {one.expert for one in seen} == {0}
    assert learner.consolidate().experts == 2
