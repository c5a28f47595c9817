"""The first screen of the results: ours, twice, rivals, what is missing, and the grids it needs."""

import json

import pytest
from test_rivals import cell

from tame.bench.grid import read_grid
from tame.bench.paper.headline import MAIN, TRACKS, headline
from tame.bench.paper.rivals import Rivals, read_rivals
from tame.bench.store import write_text

OURS = {"seeds": 3, "strict": 0.80, "oracle": 0.95}


def put(folder, row, grid="headline", stream="split-cifar100-20", **given: float):
    for seed in range(given.get("seeds", 1)):
        made = cell(row, grid, stream, seed, given["strict"] + 0.01 * seed)
        made["accuracy"]["oracle"] = given.get("oracle")
        made["detection"] = {"delays": [0, 2], "missed": 0, "false_alarms": 0}
        made |= {"selector_accuracy": 0.81, "experts": 20}
        made["parameters"] |= {"nonzero": given.get("nonzero", 7_100_000)}
        made["bytes"] = {"model": 9, "samples": 30_000_000, "training_state": 2_000_000}
        name = f"{stream}.{row}-seed{seed}.json"
        write_text(folder / grid / name, json.dumps(made))


@pytest.fixture
def text(tmp_path):
    put(tmp_path, "tame", **OURS)
    put(tmp_path, "tame", "confirm", seeds=3, strict=0.77)
    put(tmp_path, "tame unpruned", seeds=3, strict=0.70, oracle=0.97)
    put(tmp_path, "gdumb", seeds=3, strict=0.75, nonzero=3_570_000)
    put(tmp_path, "joint", strict=0.85)
    put(tmp_path, "tame", stream="svhn-mnist", seeds=3, strict=0.97, oracle=0.98)
    return headline(read_rivals(tmp_path))


def rows(text, start):
    found = [line for line in text.splitlines() if line.startswith(f"| {start}")]
    return [[part.strip() for part in line.strip("|").split("|")] for line in found]


def test_ours_stands_beside_its_limits_and_the_papers_figures(text):
    first, _, _ = rows(text, "Split CIFAR-100 (20)")
    assert first[1] == "**81.00 ± 2.48 (3)**"
    assert first[2] == "78.00 ± 2.48 (3)"
    assert first[3].endswith("(9.02M)")
    assert first[4:6] == ["30.0 MB (35.3 MB)", "2.0 MB"]
    assert first[6:] == ["62.39", "9.02M"]
    assert rows(text, "SVHN-MNIST †")[0][6:] == ["97.45", "—"]


def test_rivals_are_paired_with_ours_by_seed_and_nothing_else_counts_as_one(text):
    _, second, _ = rows(text, "Split CIFAR-100 (20)")
    assert second[1:] == ["gdumb", "76.00 ± 2.48 (3)", "+5.00 ± 0.00", "3.57M", "32.0 MB"]


def test_what_is_missing_is_split_and_the_bound_stands_beside_it(text):
    *_, third = rows(text, "Split CIFAR-100 (20)")
    assert third[-4:] == ["3.00 ± 0.00", "+2.00 ± 0.00", "+14.00 ± 2.48", "85.00 (1)"]
    *_, whole = rows(text, "SVHN-MNIST †")
    assert whole[-4:] == ["2.00 ± 0.00", "—", "+0.00 ± 2.48", "—"]


def test_what_ours_was_not_run_on_is_named_with_what_others_have_there(tmp_path):
    for stream in TRACKS.keys() | MAIN.keys() - {"split-mnist"}:
        put(tmp_path, "tame", stream=stream, strict=0.9)
    assert "; " not in not_measured(tmp_path)
    assert "Split MNIST (5)." in not_measured(tmp_path)
    put(tmp_path, "er", stream="split-mnist", strict=0.5)
    assert "Split MNIST (5) (there er 50.00 (1))." in not_measured(tmp_path)
    put(tmp_path, "tame", stream="split-mnist", strict=0.9)
    assert not_measured(tmp_path) == ""


def not_measured(folder) -> str:
    lines = headline(read_rivals(folder)).splitlines()
    return next((line for line in lines if line.startswith("**Not measured")), "")


def test_without_cells_there_is_no_such_part(tmp_path):
    assert headline(Rivals()) == ""
    put(tmp_path, "tame", "confirm", seeds=1, strict=0.5)
    assert headline(read_rivals(tmp_path)) == ""


def test_the_grids_run_every_preset_as_it_is_on_seeds_apart():
    ours = {}
    for name in ("headline", "confirm"):
        cells = [cell for cell in read_grid(name).cells if cell.row == "tame"]
        assert {cell.stream for cell in cells} == set(MAIN) | set(TRACKS)
        ours[name] = {(cell.stream, cell.seed): cell.experiment for cell in cells}
    for (stream, seed), experiment in ours["headline"].items():
        again = ours["confirm"][stream, seed + 100]
        assert experiment.settings == again.settings
        assert experiment.preset == again.preset == stream
    assert len(ours["headline"]) == len(ours["confirm"])


def test_rivals_keep_no_fewer_bytes_than_ours_may():
    rows = {(c.row, c.stream): c.experiment.settings for c in read_grid("headline").cells}
    for stream in ("split-cifar10-5", "split-cifar100-10", "split-cifar100-20"):
        assert rows["gdumb", stream].memory * 3072 >= MAIN[stream].kept
        assert rows["er-ace", stream].memory_bytes >= MAIN[stream].kept
        for row in ("slda", "ranpac"):
            assert rows[row, stream].inputs == rows["tame", stream].inputs


def test_one_pass_has_the_bound_of_the_same_data_in_more(tmp_path):
    put(tmp_path, "tame", stream="split-mnist-one-pass", strict=0.9)
    assert rows(headline(read_rivals(tmp_path)), "Split MNIST (5), one pass")[-1][-1] == "—"
    put(tmp_path, "joint", stream="split-mnist", strict=0.95)
    assert rows(headline(read_rivals(tmp_path)), "Split MNIST (5), one pass")[-1][-1] == "95.00 (1)"
