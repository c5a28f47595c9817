"""A whole grid: killed and started again, with cells that fail, with methods of others."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from plugin import install

from tame.checks import learner_checks

TAME = [sys.executable, "-m", "tame"]
TESTS = Path(__file__).parents[1]
GRID = """
seeds = [0, 1]
[streams.pair.stream]
order = [0, 1]
batch = 100
[all]
net = {name = "mlp", hidden = [16]}
"""


def write_grid(folder: Path, *methods: str, more: str = "") -> Path:
    path = folder / "small.toml"
    path.write_text(GRID + "".join(f"[methods.{name}]\n" for name in methods) + more)
    return path


def environment(*places: Path):
    path = [*map(str, places), *filter(None, sys.path)]
    return os.environ | {"PYTHONPATH": os.pathsep.join(path), "OMP_NUM_THREADS": "1"}


def call(*words: object, places=(), **more: Any):
    return subprocess.run([*TAME, *map(str, words)], env=environment(*places), capture_output=True,
                          text=True, check=False, **more)  # fmt: skip


def results(root: Path):
    return {path: path.stat().st_mtime_ns for path in root.glob("cells/*/*/*/result.json")}


def test_killed_half_way_and_started_again_nothing_runs_twice(tmp_path):
    # more batches than a kill can overtake
    grid = write_grid(tmp_path, "finetune", more="[streams.pair]\npreset = 'embedded-permute'\n")
    grid.write_text(grid.read_text().replace("batch = 100", "batch = 10\npasses = 2"))
    root = tmp_path / "out"
    process = subprocess.Popen([*TAME, "bench", str(grid), "--out", str(root), "--jobs", "1"],
                               env=environment(), stdout=subprocess.DEVNULL)  # fmt: skip
    deadline = time.monotonic() + 300
    while not results(root) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    finished = results(root)
    assert len(finished) == 1
    again = call("bench", grid, "--out", root, "--jobs", 1)
    assert again.returncode == 0, again.stderr
    assert "2 of 2 cells are done: 1 were done before, 1 ran now, 0 failed" in again.stdout
    assert finished.items() <= results(root).items()
    third = call("bench", grid, "--out", root)
    assert "2 were done before, 0 ran now" in third.stdout
    assert (root / "leaderboard.html").exists()
    assert "| finetune | 2 |" in (root / "leaderboard.md").read_text()


def test_out_of_time_it_stops_cleanly_and_goes_on(tmp_path):
    grid, root = write_grid(tmp_path, "finetune"), tmp_path / "out"
    words = ("bench", grid, "--out", root, "--jobs", 1)
    late = call(*words, "--minutes", 1e-6)
    assert late.returncode == 75, late.stderr
    assert "stopped; the same command goes on from here" in late.stdout
    done = call(*words, "--minutes", 100, "--gpu-jobs", 1, "--results", tmp_path / "kept")
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "kept" / "small").glob("pair.finetune-seed*.json"))) == 2
    before = {path: path.read_text() for path in (tmp_path / "kept").glob("*/*.json")}
    (tmp_path / "kept" / "small" / "about.md").write_text("Made in a hurry.")
    elsewhere = call("bench", grid, "--out", tmp_path / "new", "--results", tmp_path / "kept")
    assert "2 were done before, 0 ran now" in elsewhere.stdout
    assert "| finetune | 2 |" in elsewhere.stdout
    assert {path: path.read_text() for path in before} == before
    assert "Made in a hurry." in (tmp_path / "new" / "leaderboard.md").read_text()


def test_a_grid_of_detection_ends_in_its_own_tables(tmp_path):
    compared = '[detection]\ndefault = "reset"\npaper = "finetune"\n[all.run]\nmatrix = "asked"\n'
    grid, root = write_grid(tmp_path, "finetune", "reset", more=compared), tmp_path / "out"
    done = call("bench", grid, "--out", root, "--jobs", 2)
    assert done.returncode == 0, done.stderr
    text = (root / "detection.md").read_text()
    assert "The default is `reset`, the paper's rule `finetune`." in text
    assert "## pair (labels leak)" in text
    assert "| finetune | 2 | — | — | — | — | 2 of 2 | 0 |" in text
    assert "| reset | 2 |" in done.stdout
    assert "4 of 4 cells are done" in done.stdout
    assert (root / "leaderboard.html").exists()


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    """Return a finished grid of methods from another package, two of which break."""
    folder = tmp_path_factory.mktemp("foreign")
    package = install(folder)
    grid = write_grid(folder, "parrot", "grumble", "martyr")
    words = ("bench", grid, "--out", folder / "out")
    return package, call(*words, places=[package]), folder / "out"


def test_a_failed_cell_is_told_and_the_rest_go_on(foreign):
    _, done, root = foreign
    assert done.returncode == 1
    assert "failed: grumble on pair, seed 1: RuntimeError: enough is enough" in done.stderr
    assert "failed: martyr on pair, seed 0: its process died: killed by SIGKILL" in done.stderr
    assert "2 of 6 cells are done: 0 were done before, 2 ran now, 4 failed" in done.stdout
    (error,) = root.glob("cells/pair/grumble/seed0-*/error.txt")
    assert "in observe" in error.read_text()
    assert not list(root.glob("cells/pair/parrot/*/error.txt"))


def test_a_method_of_another_package_is_in_list_contract_and_grid(foreign):
    package, done, _ = foreign
    assert "| parrot | 2 |" in done.stdout
    assert "parrot" in call("list", "methods", places=[package]).stdout
    line = [sys.executable, "-m", "pytest", str(TESTS / "contract" / "test_methods.py")]
    line += ["-p", "no:cacheprovider", "--rootdir", str(TESTS.parent)]
    line += ["-c", str(TESTS.parent / "pyproject.toml")]
    found = subprocess.run([*line, "--collect-only", "-k", "parrot"], env=environment(package),
                           capture_output=True, text=True, check=False)  # fmt: skip
    names = [line for line in found.stdout.splitlines() if "parrot" in line]
    assert len(names) == len(dict(learner_checks())) + 1
    ran = subprocess.run([*line, "-k", "parrot and resumes"], env=environment(package),
                         capture_output=True, text=True, check=False)  # fmt: skip
    assert ran.returncode == 0, ran.stdout


def test_missing_ray_names_the_extra(tmp_path):
    (tmp_path / "ray.py").write_text("raise ImportError('no ray here')")
    done = call("bench", write_grid(tmp_path, "finetune"), "--ray", places=[tmp_path], cwd=tmp_path)
    assert done.returncode == 2
    assert "pip install 'tame[ray]'" in done.stderr


def test_an_address_without_ray_is_refused(tmp_path):
    done = call("bench", write_grid(tmp_path, "finetune"), "localhost:6379", cwd=tmp_path)
    assert done.returncode == 2
    assert "goes with --ray" in done.stderr
