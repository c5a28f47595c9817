"""The paper's presets name every value, and each runs on a short segment of its own data set."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

from tame.bench.experiment import resolve
from tame.bench.presets import presets, read_preset
from tame.bench.run import Unwatched, start

PAPER = [name for name, _ in presets() if name.startswith("paper/")]
SHORT = {
    "run": {"threads": 1},
    "stream": {"passes": 1, "batch": 8},
    "selector": {
        "memory": 16,
        "training": {"epochs": 1, "batch": 8},
        "retraining": {"epochs": 1, "batch": 8},
    },
    "pruner": {"memory": 16, "retraining": {"epochs": 1, "batch": 8}},
}


def missing(full: Mapping[str, Any], given: Mapping[str, Any], path: str = "") -> Iterator[str]:
    for key, value in full.items():
        if key not in given:
            yield path + key
        elif isinstance(value, Mapping) and isinstance(given[key], Mapping):
            yield from missing(value, given[key], f"{path}{key}.")


@pytest.mark.parametrize("name", PAPER)
def test_every_value_is_named_so_no_default_can_move_it(name):
    table = resolve(name).table()
    assert list(missing(table, read_preset(name))) == ["preset"]


def test_all_seven_benchmarks_are_there():
    streams = {"split-mnist", "permuted-mnist", "split-cifar100-20", "split-cifar100-10"}
    streams |= {"split-cifar10-5", "svhn-mnist", "mnist-svhn"}
    assert {f"paper/{name}" for name in streams} <= set(PAPER)
    for name in ("split-mnist", "split-cifar100-20", "split-cifar100-10", "split-cifar10-5"):
        assert resolve(f"paper/{name}").stream.labels == "local"
        assert resolve(f"paper/{name}-global").stream.labels == "global"


@pytest.mark.parametrize("name", PAPER)
def test_every_preset_has_its_one_pass_variant(name):
    once, often = resolve(f"{name}-one-pass"), resolve(name)
    assert once.stream.passes == 1
    assert often.stream.passes > 1
    assert once.settings == often.settings


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write tiny files in the official formats, a few images of every class."""
    root = tmp_path_factory.mktemp("data")
    draws = np.random.default_rng(0)
    raw = root / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for part, each in (("train", 8), ("t10k", 2)):
        y = np.tile(np.arange(10, dtype=np.uint8), each)
        x = draws.integers(0, 256, (len(y), 28, 28), dtype=np.uint8)
        header = b"\0\0\x08\x03" + np.array(x.shape, ">u4").tobytes()
        (raw / f"{part}-images-idx3-ubyte").write_bytes(header + x.tobytes())
        header = b"\0\0\x08\x01" + np.array(y.shape, ">u4").tobytes()
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(header + y.tobytes())
    _cifar(root, draws)
    (root / "SVHN").mkdir()
    for part in ("train", "test"):
        y = np.tile(np.arange(1, 11, dtype=np.uint8), 8)[:, None]
        x = draws.integers(0, 256, (32, 32, 3, len(y)), dtype=np.uint8)
        savemat(root / "SVHN" / f"{part}_32x32.mat", {"X": x, "y": y})
    return root


def _cifar(root, draws):
    ten, hundred = root / "cifar-10-batches-bin", root / "cifar-100-binary"
    ten.mkdir()
    hundred.mkdir()
    for name in (*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"):
        rows = draws.integers(0, 256, (20, 1 + 3072), dtype=np.uint8)
        rows[:, 0] = np.arange(20) % 10
        (ten / f"{name}.bin").write_bytes(rows.tobytes())
    for name in ("train", "test"):
        rows = draws.integers(0, 256, (400, 2 + 3072), dtype=np.uint8)
        rows[:, 1] = np.arange(400) % 100
        rows[:, 0] = rows[:, 1] // 5
        (hundred / f"{name}.bin").write_bytes(rows.tobytes())


@pytest.mark.parametrize("name", [name for name in PAPER if not name.endswith("-global")])
def test_each_preset_runs_on_a_short_segment(name, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("TAME_DATA", str(folder))
    changes: list[dict[str, Any]] = [SHORT, {"stream": {"order": [0, 1]}}]
    table = read_preset(name)
    if "weights" in table["net"]:
        changes.append({"net": {"weights": ""}, "inputs": {"size": [32, 32]}})
    if isinstance(table["selector"]["net"], Mapping):
        small = {"net": {"weights": ""}, "inputs": {"size": [32, 32]}}
        changes.append({"selector": small})
    result = start(resolve(name, changes), tmp_path, Unwatched())
    assert result["experts"] >= 1
    assert result["stream"]["labels"] == table["stream"]["labels"]
    assert 0 <= result["accuracy"]["within_segment"] <= 1
    assert (tmp_path / "report.html").exists()
