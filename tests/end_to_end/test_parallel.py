"""Two processes started by torchrun learn what one process learns, and fail with clear words."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from small import PRESET, SETTINGS, SHORTER

from tame.checkpoint import read
from tame.checks.failure import difference

RANKS = 2
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS))
SCENES = str(Path(__file__).with_name("ranks.py"))
LIMIT = 300


def start(*arguments: str) -> "subprocess.Popen[str]":
    path = os.pathsep.join(filter(None, sys.path))
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen([sys.executable, *arguments], env=environment, **pipes)


def finish(process: "subprocess.Popen[str]") -> tuple[int, str]:
    try:
        said, _ = process.communicate(timeout=LIMIT)
    finally:
        process.kill()
    return process.returncode, said


def state_of(path: Path) -> dict[str, Any]:
    return read(path)[1]


def told(folder: Path, scene: str, rank: int) -> dict[str, Any]:
    return json.loads((folder / f"{scene}-{rank}.json").read_text())


def memories(state: dict[str, Any]):
    """Return every reservoir of a learner: its experts' and its selector's."""
    pool = state["pool"]
    return [e["memory"] for e in pool["experts"]], pool["memories"], state["selector"]["reservoir"]


def weights(state: dict[str, Any]):
    """Return the weights and statistics of the experts that are awake."""
    return [expert["network"]["net"] for expert in state["pool"]["experts"]]


def distance(one: Any, other: Any) -> float:
    """Return the largest difference between two lists of networks."""
    pairs = [(a[name], b[name]) for a, b in zip(one, other, strict=True) for name in a]
    assert pairs
    return max(float((a.double() - b.double()).abs().max()) for a, b in pairs)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone")
    code, said = finish(start(SCENES, "digits,careful,norms,run", str(folder)))
    assert code == 0, said
    return folder


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    folder = tmp_path_factory.mktemp("both")
    scenes = "digits,careful,norms,dropout,astray,late,run,gone"  # late after one that ends in step
    code, said = finish(start(*TORCHRUN, SCENES, scenes, str(folder)))
    assert code == 0, said
    return folder


def test_two_processes_decide_as_one(alone, both):
    expected = told(alone, "digits", 0)
    assert len(expected["seen"]) == 100
    assert [seen for seen in expected["seen"] if seen[1] != "none"] == [[51, "recruited", 1]]
    for rank in range(RANKS):
        found = told(both, "digits", rank)
        assert found["seen"] == expected["seen"]
        assert found["losses"] == pytest.approx(expected["losses"], rel=1e-6)


def test_two_processes_are_careful_as_one(alone, both):
    expected = told(alone, "careful", 0)
    kinds = {seen[1] for seen in expected["seen"]}
    assert {"suspected", "withdrawn", "recruited", "switched"} <= kinds
    for rank in range(RANKS):
        assert told(both, "careful", rank) == expected
    one, two = state_of(alone / "careful-0.tame"), state_of(both / "careful-1.tame")
    assert difference(memories(one), memories(two)) is None
    waiting = [state["conduct"]["ledger"]["queue"]["waiting"] for state in (one, two)]
    assert [batch["owner"] for batch in waiting[0]] == [batch["owner"] for batch in waiting[1]]


def test_two_processes_keep_the_same_samples_and_weights(alone, both):
    expected = state_of(alone / "digits-0.tame")
    found = state_of(both / "digits-0.tame")
    assert difference(memories(expected), memories(found)) is None
    assert weights(found)[0]["0.weight"].dtype == torch.float64
    assert distance(weights(expected), weights(found)) < 1e-5


@pytest.mark.parametrize("name", ["digits", "plain", "augmented", "whole"])
def test_all_ranks_end_with_the_same_bits(both, name):
    states = [state_of(both / f"{name}-{rank}.tame") for rank in range(RANKS)]
    assert difference(*states) is None


@pytest.mark.parametrize("name", ["plain", "augmented"])
def test_batch_norm_and_augmentation_are_those_of_the_whole_batch(alone, both, name):
    expected = state_of(alone / f"{name}-0.tame")
    found = state_of(both / f"{name}-0.tame")
    assert difference(memories(expected), memories(found)) is None
    assert distance(weights(expected), weights(found)) < 1e-9


@pytest.mark.parametrize("rank", range(RANKS))
def test_saved_and_loaded_equals_never_stopped_with_draws_of_each_rank(both, rank):
    states = [state_of(both / f"{name}-{rank}.tame") for name in ("whole", "broken")]
    assert difference(*states) is None


@pytest.mark.parametrize("rank", range(RANKS))
def test_other_batches_on_other_ranks_are_refused(both, rank):
    same, longer = told(both, "astray", rank)["told"]
    assert same.startswith(f"rank {rank}: the ranks were given different batches (6, 6 samples)")
    assert longer.startswith(f"rank {rank}: the ranks were given different batches (6, 7 samples)")


def test_the_first_rank_alone_writes_the_run(alone, both):
    names = sorted(path.name for path in (alone / "run-0").iterdir())
    assert sorted(path.name for path in (both / "run-0").iterdir()) == names
    assert not (both / "run-1").exists()
    assert told(both, "run", 1)["result"] == {}


def test_a_whole_run_has_the_same_shifts_and_samples(alone, both):
    expected, found = (told(folder, "run", 0)["result"] for folder in (alone, both))
    kinds = [shift["change"] for shift in expected["shifts"]]
    assert [kind for kind in kinds if kind != "suspected"] == ["recruited", "switched"]
    for key in ("shifts", "detection", "experts", "restarts", "samples", "samples_kept"):
        assert found[key] == expected[key]
    assert found["accuracy"]["strict"] == pytest.approx(expected["accuracy"]["strict"], abs=0.02)
    states = [state_of(folder / "run-0" / "model.tame") for folder in (alone, both)]
    assert len(states[0]["pool"]["shelf"]["ids"]) == 1
    assert difference(*map(memories, states)) is None


def test_a_rank_that_is_late_is_named(both):
    found = told(both, "late", 0)
    assert found["told"].startswith("rank 0 of 2 lost the others")
    assert "waiting for more than 5 seconds (TAME_TIMEOUT)" in found["told"]


def test_a_rank_that_is_gone_is_an_error_not_a_wait(both):
    assert not (both / "gone-1.json").exists()
    found = told(both, "gone", 0)
    assert found["told"].startswith("rank 0 of 2 lost the others: one has failed or left")
    assert ".cc" not in found["told"]


def test_interrupted_and_resumed_equals_never_stopped(both, tmp_path):
    settings = (*SETTINGS, *SHORTER, "run.checkpoint_seconds=0.2")
    command = (*TORCHRUN, "-m", "tame", "run", "--out", str(tmp_path / "run"))
    changes = [word for setting in settings for word in ("--set", setting)]
    process = start(*command, PRESET, *changes)
    wait_for(tmp_path / "run" / "model.tame", process)
    process.send_signal(signal.SIGINT)
    code, said = finish(process)
    assert code != 0
    assert len(re.findall(r"^stopped .*; nothing is lost$", said, flags=re.MULTILINE)) == 1, said
    assert "go on with: torchrun --nproc-per-node 2 -m tame run --out" in said
    assert not (tmp_path / "run" / "result.json").exists()
    before = (tmp_path / "run" / "events.jsonl").read_bytes()
    code, said = finish(start(*command, "--resume"))
    assert code == 0, said
    after = (tmp_path / "run" / "events.jsonl").read_bytes()
    assert after.startswith(before)
    assert after == (both / "run-0" / "events.jsonl").read_bytes()
    states = [state_of(folder / "model.tame") for folder in (tmp_path / "run", both / "run-0")]
    assert difference(*states) is None


def wait_for(path: Path, process: "subprocess.Popen[str]") -> None:
    for _ in range(10 * LIMIT):
        if path.exists() or process.poll() is not None:
            break
        time.sleep(0.1)
    assert path.exists(), finish(process)[1]
