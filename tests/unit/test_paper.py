"""The paper's tables and figures from tiny made-up results."""

import gzip
import json
import math
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tame.bench.paper import measures, published
from tame.bench.paper.accuracy import table_1, table_2, table_3
from tame.bench.paper.inventory import inventory
from tame.bench.paper.measures import Spread, difference, formula, measured, spread
from tame.bench.paper.page import FIGURES, write_paper
from tame.bench.paper.results import read_results
from tame.bench.paper.studies import (
    gap_tables,
    hyper_table,
    recognised,
    returns_table,
    smoothing_table,
    twin_table,
)
from tame.bench.presets import read_preset
from tame.cli.app import app
from tame.errors import RunError, StorageError

STEPS = 30  # of a segment


def result(seed=0, name="split-mnist", within=0.98, **given: Any):
    """Return a run of two segments and two experts."""
    return {
        "format": 1,
        "name": name,
        "method": "tame",
        "preset": "paper/split-mnist",
        "changes": [],
        "seed": seed,
        "stream": {"name": "split", "labels": "local"},
        "hints": [],
        "accuracy": {"strict": within - 0.02, "within_segment": within, "oracle": 0.99},
        "selector_accuracy": 0.97,
        "per_segment": [],
        "experts": 2,
        "expert_table": [{"id": 0, "stands_for": 0}, {"id": 1, "stands_for": 1}],
        "segments": [
            {"origin": 0, "name": "0, 1", "start": 0},
            {"origin": 1, "name": "2, 3", "start": STEPS},
        ],
        "shifts": [{"step": STEPS, "change": "recruited", "expert": 1}],
        "detection": {"delays": [0], "false_alarms": 0, "missed": 0},
        "restarts": 0,
        "pruning_attempts": {"0": 1, "1": 3},
        "parameters": {"nonzero": 37976, "paper_count": 36745, "dense": 366411},
        "versions": {"tame": "0.1.0"},
        **given,
    }


def put(folder, run, file=None):
    """Write a result where `tame paper` finds it."""
    folder.mkdir(exist_ok=True)
    path = folder / (file or f"{run['name']}-seed{run['seed']}.json")
    path.write_text(json.dumps(run), encoding="utf-8")


def put_trace(folder, name, seed=0):
    """Write the trace of `result`: the loss falls, jumps at the change, and falls again."""
    events = []
    for step in range(2 * STEPS):
        loss = 0.9 if step == STEPS else 0.3 + 0.4 * math.exp(-(step % STEPS) / 5)
        expert = step // STEPS
        events.append(
            {"step": step, "loss": loss, "smoothed": loss, "threshold": 0.8, "expert": expert}
        )
    lines = "\n".join(json.dumps(event) for event in events)
    (folder / f"{name}-seed{seed}.events.jsonl.gz").write_bytes(gzip.compress(lines.encode()))


def row_of(text, start):
    """Return the cells of the one table row that starts so."""
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {start} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.fixture
def folder(tmp_path) -> Path:
    place = tmp_path / "results"
    for seed, within in enumerate((0.97, 0.98, 0.99)):
        put(place, result(seed, within=within))
    return place


# --- reading and grouping


def test_runs_are_grouped_by_name_in_the_order_of_seeds(folder):
    put(folder, result(10, name="split-mnist"))
    put(folder, result(0, name="other"))
    results = read_results(folder)
    assert [run["seed"] for run in results.groups["split-mnist"].runs] == [0, 1, 2, 10]
    assert set(results.groups) == {"split-mnist", "other"}


def test_a_result_without_a_name_is_called_as_its_file(folder):
    run = result(0)
    del run["name"]
    put(folder, run, "split-mnist.balanced-seed0.json")
    assert len(read_results(folder).groups["split-mnist.balanced"].runs) == 1


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("stream", {"stream": {"name": "split", "labels": "global"}}),
        ("preset", {"preset": "paper/split-mnist-global"}),
        ("changes", {"changes": ["pruner.sparsity=0"]}),
        ("versions.tame", {"versions": {"tame": "0.2.0"}}),
        ("method", {"method": "ewc"}),
    ],
)
def test_two_configurations_under_one_name_are_refused(folder, field, given):
    put(folder, result(3, **given))
    with pytest.raises(RunError, match=rf"seed0.json and split-mnist-seed3.json .* {field}: "):
        read_results(folder)


