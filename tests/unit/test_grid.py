"""Grids as data: what a cell is, what is refused, and how rows are compared."""

from collections import deque
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from tame.bench.crew import LocalCrew
from tame.bench.experiment import resolve
from tame.bench.grid import Cell, grid_of, read_grid, read_plan
from tame.bench.leaderboard_page import markdown
from tame.bench.store import RunFolder
from tame.bench.sweep import Sweep, Task, differences, refuse_mixtures, sweep
from tame.errors import ConfigError, RunError

PLAIN = """
seeds = [0, 1]
[streams.split]
preset = "embedded-split"
[streams.split.stream]
passes = 2
[streams.other]
preset = "embedded-permute"
[methods.tame]
[methods.tame.pruner]
memory = 7
[methods.few]
method = "finetune"
seeds = [1]
streams = ["split"]
[methods.few.on.split.stream]
batch = 10
"""


def grid(folder, text=PLAIN, changes=()):
    path = folder / "g.toml"
    path.write_text(text)
    return read_grid(str(path), changes)


def test_cells_are_methods_times_streams_times_seeds_less_what_rows_leave_out(tmp_path):
    found = grid(tmp_path)
    assert [cell.name for cell in found.cells] == [
        "tame on split, seed 0", "tame on other, seed 0",
        "tame on split, seed 1", "few on split, seed 1", "tame on other, seed 1",
    ]  # fmt: skip
    first, few = found.cells[0].experiment, found.cells[3].experiment
    assert first.settings.pruner.memory == 7
    assert first.settings.selector.memory == 2000  # the preset's
    assert (first.stream.passes, first.stream.batch) == (2, 32)
    assert (few.method, few.stream.passes, few.stream.batch) == ("finetune", 2, 10)
    assert few.settings.inputs.mean == first.settings.inputs.mean
    assert first.run.matrix
    assert few.run.threads == 1


def test_a_stream_has_its_own_seeds_unless_a_row_does(tmp_path):
    text = PLAIN.replace("[streams.split]", "[streams.split]\nseeds = [1, 2]")
    text += "\n[methods.all]\nmethod = 'finetune'\n"
    found = [cell.name for cell in grid(tmp_path, text).cells if cell.row != "tame"]
    assert sorted(found) == [
        "all on other, seed 0", "all on other, seed 1",
        "all on split, seed 1", "all on split, seed 2", "few on split, seed 1",
    ]  # fmt: skip


def test_rows_and_streams_can_be_run_alone(tmp_path):
    grid(tmp_path)
    plan = read_plan(str(tmp_path / "g.toml"))
    found = grid_of(plan.only(["tame"], ["other"])).cells
    assert [cell.name for cell in found] == ["tame on other, seed 0", "tame on other, seed 1"]
    with pytest.raises(ConfigError, match=r"no stream named 'oter'.*other"):
        plan.only([], ["oter"])
    with pytest.raises(ConfigError, match="nothing to run: few of g not on other"):
        grid_of(plan.only(["few"], ["other"]))


def test_other_seeds_can_be_run_instead(tmp_path):
    grid(tmp_path)
    plan = read_plan(str(tmp_path / "g.toml"))
    found = grid_of(plan.only([], ["split"], [7])).cells
    assert [cell.name for cell in found] == ["tame on split, seed 7", "few on split, seed 7"]
    with pytest.raises(ConfigError, match="one or more different numbers"):
        plan.only([], [], [7, 7])


def test_a_seed_gives_every_row_the_same_stream(tmp_path):
    cells = {cell.name: cell.experiment for cell in grid(tmp_path).cells}
    one = cells["tame on split, seed 1"].open_stream()
    other = cells["few on split, seed 1"].open_stream()
    wide, narrow = (
        next(one.batches()).y,
        [batch.y for batch, _ in zip(other.batches(), range(3), strict=False)],
    )
    assert wide[:30].tolist() == [int(label) for part in narrow for label in part]


def test_the_key_is_of_the_whole_configuration(tmp_path):
    one, two = (
        grid(tmp_path).cells[0],
        grid(tmp_path, changes=[{"training": {"rate": 0.5}}]).cells[0],
    )
    assert one.key == grid(tmp_path).cells[0].key != two.key
    assert one.folder(tmp_path).name == f"seed0-{one.key}"


