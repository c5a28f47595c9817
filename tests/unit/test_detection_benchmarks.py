"""The detection benchmarks count what they say they count."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from detection_endless import complete, experiment, follow, growth, name_of
from detection_null import Step, _delays, first_alarm, quiet, replayed
from detection_traces import Recorder

from tame import Reading
from tame.registry import DETECTORS
from tame.types import Verdict

RESULTS = Path(__file__).parents[2] / "benchmarks/results/detection"


class Above(Recorder):
    """Alarms above one half."""

    def update(self, reading: Reading) -> Verdict:
        return super().update(reading)._replace(shift=reading.loss > 0.5)


def test_first_alarm_counts_from_one():
    assert first_alarm(Above(), np.array([0.1, 0.2, 0.9])) == 3
    assert first_alarm(Above(), np.array([0.1])) is None


def test_run_lengths_are_censored_and_bounded():
    found = quiet(Above, lambda _, count: np.zeros(count), 3)
    assert (found["alarms"], found["in_100000"]) == (0, 0)
    assert found["at_least"] == pytest.approx(3_000 / 2.9957, abs=1)  # -log 0.05
    found = quiet(Above, lambda _, count: np.ones(count), 3)
    assert (found["alarms"], found["in_100000"], found["at_least"]) == (3, 100_000, 0)


def test_traces_are_replayed_from_where_they_branch():
    rows = {
        "a|8|0|0": np.array([[0.1, 0.0], [0.9, 0.0], [0.1, 0.0]]),
        "a|8|0|2": np.array([[0.1, 0.0], [0.7, 0.0]]),
        "a|8|0|3": np.array([[0.1, 0.0]]),
    }
    still, two, three = replayed(Above, rows)
    assert (still["age"], still["false_alarms"]) == (0, 1)
    assert (two["age"], two["median"], two["missed"]) == (2, 1, 0)
    assert (three["age"], three["median"], three["missed"]) == (3, None, 1)


def test_a_change_comes_after_as_many_readings_as_there_were_since_a_restart():
    rows = {"a|8|0|0": np.array([[0.1, 0.0]] * 4 + [[0.9, 0.0]] * 3)}
    rows |= {f"a|8|0|{age}": np.array([[0.9, 0.0]]) for age in (2, 6, 10)}
    still, six, ten = replayed(Above, rows)
    assert (still["age"], still["false_alarms"]) == (0, 3)
    assert [(row["age"], row["runs"], row["median"]) for row in (six, ten)] == [
        (6, 1, 0),
        (10, 1, 0),
    ]


def test_a_missed_change_counts_as_later_than_any_other():
    assert _delays([0, 1], 1)["median"] == 1
    assert _delays([0], 2)["median"] is None


@pytest.mark.parametrize("falling", [False, True])
def test_step_rises_at_its_age(falling: Any):
    readings = list(Step(400, 30, 16, falling=falling).readings(np.random.default_rng(0)))
    before, after = readings[29].loss, readings[30].loss
    assert before == pytest.approx(0.22 if falling else 1.0, rel=0.2)
    assert after == pytest.approx(2.5 if falling else 1.8, rel=0.2)
    assert readings[0].error == pytest.approx(readings[0].loss / 20, rel=0.2)


def test_every_detector_has_committed_results():
    document = json.loads((RESULTS / "null.json").read_text())
    assert set(DETECTORS) - {"label-set"} <= set(document)


def test_an_endless_run_is_followed_and_measured():
    made = experiment("quorum careful features", "local", 0, 4)
    assert made.settings.training.start == "features"
    assert experiment("quorum careful", "local", 0, 4).settings.training.start == "fresh"
    stream = made.open_stream()
    truth = stream.truth()
    assert len(truth.origins) == 4
    assert {b - a for a, b in pairwise(truth.starts)} == {60}
    assert all(a != b for a, b in pairwise(truth.origins))
    said, kept = follow(made.learner(), stream, 2)
    assert [event.step for event in said] == list(range(240))
    assert "switched" in {event.change for event in said} or len(set(truth.origins)) == 4
    assert [one["segments"] for one in kept] == [2, 4]
    assert all(one["samples"] > 0 and one["resident"] > 10**7 for one in kept)
    assert growth(kept, 2)["resident"] == pytest.approx(1.0, abs=0.5)


def test_runs_that_are_there_are_not_repeated(tmp_path, monkeypatch):
    task = ("quorum careful", "local", 0, 2)
    out = tmp_path / "endless.json"
    out.write_text(json.dumps({name_of(task): {"seed": 0}}))
    monkeypatch.setattr("detection_endless.run", None)
    assert complete([task], 1, out)[name_of(task)] == {"seed": 0}
