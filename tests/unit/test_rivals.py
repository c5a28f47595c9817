"""Competitors' rows of the paper's tables, from small made-up cells of grids."""

import json
from unittest.mock import Mock

import pytest
from test_paper import put, result

from tame.bench.grid import read_grid
from tame.bench.harvest import Keeper, harvest, read_harvest
from tame.bench.paper.accuracy import table_1, table_2
from tame.bench.paper.page import write_paper
from tame.bench.paper.results import read_results
from tame.bench.paper.rivals import Rivals, read_rivals
from tame.bench.store import RunFolder, write_text
from tame.config import dump
from tame.core.settings import Settings
from tame.errors import RunError

HINTS = {
    "ewc": {"training": ["TRAIN_TASK"], "testing": ["TEST_TASK"]},
    "itaml": {"training": ["TRAIN_TASK"], "testing": ["TEST_GROUP"]},
    "oracle": {"training": ["TRAIN_TASK"], "testing": []},
}


def cell(row, grid="split-mnist", stream="split-mnist", seed=0, strict=0.5):
    given = {
        "grid": grid, "row": row, "stream_name": stream, "key": "k", "method": row,
        "told": HINTS.get(row, {"training": [], "testing": []}), "unbounded": row == "joint",
        "untold_accuracy": 0.25 if row == "itaml" else None, "settings": {"rate": 1},
        "bytes": {"model": 1000, "samples": 500, "training_state": 0},
        "accuracy": {"strict": strict, "within_segment": 0.9}, "stream": {"name": "split"},
    }  # fmt: skip
    return result(seed) | given


@pytest.fixture
def kept(tmp_path):
    """Return a folder of kept cells and one of a single run of TAME."""
    folder = tmp_path / "grids"
    for row in ("ewc", "itaml", "oracle", "cndpm", "hcl-fr", "hcl-gr", "er at TAME's bytes",
                "joint", "tame"):  # fmt: skip
        for seed in (0, 1):
            write_text(folder / "split-mnist" / f"split-mnist.{row}-seed{seed}.json",
                       json.dumps(cell(row, seed=seed)))  # fmt: skip
    hcl = cell("hcl-fr", "table2", "svhn-mnist", strict=0.61)
    write_text(folder / "table2" / "svhn-mnist.hcl-fr-seed0.json", json.dumps(hcl))
    put(tmp_path / "paper", result())
    return folder


def part(text, title="### Split MNIST (5)"):
    return text.split(title)[1].split("### ")[0]


def test_competitors_stand_beside_the_papers_numbers_grouped_as_told(kept):
    results = read_results(kept.parent / "paper")
    lines = part(table_1(results, read_rivals(kept))).splitlines()
    starts = [line.split(" | ")[0].removeprefix("| ") for line in lines if line.startswith("| ")]
    both, training, nothing = (
        next(i for i, s in enumerate(starts) if s.startswith(f"*{word}"))
        for word in ("task identity known in training and", "task identity known in training only",
                     "task-agnostic")
    )  # fmt: skip
    assert both < starts.index("EWC *") < training < starts.index("iTAML *") < nothing
    assert training < starts.index("oracle *") < nothing < starts.index("er at TAME's bytes *")
    assert starts.index("iTAML *, one sample at a time") == starts.index("iTAML *") + 1
    assert "joint *, keeps everything" in starts
    ewc = next(line for line in lines if line.startswith("| EWC *"))
    assert "| 98.18 | 61.7K | 90.00 ± 0.00 | 50.00 ± 0.00 |" in ewc
    assert "1.5 kB" in ewc
    alone = next(line for line in lines if "one sample at a time" in line)
    assert "25.00 ± 0.00" in alone
    assert starts.index("HCL-GR *") == starts.index("HCL-FR *") + 1
    assert "TAME *" in starts  # in the grid's regime, beside the run of the paper's
    assert "SI" in starts  # not run: the paper's number and dashes


def test_doubtful_cells_of_the_paper_have_their_notes():
    text = table_1(read_results_of_nothing(), Rivals())
    for word in ("swapped", "area under the ROC curve", "20.10"):
        assert word in text


def read_results_of_nothing():
    from tame.bench.paper.results import Results

    return Results(None, {})  # type: ignore[arg-type]


def test_table_2_takes_hcl_from_its_grid(kept):
    text = table_2(read_results(kept.parent / "paper"), read_rivals(kept))
    assert "| HCL-FR, ours strict | 61.00 |" in text
    assert "reconstruction" in text