def test_a_setting_that_came_later_and_changes_nothing_is_no_part_of_the_key(tmp_path):
    patched = {"selector": {"training": {"cutmix": 0.5}}}
    cell, changed = (
        Cell("tame", "split", resolve("embedded-split", changes)) for changes in ([], [patched])
    )
    written = cell.experiment.to_toml()
    assert "cutmix = 0.0" in written
    assert "cutmix" not in str(cell.experiment.table(whole=False))
    assert "'cutmix': 0.5" in str(changed.experiment.table(whole=False))
    assert changed.key != cell.key
    folder = cell.folder(tmp_path)
    folder.mkdir(parents=True)
    older = "".join(line for line in written.splitlines(keepends=True) if "cutmix" not in line)
    (folder / "run.toml").write_text(older)
    refuse_mixtures([cell], tmp_path)
    with pytest.raises(RunError, match=r"training.cutmix is 0.0 there, 0.5 here"):
        refuse_mixtures([changed], tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PLAIN + "[method.x]\n", "unknown key 'method'.*did you mean 'methods'"),
        (PLAIN.replace("memory = 7", "memori = 7"), "did you mean 'memory'"),
        (PLAIN.replace('"finetune"', '"finetun"'), "did you mean 'finetune'"),
        (PLAIN.replace('["split"]', '["spilt"]'), "did you mean 'split'"),
        (PLAIN.replace("seeds = [0, 1]", "seeds = [1, 1]"), "different numbers"),
        ("seeds = [0]\n[streams.a]\n", "needs a table"),
        ('[streams."../a"]\n[methods.tame]\n', "named by letters"),
    ],
)
def test_mistakes_are_refused_by_name(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message):
        grid(tmp_path, text)


def test_unknown_grid_is_refused():
    with pytest.raises(ConfigError, match="did you mean 'digits'"):
        read_grid("digit")


class Nobody:
    """Takes note of what it is given, and does nothing."""

    def __init__(self) -> None:
        self.names = []

    def work(self, tasks, audience):
        self.names = [task.name for task in tasks]
        for task in tasks:
            audience.ended(task.name, "failed", "nobody came")

    def begun(self, name): ...
    def progress(self, name, phase, done, total): ...
    def ended(self, name, outcome, why): ...
    def stop_asked(self):
        return False


def test_cells_with_a_result_are_not_given_out_again(tmp_path):
    found, crew = grid(tmp_path), Nobody()
    done = RunFolder(found.cells[1].folder(tmp_path))
    done.create(found.cells[1].experiment.to_toml())
    done.result.write_text("{}")
    made = sweep(found, tmp_path, crew, crew)
    assert made.before == [found.cells[1]]
    assert crew.names == [cell.name for cell in found.cells if cell is not found.cells[1]]
    assert made.failed[crew.names[0]] == "nobody came"
    assert isinstance(made, Sweep)
    assert not made.stopped


def test_two_configurations_under_one_name_are_refused(tmp_path):
    before, after = grid(tmp_path), grid(tmp_path, changes=[{"training": {"rate": 0.5}}])
    RunFolder(before.cells[0].folder(tmp_path)).create(before.cells[0].experiment.to_toml())
    refuse_mixtures(before.cells, tmp_path)
    with pytest.raises(RunError, match=r"training.rate is 0.1 there, 0.5 here"):
        refuse_mixtures(after.cells, tmp_path)
    with pytest.raises(RunError, match="never mixes two under one name"):
        sweep(after, tmp_path, Nobody(), Nobody())


def test_seeds_alone_are_no_difference():
    assert differences({"seed": 1, "a": 1}, {"seed": 2, "a": 1}) == []
    assert differences({"a": 1}, {"b": 1}) == ["a is None there, 1 here", "b is 1 there, None here"]


def test_rows_may_take_their_settings_from_another_preset(tmp_path):
    text = PLAIN + '\n[methods.big]\nmethod = "tame"\nsettings = "paper/permuted-mnist"\n'
    cells = {cell.name: cell.experiment for cell in grid(tmp_path, text).cells}
    big = cells["big on split, seed 0"]
    assert big.settings.pruner.memory == 6000
    assert (big.stream.passes, big.stream.batch) == (2, 32)  # the stream's own, not that preset's
    assert big.preset == "embedded-split"


def test_longest_cells_begin_first(tmp_path):
    text = PLAIN.replace("[methods.few]\n", "[methods.few]\nminutes = 5\n")
    found = grid(tmp_path, text)
    begun: list[str] = []

    class Crew:
        def work(self, tasks, audience):
            begun.extend(task.name for task in tasks)
            assert audience.stop_asked() is None

    sweep(found, tmp_path / "out", Crew(), MagicMock(stop_asked=lambda: None))
    assert begun[0] == "few on split, seed 1"
    assert begun[1:] == [cell.name for cell in found.cells if cell.row != "few"]


def test_a_gpu_is_not_given_more_than_its_share():
    def task(name, device):
        return Task(name, "", {"device": device})

    crew = LocalCrew(jobs=4, gpu_jobs=1)
    waiting = deque([task("a", "cuda"), task("b", "cuda:0"), task("c", "cpu")])
    assert crew._next(waiting, {}).name == "a"
    busy: Any = {"a": SimpleNamespace(task=waiting.popleft())}
    assert crew._next(waiting, busy).name == "c"
    waiting.pop()
    assert crew._next(waiting, busy) is None


def test_the_regime_heads_the_table(tmp_path):
    found = grid(tmp_path, 'about = """One pass,\nthree seeds."""\n' + PLAIN)
    assert "# g\n\nOne pass, three seeds." in markdown(found.name, [], found.about)
