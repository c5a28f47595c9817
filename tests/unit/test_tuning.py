"""Tuning a grid: equal numbers of trials, samples held back, choices that the grid then reads."""

import json

import pytest
import torch
from typer.testing import CliRunner

from tame.bench.grid import read_grid, read_plan
from tame.bench.held_back import HeldBack
from tame.bench.run import Unwatched
from tame.bench.sweep import Task
from tame.bench.tuning import choices, trials, try_out
from tame.cli.app import app
from tame.errors import ConfigError
from tame.streams.split import Split

GRID = """
seeds = [0]
[tuning]
trials = 2
segments = 2
[all]
net = {name = "mlp", hidden = [16]}
[streams.pair.stream]
order = [0, 1, 2]
passes = 1
batch = 50
[methods.finetune.tune]
"training.rate" = [1e-6, 0.05]
[methods.ewc.tune]
strength = [1.0, 10.0]
[methods."ewc again"]
method = "ewc"
tuned = "ewc"
"""


def write(folder, text=GRID):
    path = folder / "g.toml"
    path.write_text(text)
    return str(path)


def test_held_back_samples_are_never_shown_and_are_the_same_in_every_pass():
    part = HeldBack(Split(passes=3).open(1), segments=2, share=0.2)
    shown = {(x.numpy().tobytes(), int(y)) for b in part.batches() for x, y in zip(*b, strict=True)}
    held = [
        (x.numpy().tobytes(), int(y))
        for h in part.held_out()
        for x, y in zip(h.x, h.y, strict=True)
    ]
    assert len(held) == len(set(held))
    assert not shown & set(held)
    assert 0.15 < len(held) / (len(held) + len(shown)) < 0.25
    assert part.truth().origins == (0, 1)


def test_a_trial_shows_samples_no_more_often_than_asked_and_than_its_row_does(tmp_path):
    grid = GRID.replace("segments = 2", "segments = 2\npasses = 3")
    often = '[methods.often]\nmethod = "er"\nstream = {passes = 9}\ntune = {memory = [5, 9]}\n'
    found = trials(read_plan(write(tmp_path, grid + often)))
    passes = {trial.row: trial.table["stream"]["passes"] for trial in found}
    assert passes == {"finetune": 1, "ewc": 1, "often": 3}


def test_every_row_has_as_many_trials(tmp_path):
    found = trials(read_plan(write(tmp_path)))
    assert [trial.row for trial in found] == ["finetune"] * 2 + ["ewc"] * 2
    assert found[0].table["seed"] == 1000
    unequal = GRID.replace("strength = [1.0, 10.0]", "strength = [1.0]")
    with pytest.raises(ConfigError, match="'ewc' has 1 combinations to try"):
        trials(read_plan(write(tmp_path, unequal)))
    with pytest.raises(ConfigError, match="a seed of its own"):
        trials(read_plan(write(tmp_path, GRID.replace("seeds = [0]", "seeds = [1000]"))))


def test_tuned_by_command_resumed_and_read_by_the_grid(tmp_path):
    grid, out = write(tmp_path), tmp_path / "out"
    line = ["bench", grid, "--tune", "--out", str(out), "--jobs", "1"]
    late = CliRunner().invoke(app, [*line, "--minutes", "0.0001"])
    assert late.exit_code == 75
    assert "0 of 4 trials are done" in late.output
    assert not json.loads((tmp_path / "g.tuned.json").read_text())["chosen"]
    done = CliRunner().invoke(app, line)
    assert done.exit_code == 0, done.output
    assert "4 of 4 trials are done" in done.output
    made = json.loads((tmp_path / "g.tuned.json").read_text())
    assert made["chosen"]["pair"]["finetune"] == {"training": {"rate": 0.05}}
    assert made["seconds"] > 0
    slow, quick = made["trials"]["pair"]["finetune"]
    assert slow["score"] < quick["score"]
    assert len(quick["by_segment"]) == 2
    cells = {cell.row: cell.experiment.settings for cell in read_grid(grid).cells}
    assert cells["finetune"].training.rate == 0.05
    assert cells["ewc again"].strength == cells["ewc"].strength
    again = CliRunner().invoke(app, ["bench", grid, "--tune", "--out", str(tmp_path / "new")])
    assert "4 of 4 trials are done" in again.output
    assert not (tmp_path / "new" / "tuning").exists()  # the file of choices says it all
    assert (tmp_path / "g.tuned.json").read_text() == json.dumps(made, indent=1) + "\n"
    assert again.exit_code == 0


def test_a_trial_that_breaks_or_takes_too_long_has_no_score_and_is_not_chosen(tmp_path):
    text = GRID.replace("segments = 2", "segments = 2\nminutes = 1e-9")
    plan = read_plan(write(tmp_path, text))
    found = trials(plan)
    for trial in found:
        try_out(
            Task(trial.name, str(trial.result(tmp_path).parent), dict(trial.table)), Unwatched()
        )
    made = choices(plan, found, tmp_path)
    assert made["trials"]["pair"]["ewc"][0]["error"].startswith("took longer than")
    assert made["chosen"] == {}
    broken = dict(found[0].table, stream={"name": "split", "data": "files:/nowhere"})
    try_out(Task("broken", str(tmp_path / "broken"), broken), Unwatched())
    assert json.loads((tmp_path / "broken" / "result.json").read_text())["score"] is None


def test_a_batch_held_back_whole_is_passed_over(tmp_path):
    single = GRID.replace("batch = 50", "batch = 1\nlengths = [40]")
    trial = trials(read_plan(write(tmp_path, single)))[0]
    try_out(Task(trial.name, str(tmp_path / "one"), dict(trial.table)), Unwatched())
    found = json.loads((tmp_path / "one" / "result.json").read_text())
    assert found["score"] is not None, found


def test_rows_tuned_elsewhere_keep_their_choice(tmp_path):
    plan = read_plan(write(tmp_path))
    before = {
        "trials": {"pair": {"ewc": [{"values": {"strength": 1.0}, "score": 0.5, "seconds": 2.0}]}},
        "chosen": {"pair": {"ewc": {"strength": 1.0}}},
    }
    made = choices(plan, trials(plan), tmp_path, before)
    assert made["chosen"] == before["chosen"]
    assert made["trials"]["pair"] == before["trials"]["pair"] | {"finetune": []}
    assert made["seconds"] == 2.0


def test_training_data_alone_decides(monkeypatch):
    stream = Split().open(0)
    monkeypatch.setattr(stream, "held_out", lambda: pytest.fail("the test samples were read"))
    part = HeldBack(stream, segments=1, share=0.1)
    assert isinstance(part.held_out()[0].x, torch.Tensor)
