"""Whole runs in their folders: complete, stopped, resumed, refused."""

import json
import tomllib

import numpy as np
import pytest
from small import small_experiment

from tame.bench.experiment import resolve
from tame.bench.run import Unwatched, resume, start
from tame.bench.store import RunFolder
from tame.bench.unfinished import StopRequestedError
from tame.checkpoint import read
from tame.checks.failure import difference
from tame.config import assignment
from tame.errors import ConfigError, DataError, InputError, RunError, StorageError

FIELDS = {
    "method", "stream", "preset", "seed", "compares", "hints", "accuracy", "selector_accuracy",
    "per_segment", "experts", "shifts", "detection", "parameters", "bytes", "samples", "seconds",
    "versions", "hardware",
}  # fmt: skip


class StopAt(Unwatched):
    def __init__(self, step: int) -> None:
        self.left = step

    def stop_asked(self) -> bool:
        self.left -= 1
        return self.left == 0


class StopIn(Unwatched):
    """Asks to stop before so many batches of consolidation; counts how often it is asked."""

    def __init__(self, batch: int) -> None:
        self.batch = batch
        self.asked = 0
        self.consolidating = False

    def phase(self, name: str, total: int, done: int) -> None:  # noqa: ARG002 (a watcher's)
        self.consolidating = name == "consolidate"

    def stop_asked(self) -> bool:
        self.asked += self.consolidating
        return self.consolidating and self.asked == self.batch


def measurements(folder, damage: float | None):
    """Write four classes of vectors, one of them with a number that is none."""
    draws = np.random.default_rng(3)
    y = np.repeat(np.arange(4), 160)
    x = (draws.normal(size=(len(y), 3)) + y[:, None]).astype(np.float32)
    for part, chosen in (("", slice(None)), ("held_", slice(None, None, 8))):
        np.save(folder / f"{part}x.npy", x[chosen])
        np.save(folder / f"{part}y.npy", y[chosen])
    if damage is not None:
        x[400, 1] = damage
        np.save(folder / "x.npy", x)


QUICK = ("selector.training.epochs=1", "pruner.retraining.epochs=1", "run.checkpoint_seconds=1e9")


def test_a_batch_that_is_refused_costs_nothing_that_was_learned(tmp_path):
    data, folder = tmp_path / "data", tmp_path / "run"
    data.mkdir()
    measurements(data, damage=np.nan)
    settings = [f"stream.data=files:{data}", *QUICK]
    experiment = resolve("own", [assignment(text) for text in settings])
    with pytest.raises(InputError, match=r"batch 1\d: x holds NaN .* all before it is learned"):
        start(experiment, folder, Unwatched())
    header, _ = read(folder / "model.tame")
    assert header["run"]["step"] >= 10
    measurements(data, damage=None)
    found = resume(folder, [], Unwatched())
    whole = start(experiment, tmp_path / "whole", Unwatched())
    for name in ("seconds", "bytes"):
        found.pop(name), whole.pop(name)
    assert found == whole


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "finished"
    return folder, start(small_experiment(), folder, Unwatched())


def test_a_run_leaves_everything_in_its_folder(finished):
    folder, result = finished
    assert sorted(path.name for path in folder.iterdir()) == [
        "events.jsonl", "model.tame", "report.html", "result.json", "run.toml",
    ]  # fmt: skip
    assert set(result) >= FIELDS
    assert json.loads((folder / "result.json").read_text()) == result
    assert set(result["accuracy"]) == {"strict", "within_segment", "oracle", "pooled"}
    assert result["samples"] == 5 * 3 * 800
    assert len((folder / "events.jsonl").read_text().splitlines()) == result["samples"] // 32


def test_the_return_is_recognised(finished):
    _, result = finished
    assert result["experts"] == 2
    found = result["detection"]
    late, in_samples = found["commit_delays"], found["commit_sample_delays"]
    assert found == {
        "delays": [0, 0],
        "false_alarms": 0,
        "missed": 0,
        "commit_delays": late,
        "withdrawn": 0,
        "sample_delays": [32, 32],
        "commit_sample_delays": in_samples,
        "leaks": 2,
        "wrong_reuse": 0,
        "wrong_recruits": 0,
        "expert_error": 0,
    }
    assert 8 <= late[0] <= 32
    assert late[1] <= 2
    kinds = [shift["change"] for shift in result["shifts"]]
    assert [kind for kind in kinds if kind != "suspected"] == ["recruited", "switched"]
    assert result["accuracy"]["strict"] > 0.8
    assert result["accuracy"]["strict"] <= result["accuracy"]["within_segment"]


def test_run_toml_spells_everything_out_and_reads_back(finished):
    folder, _ = finished
    table = tomllib.loads((folder / "run.toml").read_text())
    assert table["detector"]["burn_in"] == 20
    assert table["selector"]["training"]["augment"]["name"] == "affine"
    again = small_experiment().table()
    assert table == json.loads(json.dumps(again))


def test_a_folder_that_holds_a_run_is_refused(finished):
    folder, _ = finished
    before = (folder / "model.tame").read_bytes()
    with pytest.raises(RunError, match="already holds a run"):
        start(small_experiment(), folder, Unwatched())
    assert (folder / "model.tame").read_bytes() == before


@pytest.mark.parametrize("step", [1, 200, 374])
def test_stopped_and_resumed_equals_never_stopped(finished, tmp_path, step):
    folder, result = finished
    with pytest.raises(StopRequestedError, match=f"after batch {step} of 375"):
        start(small_experiment(), tmp_path, StopAt(step))
    assert not (tmp_path / "result.json").exists()
    again = resume(tmp_path, [], Unwatched())
    assert _timeless(again) == _timeless(result)
    assert (tmp_path / "events.jsonl").read_bytes() == (folder / "events.jsonl").read_bytes()
    states = [read(place / "model.tame")[1] for place in (tmp_path, folder)]
    assert difference(*states) is None


