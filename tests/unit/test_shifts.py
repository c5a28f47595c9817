"""The tables of shift detection say what the runs say."""

from typing import Any

import pytest

from tame.bench.grid import Grid, grid_of, read_grid, read_plan
from tame.bench.leaderboard import Board, Row, headline
from tame.bench.shifts import best, gap, leaking, misplaced, recovered
from tame.bench.shifts_figure import trades
from tame.bench.shifts_page import markdown, write_shifts
from tame.errors import ConfigError
from tame.registry import CONDUCTS, DETECTORS

COMPARED = {"default": "ours careful", "paper": "theirs", "without_rollback": "bare"}


def run(seed: int, strict: float, delays: list[int], missed: int = 0, **more: Any):
    """Return the parts of a result that the tables read."""
    found = {
        "delays": delays, "commit_delays": [8 + delay for delay in delays],
        "sample_delays": [32 * (1 + delay) for delay in delays], "missed": missed,
        "commit_sample_delays": [32 * (9 + delay) for delay in delays],
        "false_alarms": 2, "withdrawn": 1, "wrong_reuse": 0, "wrong_recruits": 3,
        "expert_error": seed, "leaks": 0,
    }  # fmt: skip
    recoveries = [
        {"start": 9, "returned": True, "batches": 2},
        {"start": 19, "returned": True, "batches": None},
        {"start": 29, "returned": False, "batches": 40},
    ]
    return {
        "seed": seed, "accuracy": {"strict": strict, "within_segment": 0.5},
        "detection": found | more.pop("detection", {}), "samples": 3200,
        "stream": {"batch": 32, "name": "relabel"}, "expert_agreement": 0.9,
        "course": {"prequential": 0.7, "recoveries": recoveries},
        "reservoirs": {"kept": 100, "misplaced": 1}, "told": {"training": [], "testing": []},
    } | more  # fmt: skip


def board(name: str = "turns", **more: Any):
    rows = (
        Row("ours careful", (run(0, 0.80, [0, 1], **more), run(1, 0.90, [0, 4], **more))),
        Row("theirs", (run(0, 0.70, [0], 1, **more), run(1, 0.60, [2], 1, **more))),
        Row("top", (run(0, 0.83, [], 2, **more), run(1, 0.91, [9], 1, **more))),
        Row("bare", (run(0, 0.5, [0, 0], reservoirs={"kept": 50, "misplaced": 5}, **more),)),
    )
    return Board(name, rows)


def test_gaps_are_paired_by_seed_with_one_standard_error():
    made = board()
    found = gap(made.rows[2], made.rows[0], headline)
    assert (found.mean, found.n) == (pytest.approx(2.0), 2)
    assert found.error == pytest.approx(1.0)  # 3 and 1: deviation 1.414 over the root of 2
    assert found.is_within is False
    assert gap(made.rows[0], made.rows[2], headline).is_within is True
    single = gap(made.rows[3], made.rows[0], headline)
    assert (single.error, single.is_within, str(single)) == (None, None, "-30.00")
    assert best(made, headline).name == "top"


def test_text_has_every_figure():
    text = markdown("small", [board()], COMPARED, "as it was")
    lines = text.splitlines()
    assert "as it was" in lines
    assert (
        "| ours careful | 2 | 0.5 (4) | 48 (160) | 8.5 (12) | 304 (416) | 0 of 4 | 4 | 2 | 0 | 6 | "
        "+0.5, exact 1 of 2 | 0.90 ± 0.00 | 85.00 ± 63.53 | 70.00 ± 0.00 | 1.00 |"
    ) in lines
    assert "| turns | no | top | -2.00 ± 1.00 | no | +20.00 ± 10.00 | 6, 6 |" in lines
    assert "default less paper +20.00 points" in text
    assert "wrong recruits 6 against 6; missed 0 against 2 of 4." in text
    assert "| turns | 1.00 % | 10.00 % | 0.10 |" in lines
    assert "| theirs | 2 (2); 2 of 4 within 3, never 2 | 40 (40); 0 of 2 within 3 |" in lines


def test_every_row_is_summed_up_over_the_streams_that_all_have_and_no_label_gives_away():
    other = Board("other", board().rows[:2])
    leaky = board("leaky", detection={"leaks": 1})
    lines = markdown("small", [board(), other, leaky], COMPARED).splitlines()
    start = lines.index("## Every row, over all streams whose labels do not leak")
    text = lines[start : lines.index("## turns: right again")]
    ours = "| ours careful | 0.5 (4) | 8.5 (12) | 0 of 8 | 8 | 0 | 12 | +0.5, exact 2 of 4 | 85.00"
    assert sum(line.startswith(f"{ours} | 70.00 |") for line in text) == 1
    assert sum(line.startswith("| theirs") for line in text) == 1
    assert not any(line.startswith(("| top", "| bare")) for line in text)  # not on both


