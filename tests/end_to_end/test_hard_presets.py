"""The hard presets: each is as hard as it says, and runs."""

import json
from itertools import islice, pairwise

import numpy as np
import pytest
from typer.testing import CliRunner

from tame.bench.experiment import from_table, resolve
from tame.bench.metrics import change_points
from tame.bench.presets import presets
from tame.bench.run import Unwatched, resume, start
from tame.bench.unfinished import StopRequestedError
from tame.cli.app import app
from tame.config import merge

HARD = sorted(name for name, _ in presets() if name.startswith("hard/"))
BRIEF = {"epochs": 1, "batch": 16}
SHORT = {
    "selector": {"memory": 32, "training": BRIEF, "retraining": BRIEF},
    "pruner": {"memory": 32, "retraining": BRIEF},
}
SHORTER = {
    "hard/blend": {"blend": 4},
    "hard/burst": {"burst": {"every": 3, "batches": 1}},
}


def opened(name: str):
    return resolve(f"hard/{name}").open_stream()


def shortened(name: str):
    return resolve(name, [SHORT, {"stream": {"lengths": [8], **SHORTER.get(name, {})}}])


def test_all_are_there():
    names = ("blend", "blurry", "burst", "early-shift", "imbalance", "overlap", "relabel")
    assert [f"hard/{name}" for name in (*names, "rotation", "small-batch")] == HARD


def test_blends_take_fifty_batches_and_bursts_five():
    for start_, settled, _ in change_points(opened("blend").truth()):
        assert 46 <= settled - start_ <= 51
    bursts = opened("burst").truth().bursts
    assert len(bursts) == 9
    assert {end - begin for begin, end in bursts} == {5}


def test_a_shift_comes_thirty_batches_after_a_first_meeting():
    truth = opened("early-shift").truth()
    lengths = [b - a for a, b in pairwise(truth.starts)]
    short = [place for place, length in enumerate(lengths) if length == 30]
    assert len(short) == 2
    assert all(truth.origins[place] not in truth.origins[:place] for place in short)


def test_labels_tell_of_a_change_only_where_the_preset_says_so():
    shared = {"blend", "burst", "early-shift", "small-batch", "rotation", "relabel"}
    for name in (preset.removeprefix("hard/") for preset in HARD):
        truth = opened(name).truth()
        sets = {len(group) if truth.local else group for group in truth.labels.values()}
        assert (len(sets) == 1) == (name in shared)


def test_sizes_and_numbers():
    assert {len(batch) for batch in islice(opened("small-batch").batches(), 99)} == {8}
    counts = np.zeros(10, int)
    for batch in opened("imbalance").batches():
        counts += np.bincount(batch.y, minlength=10)
    assert counts[0] == 10 * counts[1] == 4 * counts[8]
    assert len(change_points(opened("rotation").truth())) == 2


@pytest.mark.parametrize("name", HARD)
def test_each_runs(tmp_path, name):
    result = start(shortened(name), tmp_path / "run", Unwatched())
    stream = shortened(name).open_stream()
    assert result["samples"] == sum(len(batch) for batch in stream.batches())
    assert len(result["per_segment"]) == len(stream.held_out())
    found = result["detection"]
    assert len(found["delays"]) + found["missed"] == len(change_points(stream.truth())) > 0
    assert len(found["sample_delays"]) == len(found["commit_sample_delays"]) == len(found["delays"])
    assert 0 <= result["reservoirs"]["misplaced"] <= result["reservoirs"]["kept"] > 0


def test_batches_are_asked_without_a_matrix_too_and_resumed_alike(tmp_path):
    table = merge(shortened("hard/relabel").table(), {"run": {"matrix": "asked"}})
    experiment = from_table(table, "hard/relabel")
    whole = start(experiment, tmp_path / "whole", Unwatched())["course"]
    assert set(whole) == {"prequential", "recoveries"}
    assert 0.0 < whole["prequential"] < 1.0
    assert [one["start"] for one in whole["recoveries"]] == [8, 16, 24, 32]
    assert [one["returned"] for one in whole["recoveries"]] == [False, False, True, True]
    with pytest.raises(StopRequestedError):
        start(experiment, tmp_path / "halved", StopAt())
    assert resume(tmp_path / "halved", [], Unwatched())["course"] == whole


class StopAt(Unwatched):
    left = 11

    def stop_asked(self) -> bool:
        self.left -= 1
        return self.left == 0


def test_a_hard_run_stopped_in_a_blend_goes_on_as_if_never_stopped(tmp_path):
    whole = start(shortened("hard/blend"), tmp_path / "whole", Unwatched())
    with pytest.raises(StopRequestedError):
        start(shortened("hard/blend"), tmp_path / "halved", StopAt())
    halved = resume(tmp_path / "halved", [], Unwatched())
    events = [(tmp_path / name / "events.jsonl").read_bytes() for name in ("whole", "halved")]
    assert events[0] == events[1]
    assert halved["per_segment"] == whole["per_segment"]


def test_options_are_typed_on_the_command_line(tmp_path):
    changes = ["stream.lengths=[8]", "stream.burst.every=4", "stream.burst.batches=1"]
    changes += ["selector.memory=32", "selector.training.epochs=1", "selector.retraining.epochs=1"]
    changes += ["pruner.memory=32", "pruner.retraining.epochs=1", "stream.rotation=30"]
    words = [word for change in changes for word in ("--set", change)]
    done = CliRunner().invoke(app, ["run", "hard/burst", "--out", str(tmp_path / "run"), *words])
    assert done.exit_code == 0, done.output
    told = json.loads((tmp_path / "run" / "result.json").read_text())["stream"]
    assert told["burst"] == {"every": 4, "batches": 1, "kind": "labels", "share": 1.0}
    assert told["rotation"] == 30.0
    wrong = CliRunner().invoke(app, ["run", "hard/burst", "--set", "stream.burst.evry=4"])
    assert str(wrong.exception) == "unknown key 'stream.burst.evry'; did you mean 'every'?"