def test_a_seed_given_twice_is_refused(folder):
    put(folder, result(1), "copy-seed1.json")
    with pytest.raises(RunError, match="both seed 1 of 'split-mnist'"):
        read_results(folder)


def test_other_seeds_and_machines_are_not_another_configuration(folder):
    put(folder, result(3, hardware={"cpu": "another"}, versions={"tame": "0.1.0", "torch": "9"}))
    assert len(read_results(folder).groups["split-mnist"].runs) == 4


def test_a_missing_folder_is_refused_by_name(tmp_path):
    with pytest.raises(RunError, match=r"no folder .*nowhere.*--results"):
        read_results(tmp_path / "nowhere")


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(RunError, match="holds no result"):
        read_results(tmp_path)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [({"format": 2}, "format 2"), ({"accuracy": None}, "'accuracy'"), ({"seed": "x"}, "'seed'")],
)
def test_a_broken_result_is_refused_by_name(folder, given, complaint):
    put(folder, result(**given), "bad-seed9.json")
    with pytest.raises(RunError, match=f"bad-seed9.json.*{complaint}"):
        read_results(folder)


@pytest.mark.parametrize("content", [b"no gzip", gzip.compress(b"{}\n"), gzip.compress(b"")])
def test_a_broken_trace_is_refused_by_name(folder, content):
    (folder / "split-mnist-seed0.events.jsonl.gz").write_bytes(content)
    with pytest.raises(RunError, match=r"split-mnist-seed0\.events"):
        read_results(folder).record("split-mnist")


# --- means and intervals


def test_an_interval_is_students():
    # By hand: mean 98, deviation 1, t(2) = 4.302653 at 97.5 %, over the root of 3.
    found = spread([97.0, 98.0, 99.0])
    assert found is not None
    assert found.mean == pytest.approx(98.0)
    assert found.half == pytest.approx(4.302653 / math.sqrt(3), abs=1e-6)
    assert found.n == 3


def test_a_single_value_has_no_interval_and_none_is_nothing():
    assert spread([5.0]) == Spread(5.0, None, 1)
    assert spread([]) is None


def test_a_measure_counts_only_runs_that_have_it(folder):
    put(folder, result(3, selector_accuracy=None))
    found = measured(read_results(folder).get("split-mnist"), measures.selector)
    assert found is not None
    assert (found.n, found.mean) == (3, pytest.approx(97.0))


def test_differences_are_taken_seed_by_seed(folder):
    # Seeds 0 and 1 have 97 and 98: half a point and one and a half more, though seed 7 is lower.
    for seed, within in ((0, 0.975), (1, 0.995), (7, 0.5)):
        put(folder, result(seed, "split-mnist.balanced", within, changes=["selector.each=250"]))
    results = read_results(folder)
    pair = (results.get("split-mnist.balanced"), results.get("split-mnist"))
    found = difference(*pair, measures.within)
    assert found is not None
    assert (found.mean, found.n) == (pytest.approx(1.0), 2)
    assert "+1.00 ± 6.35" in gap_tables(results)  # t(1) = 12.7062 times 0.5


# --- the paper's own numbers