@pytest.mark.parametrize("batches", [[1], [20, 70], [5, 1, 130]])
def test_stopped_while_it_consolidates_it_goes_on_there(finished, tmp_path, batches):
    folder, result = finished
    with pytest.raises(StopRequestedError, match="stopped while consolidating"):
        start(small_experiment(), tmp_path, StopIn(batches[0]))
    for left in batches[1:]:
        assert (tmp_path / "consolidation.tame").exists()
        with pytest.raises(StopRequestedError, match="stopped while consolidating"):
            resume(tmp_path, [], StopIn(left))
    last = StopIn(0)
    again = resume(tmp_path, [], last)
    whole = StopIn(0)
    start(small_experiment(), tmp_path / "whole", whole)
    assert last.asked == whole.asked - sum(batches) + len(batches)  # it stops before a batch
    assert _timeless(again) == _timeless(result)
    assert again["seconds"]["consolidate"] > 0
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == sorted(
        path.name for path in folder.iterdir()
    )
    states = [read(place / "model.tame")[1] for place in (tmp_path, folder)]
    assert difference(*states) is None


def test_a_consolidation_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(StopRequestedError):
        start(small_experiment(), tmp_path, StopIn(3))
    notes = tmp_path / "consolidation.tame"
    notes.write_bytes(notes.read_bytes()[:1000])
    with pytest.raises(RunError, match="without this file consolidation begins anew"):
        resume(tmp_path, [], Unwatched())
    notes.unlink()
    assert resume(tmp_path, [], Unwatched())["experts"] == 2


def test_starting_over_forgets_an_unfinished_consolidation(tmp_path):
    with pytest.raises(StopRequestedError):
        start(small_experiment(), tmp_path, StopIn(3))
    with pytest.raises(StopRequestedError):
        start(small_experiment("seed=1"), tmp_path, StopAt(10), overwrite=True)
    assert not (tmp_path / "consolidation.tame").exists()


def test_a_finished_run_resumes_to_the_same_result(finished):
    folder, result = finished
    assert _timeless(resume(folder, [], Unwatched())) == _timeless(result)


def test_resuming_with_other_settings_is_refused(finished):
    folder, _ = finished
    with pytest.raises(RunError, match="other settings"):
        resume(folder, [{"seed": 7}], Unwatched())
    assert resume(folder, [{"seed": 0}], Unwatched())["seed"] == 0


def test_a_run_that_cannot_begin_leaves_no_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TAME_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="tame data fetch mnist"):
        start(small_experiment("stream.data=mnist"), tmp_path / "run", Unwatched())
    assert not (tmp_path / "run").exists()


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="file"):
        start(small_experiment(), tmp_path / "file" / "run", Unwatched())


def test_nothing_to_resume(tmp_path):
    with pytest.raises(RunError, match="no run to resume"):
        resume(tmp_path, [], Unwatched())


def test_events_beyond_the_checkpoint_are_cut(finished, tmp_path):
    folder, _ = finished
    with pytest.raises(StopRequestedError):
        start(small_experiment(), tmp_path, StopAt(50))
    with RunFolder(tmp_path).events.open("ab") as file:
        file.write(b'{"step": 50, "los')
    resume(tmp_path, [], Unwatched())
    assert (tmp_path / "events.jsonl").read_bytes() == (folder / "events.jsonl").read_bytes()


@pytest.mark.parametrize("method", ["finetune", "joint"])
def test_reference_methods_run_too(tmp_path, method):
    experiment = small_experiment()
    table = {key: experiment.table()[key] for key in ("net", "stream", "run", "inputs", "training")}
    from tame.bench.experiment import from_table

    result = start(from_table({**table, "method": method}, "own"), tmp_path, Unwatched())
    assert result["accuracy"]["oracle"] is None
    assert result["experts"] == 0
    assert result["detection"]["missed"] == 2


def test_joint_beats_finetune_on_a_stream_that_moves_on(tmp_path):
    from tame.bench.experiment import from_table

    found = {}
    for method in ("finetune", "joint"):
        table = small_experiment("stream.order=[0,1]").table()
        kept = {key: table[key] for key in ("net", "stream", "run", "inputs", "training")}
        experiment = from_table({**kept, "method": method}, "own")
        found[method] = start(experiment, tmp_path / method, Unwatched())["accuracy"]["strict"]
    assert found["joint"] > 0.9
    assert found["finetune"] < 0.7


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("detector.widht=4", "unknown key 'detector.widht'; did you mean 'width'"),
        ("detektor.width=4", "unknown key 'detektor'; did you mean 'detector'"),
        ("net=lenett", "no net named 'lenett'; did you mean 'lenet'"),
        ("seed=-1", "'seed' is a whole number"),
        ("stream.order=[9]", "order names segment 9"),
        ("stream.data=embeded", "no dataset named 'embeded'; did you mean 'embedded'"),
        ("selector.sparsity=2", "sparsity lies in"),
        ("nonsense", "not of the form"),
    ],
)
def test_wrong_settings_are_named(setting, message):
    with pytest.raises(ConfigError, match=message):
        small_experiment(setting).open_stream()


def test_a_changed_setting_keeps_its_neighbours():
    experiment = small_experiment("selector.training.rate=0.5", "detector.width=4")
    assert experiment.settings.selector.training.augment is not None
    assert experiment.settings.selector.training.epochs == 20
    assert experiment.settings.detector.width == 4.0
    assert experiment.settings.detector.window == 100


def _timeless(result):
    return {key: value for key, value in result.items() if key != "seconds"}
