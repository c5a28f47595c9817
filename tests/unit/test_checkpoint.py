"""One file, all or nothing: what it keeps, and what is refused."""

import errno
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from worlds import a, b, feed, small_settings, small_tame

import tame
from tame import TAME, checkpoint
from tame.checks.failure import difference
from tame.checks.repetition import unpickling_refused
from tame.errors import CheckpointError, StorageError
from tame.streams.split import Split


@pytest.fixture
def model(tmp_path: Path):
    """Return a file with two experts, consolidated."""
    learner = small_tame()
    feed(learner, a() + b())
    learner.consolidate()
    path = tmp_path / "model.tame"
    learner.save(path)
    return path


def custom(shape: tuple[int, ...], outputs: int):
    """Return a net of the user's own, with running statistics and private draws."""
    return nn.Sequential(
        nn.Linear(shape[0], 16),
        nn.BatchNorm1d(16),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Linear(16, outputs),
    )


def leftovers(folder: Path):
    return sorted(path.name for path in folder.iterdir())


def test_state_survives_with_types_and_memory_formats(tmp_path: Path):
    images = torch.rand(4, 3, 5, 5).contiguous(memory_format=torch.channels_last)
    state = {
        "images": images,
        "plain": torch.rand(4, 3, 5, 5),
        "empty": torch.empty(0, 3),
        "number": torch.tensor(3),
        "mask": torch.tensor([True, False]),
        "half": torch.rand(3).to(torch.bfloat16),
        "nested": [{"a": [1, 2.5, None, "text", True]}, []],
        "odd": [float("nan"), float("inf"), 0.1 + 0.2, 2**62],
    }
    checkpoint.write(tmp_path / "file", {"run": {"step": 7}}, state)
    header, found = checkpoint.read(tmp_path / "file")
    assert header["run"] == {"step": 7}
    assert difference(state, found) is None
    assert found["images"].is_contiguous(memory_format=torch.channels_last)
    assert found["plain"].is_contiguous()


def test_the_same_tensor_twice_may_be_saved(tmp_path: Path):
    shared = torch.rand(3)
    checkpoint.write(tmp_path / "file", {}, {"one": shared, "two": shared, "view": shared[1:]})
    _, found = checkpoint.read(tmp_path / "file")
    assert torch.equal(found["two"][1:], found["view"])


def test_images_resume_bit_for_bit_in_their_memory_format(tmp_path: Path):
    stream = list(Split(order=(0, 1)).open(seed=0).batches())
    whole, first = (TAME(net="lenet", settings=small_settings()) for _ in range(2))
    expected = feed(whole, stream[:45])
    feed(first, stream[:30])
    first.save(tmp_path / "model.tame")
    second = tame.load(tmp_path / "model.tame")
    weight = second._pool.active.network.net[3].weight
    assert weight.is_contiguous(memory_format=torch.channels_last)
    assert not weight.is_contiguous()
    assert repr(feed(second, stream[30:45])) == repr(expected[30:])
    for learner in (whole, second):
        learner.consolidate()
    assert difference(whole.state_dict(), second.state_dict()) is None


def test_own_net_resumes_bit_for_bit_and_must_be_given(tmp_path: Path):
    stream = a() + b()
    whole, first = small_tame(net=custom), small_tame(net=custom)
    for learner in (whole, first):
        feed(learner, stream[:70])
        learner.consolidate()
    first.save(tmp_path / "model.tame")
    with pytest.raises(CheckpointError, match=r"net of your own \(test_checkpoint:custom\)"):
        tame.load(tmp_path / "model.tame")
    second = tame.load(tmp_path / "model.tame", net=custom)
    assert repr(feed(second, stream[70:])) == repr(feed(whole, stream[70:]))
    assert difference(whole.state_dict(), second.state_dict()) is None


def test_another_net_than_the_saved_one_is_refused(tmp_path: Path):
    learner = small_tame(net=custom)
    feed(learner, a(5))
    learner.save(tmp_path / "model.tame")
    with pytest.raises(CheckpointError, match="does not fit tame"):
        tame.load(tmp_path / "model.tame", net=lambda shape, n: nn.Linear(shape[0], n))


def test_cut_short_anywhere_is_refused(model: Path, tmp_path: Path):
    whole = model.read_bytes()
    short = tmp_path / "short.tame"
    for length in [*range(0, len(whole), len(whole) // 60), 7, 8, 9, len(whole) - 1]:
        short.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match=r"short\.tame"):
            tame.load(short)


def test_longer_than_it_should_be_is_refused(model: Path):
    model.write_bytes(model.read_bytes() + b"tail")
    with pytest.raises(CheckpointError, match="cut short or no checkpoint"):
        tame.load(model)


@pytest.mark.parametrize(
    "content", [b"", b"not a checkpoint", b"\x80\x04\x95pickle", b"\x00" * 1000, b"{}" * 500]
)
def test_foreign_bytes_are_refused(content: bytes, tmp_path: Path):
    path = tmp_path / "foreign.tame"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"foreign\.tame"):
        tame.load(path)