def test_the_papers_numbers_are_the_papers():
    rows = {row.title: row.cells for group in published.TABLE_1.values() for row in group}
    assert [cell.accuracy for cell in rows["TAME"]] == [87.32, 98.63, 62.39]
    assert [cell.parameters for cell in rows["TAME"]] == ["55.53K", "37.02K", "9.02M"]
    assert [cell.accuracy for cell in rows["EWC"]] == [54.81, 98.18, 32.78]
    assert [cell.accuracy for cell in rows["iTAML"]] == [None, 97.95, 54.55]
    assert [cell.parameters for cell in rows["CN-DPM"]] == ["616.1K", "746.8K", "19.20M"]
    assert published.TABLE_2["TAME"][1] == (97.45, 97.63, 98.63, 91.32, 61.06)
    assert published.TABLE_3["permuted-mnist"][1:] == (
        62.55,
        69.95,
        76.83,
        79.93,
        83.41,
        84.94,
        87.32,
    )
    assert published.HYPER["permuted-mnist"] == (100, 0.2, 5000, 6000, 98, 50)
    assert published.AuthorsCode() == (98.55, 96.80, 96.89)


def test_table_2_and_3_agree_with_table_1():
    tame = published.TABLE_1[published.NOTHING][-1]
    for data, cell in zip(published.TABLE_1_SETS, tame.cells, strict=True):
        assert cell.accuracy in published.TABLE_3[data]
    assert published.TABLE_2["TAME"][1][2] == tame.cells[1].accuracy


def test_the_papers_formula_gives_the_papers_counts():
    scaled = {
        data: measures.amount(spread([published.formula_count(data, experts) or 0.0]))
        for data, experts in (("split-mnist", 5), ("permuted-mnist", 20), ("split-cifar100-20", 20))
    }
    assert scaled == {
        "split-mnist": "37.02K",
        "permuted-mnist": "55.53K",
        "split-cifar100-20": "9.28M",  # not the 9.02M it prints
    }
    assert published.formula_count("svhn-mnist", 2) is None


def test_the_formula_is_for_the_papers_rates_only(folder):
    put(folder, result(name="split-mnist.unpruned-experts", changes=["pruner.sparsity=0"]))
    results = read_results(folder)
    assert formula(results.groups["split-mnist.unpruned-experts"]) is None
    found = formula(results.groups["split-mnist"])
    assert found is not None
    assert found.mean == pytest.approx(2 * 61_700 * 0.02 + 30_850)


# --- tables


def test_table_1_names_both_accuracies_and_leaves_dashes(folder):
    text = table_1(read_results(folder))
    split = text.split("### Split MNIST (5)")[1].split("### ")[0]
    assert row_of(split, "TAME") == [
        *("TAME", "98.63", "37.02K", "98.00 ± 2.48", "96.00 ± 2.48", "37.98K", "36.74K"),
        *("—", "local", "3"),
    ]
    assert row_of(split, "EWC") == ["EWC", "98.18", "61.7K", *["—"] * 7]
    permuted = text.split("### Permuted MNIST (20)")[1].split("### ")[0]
    assert row_of(permuted, "TAME") == ["TAME", "87.32", "55.53K", *["—"] * 7]
    assert row_of(permuted, "DEN")[1] == "83.61 (b)"


def test_a_competitors_result_fills_its_row(folder):
    put(folder, result(0, "split-mnist.ewc", 0.9, method="ewc", accuracy={"within_segment": 0.9}))
    split = table_1(read_results(folder)).split("### Split MNIST (5)")[1].split("### ")[0]
    row = row_of(split, "EWC")
    assert row[3:] == ["90.00", "—", "37.98K", "36.74K", "—", "local", "1"]


def test_a_global_twin_has_its_own_row_and_no_published_figure(folder):
    stream = {"name": "split", "labels": "global"}
    twin = result(0, "split-mnist-global", 0.99, preset="paper/split-mnist-global", stream=stream)
    put(folder, twin)
    results = read_results(folder)
    row = row_of(table_1(results), "TAME, global labels")
    assert row[1:5] == ["—", "—", "99.00", "97.00"]
    assert row[8] == "global"
    assert row_of(twin_table(results), "`split-mnist-global`")[1:4] == ["global", "99.00", "97.00"]


def test_labels_every_segment_shares_are_called_so(folder):
    stream = {"name": "permute", "labels": "global"}
    put(folder, result(0, "permuted-mnist", preset="paper/permuted-mnist", stream=stream))
    group = read_results(folder).groups["permuted-mnist"]
    assert (group.labels, group.data) == ("shared", "permuted-mnist")


