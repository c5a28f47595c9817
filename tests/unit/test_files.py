"""Data that stays in its files: the same samples, refusals by name, and memory that stays flat."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tame.checks import check_stream
from tame.errors import ConfigError, DataError
from tame.streams.dataset import read
from tame.streams.embedded import read as embedded
from tame.streams.mapped import Mapped
from tame.streams.permute import Permute
from tame.streams.split import Split

NAMES = ("x", "y", "held_x", "held_y")


@pytest.fixture
def folder(tmp_path: Path):
    """Return a folder that holds the embedded digits as four files."""
    data = embedded()
    for name in NAMES:
        np.save(tmp_path / f"{name}.npy", getattr(data, name))
    return tmp_path


def same(one: Any, two: Any):
    for a, b in zip(one.batches(), two.batches(), strict=True):
        assert torch.equal(a.x, b.x)
        assert torch.equal(a.y, b.y)
    for a, b in zip(one.held_out(), two.held_out(), strict=True):
        assert torch.equal(a.x, b.x)
        assert torch.equal(a.y, b.y)


def test_a_stream_over_files_is_the_stream_over_memory(folder):
    course = {"order": (0, 1, 0), "batch": 50, "blend": 4, "labels": "local"}
    stream = Split(data=f"files:{folder}", **course).open(seed=3)
    same(stream, Split(**course).open(seed=3))
    check_stream(Permute(data=f"files:{folder}", segments=2, batch=400).open(seed=0))


def test_pieces_are_one_data_set(folder):
    data = embedded()
    for place, (begin, end) in enumerate(((0, 7), (7, 1500), (1500, 4000))):
        np.save(folder / f"x-{place}.npy", data.x[begin:end])
        np.save(folder / f"y-{place}.npy", data.y[begin:end].astype(np.uint8))
    (folder / "x.npy").unlink()
    (folder / "y.npy").unlink()
    same(Split(data=f"files:{folder}").open(seed=0), Split().open(seed=0))
    found = read(f"files:{folder}").x[np.array([3999, 7, 6, 1500, 7, 0])]
    np.testing.assert_array_equal(found, data.x[[3999, 7, 6, 1500, 7, 0]])


def write_idx(path: Path, array: np.ndarray[Any, Any]):
    shape = np.array(array.shape, dtype=">u4").tobytes()
    path.write_bytes(b"\0\0\x08" + bytes([array.ndim]) + shape + array.tobytes())


def test_plain_idx_files_as_mnists(tmp_path):
    data = embedded()
    for part, x, y in (("train", data.x, data.y), ("t10k", data.held_x, data.held_y)):
        write_idx(tmp_path / f"{part}-images-idx3-ubyte", x[:, 0])
        write_idx(tmp_path / f"{part}-labels-idx1-ubyte", y.astype(np.uint8))
    same(Split(data=f"files:{tmp_path}").open(seed=0), Split().open(seed=0))
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(b"\0\0\x08\x01")
    with pytest.raises(DataError, match=r"t10k-images-idx3-ubyte is not a plain idx file"):
        read(f"files:{tmp_path}")


def test_binary_files_as_cifars(tmp_path):
    draws = np.random.default_rng(0)
    rows = draws.integers(0, 256, (60, 3073), dtype=np.uint8)
    rows[:, 0] = np.arange(60) % 10
    for place in range(5):
        rows[10 * place : 10 * place + 10].tofile(tmp_path / f"data_batch_{place + 1}.bin")
    rows[50:].tofile(tmp_path / "test_batch.bin")
    data = read(f"files:{tmp_path}")
    assert data.x.shape == (50, 3, 32, 32)
    chosen = np.array([49, 0, 20, 19])
    np.testing.assert_array_equal(data.x[chosen].reshape(4, -1), rows[chosen, 1:])
    assert data.y.tolist() == (np.arange(50) % 10).tolist()
    np.testing.assert_array_equal(data.held_x[np.arange(10)].reshape(10, -1), rows[50:, 1:])
    (tmp_path / "data_batch_3.bin").write_bytes(b"\0" * 3072)
    with pytest.raises(DataError, match=r"data_batch_3.bin is cut short: 3072 bytes are no whole"):
        read(f"files:{tmp_path}")


def test_floats_of_any_byte_order_come_as_the_machines(tmp_path):
    x = np.arange(12, dtype=">f4").reshape(4, 3)
    for name, array in zip(NAMES, (x, [0, 1, 0, 1], x, [1, 1, 0, 0]), strict=True):
        np.save(tmp_path / f"{name}.npy", array)
    batch = next(Split(data=f"files:{tmp_path}", classes=2).open(seed=0).batches())
    assert batch.x.dtype == torch.float32
    assert sorted(batch.x[:, 0].tolist()) == [0, 3, 6, 9]


class Counting:
    """A file that notes which of its rows were asked for, and in which order."""

    path = Path("counted.npy")

    def __init__(self, rows: Any) -> None:
        self.rows, self.asked = rows, []

    def gather(self, chosen: Any, out: Any, places: Any):
        self.asked.append(chosen.tolist())
        out[places] = self.rows[chosen]


def test_only_the_samples_asked_for_are_read_in_the_order_of_the_file():
    files = [Counting(np.arange(20).reshape(10, 2)), Counting(np.arange(20, 40).reshape(10, 2))]
    found = Mapped(files)[np.array([13, 2, 9, 10, 2])]
    np.testing.assert_array_equal(found[:, 0], [26, 4, 18, 20, 4])
    assert [file.asked for file in files] == [[[2, 2, 9]], [[0, 3]]]
    for wrong in (-1, 20):
        with pytest.raises(IndexError, match="there are 20 samples"):
            Mapped(files)[np.array([wrong, 3])]


def spoil(folder: Path, name: str, array: Any):
    np.save(folder / f"{name}.npy", array)


def shortened(folder: Path):
    path = folder / "x.npy"
    path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: spoil(f, "y", -np.ones(4000, int)), r"y.npy has labels from -1 to -1; they are"),
        (lambda f: spoil(f, "y", np.full(4000, 10**6)), r"y.npy has labels .* less than 1,000,000"),
        (lambda f: spoil(f, "y", np.zeros(4000)), r"y.npy holds float64 of shape \(4000,\)"),
        (lambda f: spoil(f, "y", np.zeros((4000, 1), int)), r"y.npy holds int64 of shape \(4000"),
        (lambda f: spoil(f, "y", np.zeros(3, int)), r"x.npy holds 4000 samples, .*y.npy 3 labels"),
        (lambda f: spoil(f, "held_y", np.zeros(1000, int)), r"y.npy and .*held_y.npy have"),
        (lambda f: spoil(f, "x", np.zeros((4000, 3), int)), r"x.npy holds int64 of shape"),
        (lambda f: spoil(f, "x", np.zeros(4000, np.uint8)), r"x.npy holds uint8 of shape \(4"),
        (lambda f: spoil(f, "x", np.zeros((3, 4000), "u1").T), r"x.npy .* in C order"),
        (lambda f: spoil(f, "held_x", np.zeros((1000, 3), "u1")), r"held_x.npy holds uint8 of"),
        (lambda f: (f / "held_x.npy").unlink(), r"has 0 files held_x.npy and 1 files held_y.npy"),
        (lambda f: (f / "y.npy").write_text("no"), r"y.npy cannot be read"),
        (shortened, r"x.npy cannot be read"),
        (lambda f: (f / "x.npy").unlink(), r"there is no x.npy, or train-images-idx3-ubyte"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_by_the_name_of_its_file(folder, change: Any, said: str):
    change(folder)
    with pytest.raises(DataError, match=said):
        read(f"files:{folder}")


def test_files_need_a_folder():
    with pytest.raises(ConfigError, match="'files' needs a folder"):
        Split(data="files").open(seed=0)


WALK = """
import resource, sys, torch
from tame.streams.split import Split
torch.set_num_threads(1)
stream = Split(data="files:" + sys.argv[1], order=(0, 1), batch=256).open(seed=0)
batches = stream.batches()
next(batches)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
read = sum(batch.x.nbytes for _, batch in zip(range(200), batches))
print(read, 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is counted in Linux's units")
def test_memory_does_not_grow_with_what_is_read(tmp_path):
    count = 400_000  # images of 3,072 bytes: 1.2 GB, of which the disk holds next to nothing
    for name, samples in (("x", count), ("held_x", 20)):
        path = tmp_path / f"{name}.npy"
        np.lib.format.open_memmap(path, "w+", np.uint8, (samples, 3, 32, 32)).flush()
    np.save(tmp_path / "y.npy", np.arange(count) % 4)
    np.save(tmp_path / "held_y.npy", np.arange(20) % 4)
    done = subprocess.run([sys.executable, "-c", WALK, str(tmp_path)], capture_output=True,
                          text=True, check=True)  # fmt: skip
    read_bytes, grown = map(int, done.stdout.split())
    assert read_bytes == 200 * 256 * 3072
    assert grown < 100e6 < read_bytes
