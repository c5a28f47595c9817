"""Whole runs of methods that are told something: told again on resuming what was not heard."""

import json

import pytest
from test_run import StopAt

from tame.bench.experiment import resolve
from tame.bench.run import Unwatched, resume, start
from tame.bench.unfinished import StopRequestedError
from tame.checkpoint import read
from tame.checks.failure import difference
from tame.config import assignment
from tame.errors import ConfigError

SHORT = ("stream.passes=1", "stream.order=[0,1,0]", "stream.batch=40", "net=mlp")
BOUNDARY = 20  # batches of the first segment


def told(method: str, *settings: str):
    """Return a short run of a packaged preset with another method."""
    texts = (*SHORT, f"method={method}", *settings)
    return resolve("embedded-split", [assignment(text) for text in texts])


def test_the_preset_keeps_what_the_method_knows():
    table = told("agem", "memory=77").table()
    assert table["memory"] == 77
    assert table["inputs"]["mean"] == [0.1307]
    assert "selector" not in table


def test_a_setting_the_method_has_not_is_still_refused():
    with pytest.raises(ConfigError, match="unknown key 'selector'"):
        told("agem", "selector.memory=3")


@pytest.mark.parametrize("stop", [BOUNDARY - 1, BOUNDARY, BOUNDARY + 1])
def test_resumed_around_a_boundary_is_never_having_stopped(tmp_path, stop):
    whole = start(told("ewc"), tmp_path / "whole", Unwatched())
    with pytest.raises(StopRequestedError, match=f"after batch {stop} of 60"):
        start(told("ewc"), tmp_path / "parts", StopAt(stop))
    again = resume(tmp_path / "parts", [], Unwatched())
    assert again["accuracy"] == whole["accuracy"]
    states = [read(tmp_path / name / "model.tame")[1] for name in ("whole", "parts")]
    assert difference(*states) is None


def test_result_says_what_was_told_and_what_it_is_worth(tmp_path):
    result = start(told("agem"), tmp_path / "run", Unwatched())
    assert result["told"]["testing"] == ["TEST_TASK"]
    assert result["accuracy"]["strict"] > result["untold_accuracy"]
    assert result["samples_kept"] <= 256
    assert json.loads((tmp_path / "run" / "result.json").read_text()) == result