def test_table_2_stands_beside_the_papers(folder):
    text = table_2(read_results(folder))
    assert row_of(text, "TAME, ours within segment")[1:] == ["—", "—", "98.00 ± 2.48", "—", "—"]
    assert row_of(text, "TAME, paper")[1:] == ["97.45", "97.63", "98.63", "91.32", "61.06"]


def test_table_3_reads_its_own_runs_and_the_presets(folder):
    put(folder, result(0, "split-mnist.cp50", 0.95, changes=["pruner.memory=50"]))
    row = row_of(table_3(read_results(folder)), "Split MNIST (5), ours within segment")
    assert row[1] == "95.00"
    assert row[5] == "98.00 ± 2.48"  # C_p = 1000 is the preset's own
    assert {*row[2:5], *row[6:]} == {"—"}


def test_hyper_parameters_come_from_the_presets(monkeypatch):
    assert row_of(hyper_table().split("\n\n")[2], "Split MNIST (5)")[1:5] == [
        *("100 / 100", "0.2 / 0.2", "2500 / 2500", "1000 / 1000")
    ]
    changed = read_preset("paper/split-mnist")
    changed["selector"]["memory"] = 123
    monkeypatch.setattr("tame.bench.paper.studies.read_preset", lambda _: changed)
    assert "**123 / 2500**" in hyper_table()


def test_the_gap_quotes_the_authors_code_as_measured(folder):
    text = gap_tables(read_results(folder))
    (line,) = [line for line in text.splitlines() if "measured by running" in line]
    assert "| 98.55 | 96.80 |" in line


def test_the_gap_lists_what_was_run_of_every_data_set(folder):
    put(folder, result(0, "svhn-mnist", 0.65))
    put(folder, result(0, "svhn-mnist.logits-unpruned", 0.95, changes=["pruner.sparsity=0"]))
    text = gap_tables(read_results(folder)).split("### SVHN-MNIST")[1]
    assert [line.split("|")[1].strip() for line in text.splitlines() if "`" in line] == [
        "as the preset",
        "experts not pruned, raw logits, rate 0.02",
    ]
    assert "| +30.00 |" in text
    assert "| the paper | Table 2 | 97.45 |" in text


def returning(seed, change="switched", expert=0):
    """Return a run whose third segment is the first again."""
    run = result(seed, "returns-t2", changes=["selector.training.epochs=5"])
    run["segments"].append({"origin": 0, "name": "0, 1", "start": 2 * STEPS})
    run["shifts"].append({"step": 2 * STEPS, "change": change, "expert": expert})
    return run | {"detection": {"delays": [0, 0], "false_alarms": 0, "missed": 0}}


def test_a_return_is_recognised_by_the_expert_of_its_origin():
    assert recognised(returning(0)) == (1, 1)
    assert recognised(returning(0, expert=1)) == (0, 1)
    assert recognised(returning(0, change="recruited", expert=2)) == (0, 1)
    assert recognised(result(0)) == (0, 0)


def test_returns_are_counted_over_runs(folder):
    put(folder, returning(0))
    put(folder, returning(1, change="recruited", expert=2) | {"experts": 3})
    results = read_results(folder)
    row = row_of(returns_table(results), "t1 t2 t3 t2 t4")
    assert row[2:] == ["2", "2.5 ± 6.4", "1 of 2", "4 of 4", "1 of 2", "0", "2"]
    listed = inventory(results).split("### ")[0]
    assert row_of(listed, "`returns-t2`")[3:7] == ["(cut short)"] * 4


def test_smoothing_is_told_by_experts_created(folder):
    many = [{"step": step, "change": "recruited", "expert": step} for step in (5, 9, STEPS)]
    put(folder, result(0, "split-mnist.unsmoothed", shifts=many, experts=4))
    text = smoothing_table(read_results(folder))
    assert row_of(text, "alpha = 0.2")[2] == "2"
    assert row_of(text, "alpha = 1, no smoothing")[2] == "4"