def test_streams_whose_labels_leak_are_marked_and_give_no_headline():
    fair, told = board(), board("told", detection={"leaks": 2})
    assert (leaking(fair), leaking(told)) == (False, True)
    text = markdown("small", [fair, told], COMPARED)
    assert "## told (labels leak)" in text
    assert "| told | yes | top |" in text
    assert "Over the 1 streams whose labels do not leak" in text
    assert [one.row for one in trades([fair, told])] == [row.name for row in fair.rows]


def test_a_missed_change_counts_as_a_hundred_batches_and_false_alarms_are_a_rate():
    ours, theirs, top, _ = trades([board()])
    assert ours == ("ours careful", 20.0, 1.25, 0.0)  # two alarms in 100 batches, both seeds
    assert (theirs.delay, theirs.missed) == (50.5, 0.5)  # 0, 2, never, never
    assert (top.delay, top.missed) == (77.25, 0.75)


def test_methods_without_experts_have_dashes():
    bare = {"wrong_reuse": None, "wrong_recruits": None, "expert_error": None}
    row = Row("single", (run(0, 0.5, [], 3, detection=bare, reservoirs=None),))
    text = markdown("small", [Board("turns", (row,))], COMPARED)
    assert "| single | 1 | — | — | — | — | 3 of 3 | 2 | 1 | — | — | — | 0.90 |" in text
    assert misplaced(row) is None
    nothing = run(0, 0.5, [], course={})
    assert recovered(Row("x", (nothing,)), returned=True) == "—"


def test_the_picture_and_the_text_are_written(tmp_path):
    grid = Grid("small", (), "as it was", COMPARED)
    path = write_shifts(grid, [board()], tmp_path)
    assert "detection.svg" in path.read_text()
    assert (tmp_path / "detection.svg").read_text().count("<path") > 10
    assert (tmp_path / "detection.png").stat().st_size > 1000


def test_the_packaged_grid_has_every_detector_and_conduct_on_every_stream():
    grid = read_grid("detection")
    assert grid.detection is not None
    assert set(grid.detection.values()) <= set(grid.rows)
    wanted = {f"{detector} {conduct}" for detector in DETECTORS for conduct in CONDUCTS}
    found = {(cell.row, cell.stream, cell.seed) for cell in grid.cells}
    every = {(row, stream, seed) for row in wanted for stream in grid.streams for seed in range(5)}
    assert every <= found
    hard = {cell.experiment.preset for cell in grid.cells if cell.experiment.preset[:4] == "hard"}
    assert len(hard) == 9
    for cell in grid.cells:
        assert cell.experiment.run.matrix == "asked"
        if cell.row in wanted:
            settings = cell.experiment.settings
            assert cell.row == f"{DETECTORS.name_of(settings.detector)} " + CONDUCTS.name_of(
                settings.conduct
            )
            assert settings.pruner.sparsity == settings.selector.sparsity == 0.0
    without = [cell for cell in grid.cells if cell.row == grid.detection["without_rollback"]]
    assert not any(cell.experiment.settings.conduct.rollback for cell in without)
    beside = {cell.row for cell in grid.cells if cell.experiment.method in ("finetune", "reset")}
    assert beside == {"single network", "reset on ADWIN", "reset on quorum"}


def test_labels_leak_where_the_grid_says_so():
    from tame.bench.decisions import leaks

    first = {cell.stream: cell.experiment for cell in reversed(read_grid("detection").cells)}
    found = {name for name, one in first.items() if leaks(one.open_stream().truth())}
    assert found == {"split", "overlap", "blurry", "imbalance"}


def test_the_sudden_grid_has_twenty_seeds_and_no_leak():
    from tame.bench.decisions import leaks

    grid = read_grid("sudden")
    assert {cell.seed for cell in grid.cells} == set(range(20))
    for cell in grid.cells[:12]:
        assert leaks(cell.experiment.open_stream().truth()) == 0


def test_a_part_that_detection_has_not_is_refused(tmp_path):
    path = tmp_path / "g.toml"
    path.write_text('[streams.a]\n[methods.finetune]\n[detection]\ndefalt = "finetune"\n')
    with pytest.raises(ConfigError, match=r"'detection.defalt'; did you mean 'default'"):
        grid_of(read_plan(str(path)))