def test_pickle_is_refused_without_being_read(tmp_path: Path):
    path = tmp_path / "model.pt"
    torch.save({"a": torch.rand(3)}, path)
    with unpickling_refused(), pytest.raises(CheckpointError, match="no checkpoint"):
        tame.load(path)


DOCUMENT = {
    "format": 1,
    "made_by": checkpoint.environment(),
    "method": "tame",
    "net": "mlp",
    "seed": 0,
    "settings": {},
    "state": {},
}


def without(key: str) -> str:
    """Return the metadata of a checkpoint that lacks something."""
    return json.dumps({name: value for name, value in DOCUMENT.items() if name != key})


STRANGE = {
    "somebody else's": None,
    "empty": {},
    "no JSON": {"tame": "{"},
    "a list": {"tame": "[]"},
    "empty JSON": {"tame": "{}"},
    "format in words": {"tame": json.dumps(DOCUMENT | {"format": "one"})},
    **{f"no {key}": {"tame": without(key)} for key in DOCUMENT},
    "lost tensor": {
        "tame": json.dumps(DOCUMENT | {"state": {"$tensor": "/b", "format": "contiguous"}})
    },
    "empty state": {"tame": json.dumps(DOCUMENT)},
}


@pytest.mark.parametrize("kind", STRANGE)
def test_foreign_safetensors_are_refused(kind: str, tmp_path: Path):
    path = tmp_path / "other.safetensors"
    save_file({"/a": torch.rand(3)}, path, STRANGE[kind])
    with pytest.raises(CheckpointError, match=r"other\.safetensors"):
        tame.load(path)


def test_newer_format_is_refused_with_advice(tmp_path: Path):
    path = tmp_path / "newer.tame"
    save_file({"a": torch.rand(3)}, path, {"tame": json.dumps(DOCUMENT | {"format": 3})})
    with pytest.raises(CheckpointError, match="has format 3; this version reads up to 2: upgrade"):
        tame.load(path)


def test_missing_file_and_folder_are_refused(tmp_path: Path):
    for path in (tmp_path / "nothing.tame", tmp_path):
        with pytest.raises(CheckpointError, match="there is no file"):
            tame.load(path)


def test_full_disk_leaves_the_old_file(model: Path, monkeypatch: pytest.MonkeyPatch):
    before, folder = model.read_bytes(), leftovers(model.parent)

    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=r"could not write .*No space left"):
        small_tame().save(model)
    assert model.read_bytes() == before
    assert leftovers(model.parent) == folder


LIMITED = """
import resource, sys, torch
from tame import checkpoint
from tame.errors import StorageError
path = sys.argv[1]
checkpoint.write(path, {}, {"a": torch.zeros(10)})
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    checkpoint.write(path, {}, {"a": torch.ones(1_000_000)})
except StorageError as error:
    print("refused", float(checkpoint.read(path)[1]["a"].sum()))
"""


def test_a_write_the_system_really_refuses(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "file")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "refused 0.0\n", done.stderr
    assert leftovers(tmp_path) == ["file"]


def test_killed_before_the_rename_leaves_the_old_file(model: Path, monkeypatch: pytest.MonkeyPatch):
    before = model.read_bytes()

    def killed(_path: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint, "_sync", killed)
    with pytest.raises(KeyboardInterrupt):
        small_tame().save(model)
    assert model.read_bytes() == before
    assert leftovers(model.parent) == ["model.tame"]


def test_a_folder_that_cannot_be_made_is_our_error(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="could not write"):
        small_tame().save(tmp_path / "file" / "model.tame")


def test_folders_on_the_way_are_made(tmp_path: Path):
    small_tame().save(tmp_path / "a" / "b" / "model.tame")
    assert tame.load(tmp_path / "a" / "b" / "model.tame").expert_ids == ()


def test_other_versions_are_warned_about(model: Path, monkeypatch: pytest.MonkeyPatch):
    here = checkpoint.environment() | {"numpy": "99.0"}
    monkeypatch.setattr(checkpoint, "environment", lambda: here)
    with pytest.warns(UserWarning, match=r"other conditions \(numpy .* -> 99\.0\)"):
        tame.load(model)


def test_nothing_is_warned_about_at_home(model: Path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tame.load(model).expert_ids == (0, 1)


def test_saving_changes_nothing(tmp_path: Path):
    learner = small_tame()
    feed(learner, a(30))
    before = repr(learner.state_dict())
    learner.save(tmp_path / "model.tame")
    assert repr(learner.state_dict()) == before