def test_all_runs_are_listed_with_repeated_prunings(folder):
    listed = inventory(read_results(folder)).splitlines()
    measured_, counted, made = [line for line in listed if line.startswith("| `split-mnist` |")]
    assert measured_.endswith("| 2 | 1 | 0 | 0 | 0 | 0 | 2 | 3 |")
    assert counted == "| `split-mnist` | 37.98K | 36.74K | 33.32K | 3 |"
    assert made == "| `split-mnist` | `paper/split-mnist` | — | 0.1.0 |"


# --- the page and its figures


@pytest.fixture
def traced(folder) -> Path:
    anytime = [{"segments": k, "strict": 0.9, "within_segment": 0.95} for k in (1, 2)]
    for seed in range(3):
        put(folder, result(seed, anytime=anytime))
    put(folder, result(0, "split-mnist.unsmoothed"))
    put(folder, result(0, "returns-twice"))
    put(folder, returning(0))
    for size in (100, 200):
        cell = {"preset": "paper/split-cifar100-20", "selector_accuracy": size / 1000}
        put(folder, result(0, f"split-cifar100-20.cs{size}", **cell))
    for name in ("split-mnist", "split-mnist.unsmoothed", "returns-twice", "returns-t2"):
        put_trace(folder, name)
    return folder


FILES = {
    "figure-1-switch",
    "figure-2-smoothing",
    "figure-3-tasks",
    "figure-3d-selector",
    "figure-4-returns",
    "supplement-losses",
}


def test_every_figure_is_written_as_svg_and_png(traced, tmp_path):
    page = write_paper(traced, tmp_path / "out")
    figures = tmp_path / "out" / FIGURES
    assert {path.name for path in figures.iterdir()} == {
        f"{name}.{kind}" for name in FILES for kind in ("svg", "png")
    }
    text = page.read_text(encoding="utf-8")
    for name in FILES:
        assert f"]({FIGURES}/{name}.png)" in text
        root = ET.fromstring((figures / f"{name}.svg").read_text(encoding="utf-8"))  # noqa: S314
        assert root.tag.endswith("svg")
        pixels = (figures / f"{name}.png").read_bytes()
        assert pixels[:8] == b"\x89PNG\r\n\x1a\n"
        assert int.from_bytes(pixels[16:20], "big") > 600  # wide enough to read
    assert "Left out" not in text


def test_the_same_results_give_the_same_bytes(traced, tmp_path):
    for out in ("a", "b"):
        write_paper(traced, tmp_path / out)
    for path in sorted((tmp_path / "a").rglob("*.*")):
        twin = tmp_path / "b" / path.relative_to(tmp_path / "a")
        assert path.read_bytes() == twin.read_bytes(), path.name


def test_figures_without_results_are_left_out_and_said_so(folder, tmp_path):
    text = write_paper(folder, tmp_path / "out").read_text(encoding="utf-8")
    assert text.count("Left out: ") == len(FILES)
    assert "no result has the field `anytime`" in text
    assert not (tmp_path / "out" / FIGURES).exists()


def test_a_folder_that_cannot_be_written_is_refused(traced, tmp_path):
    (tmp_path / "out").write_text("a file")
    with pytest.raises(StorageError, match="could not write"):
        write_paper(traced, tmp_path / "out")


# --- the command


def test_the_command_writes_the_page(folder, tmp_path, monkeypatch):
    done = CliRunner().invoke(
        app, ["paper", "--out", str(tmp_path / "a"), "--results", str(folder)]
    )
    assert done.exit_code == 0, done.output
    assert (tmp_path / "a" / "results.md").is_file()
    monkeypatch.chdir(tmp_path)
    lacking = CliRunner().invoke(app, ["paper", "--out", "b"])
    assert isinstance(lacking.exception, RunError)
    assert str(Path("benchmarks/results/paper")) in str(lacking.exception)


def test_help_imports_nothing_heavy():
    code = (
        "import sys, tame.cli.app; "
        "assert not {'numpy', 'torch', 'matplotlib', 'scipy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