def test_the_regime_stands_above_a_grids_rows(kept):
    page = write_paper(kept.parent / "paper", kept.parent / "out", kept).read_text()
    assert "Rows marked * are of the grid `split-mnist`: Split MNIST, 5 segments" in page


def test_what_is_said_of_kept_results_stands_on_the_page(kept):
    write_text(kept / "headline" / "about.md", "These digits\nwere *re-cropped*.\n")
    write_text(kept / "headline" / "x.tame-seed0.json", json.dumps(cell("tame", "headline")))
    write_text(kept.parent / "paper" / "about.md", "So were these.")
    page = write_paper(kept.parent / "paper", kept.parent / "out", kept).read_text()
    ours, papers = page.split("## The paper's tables")
    assert "\n\nThese digits were *re-cropped*.\n\n" in ours
    assert papers.split("\n## ")[0].endswith("\n\nSo were these.\n")


def test_what_is_said_of_kept_results_must_be_text(kept):
    (kept / "split-mnist" / "about.md").write_bytes(b"\xff\xfe")
    with pytest.raises(RunError, match=r"about.md cannot be read"):
        read_rivals(kept)


def test_no_folder_of_grids_is_no_rows(tmp_path):
    assert read_rivals(tmp_path / "nowhere").grids == []


def test_two_settings_under_one_name_are_refused(kept):
    path = kept / "split-mnist" / "split-mnist.ewc-seed1.json"
    path.write_text(json.dumps(cell("ewc", seed=1) | {"settings": {"rate": 2}}))
    with pytest.raises(RunError, match="split-mnist / split-mnist / ewc with different settings"):
        read_harvest(kept)


def two_of_one_row(kept, first, second):
    for seed, settings in enumerate((first, second)):
        path = kept / "split-mnist" / f"split-mnist.tame-seed{seed}.json"
        path.write_text(json.dumps(cell("tame", seed=seed) | {"settings": settings}))


def without(settings, part, key):
    return settings | {part: {k: v for k, v in settings[part].items() if k != key}}


def test_a_setting_that_came_later_and_changes_nothing_tells_no_cells_apart(kept):
    now = dump(Settings())
    assert now["inputs"]["standardise"] == 0
    before = without(now, "inputs", "standardise")
    two_of_one_row(kept, before, now)
    assert len(read_harvest(kept)) == len(list(kept.glob("*/*.json")))
    two_of_one_row(kept, before, now | {"inputs": now["inputs"] | {"standardise": 100}})
    with pytest.raises(RunError, match="split-mnist / split-mnist / tame with different settings"):
        read_harvest(kept)


def test_a_cell_from_before_a_setting_that_does_something_is_another(kept):
    now = dump(Settings())
    two_of_one_row(kept, without(now, "training", "start"), now)
    with pytest.raises(RunError, match="split-mnist / split-mnist / tame with different settings"):
        read_harvest(kept)


def test_a_file_that_is_no_cell_is_refused(kept):
    (kept / "split-mnist" / "x.y-seed3.json").write_text("{}")
    with pytest.raises(RunError, match="no kept cell of a grid: it has no 'grid'"):
        read_harvest(kept)


def test_finished_cells_are_kept_small(tmp_path):
    grid = read_grid("digits")
    cells = [cell for cell in grid.cells if cell.row == "finetune"]
    for one in cells:
        write_text(RunFolder(one.folder(tmp_path)).result, json.dumps(
            result(one.seed) | {"told": {}, "bytes": {}, "third": 1 / 3}))  # fmt: skip
    paths = harvest(grid, cells, tmp_path, tmp_path / "kept")
    assert paths[1] == tmp_path / "kept" / "digits" / "split.finetune-seed1.json"
    found = read_harvest(tmp_path / "kept")
    assert [run["seed"] for run in found] == [0, 1, 2]
    assert found[0]["third"] == 0.333333
    assert found[0]["alarms"] == 1
    assert "shifts" not in found[0]


def test_each_cell_is_kept_when_it_ends_and_only_if_it_is_done(tmp_path):
    grid, told = read_grid("digits"), Mock()
    one, other = [cell for cell in grid.cells if cell.row == "finetune"][:2]
    write_text(RunFolder(one.folder(tmp_path)).result, json.dumps(
        result(one.seed) | {"told": {}, "bytes": {}}))  # fmt: skip
    keeper = Keeper(grid, tmp_path, tmp_path / "kept", told)
    keeper.ended(one.name, "done", "")
    keeper.ended(other.name, "failed", "out of memory")
    assert [run["seed"] for run in read_harvest(tmp_path / "kept")] == [one.seed]
    assert [call.args[1] for call in told.ended.call_args_list] == ["done", "failed"]
