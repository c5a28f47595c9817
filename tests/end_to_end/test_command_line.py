"""The command line as a person types it."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from small import PRESET, SETTINGS
from typer.testing import CliRunner

from tame.cli.app import app
from tame.streams.embedded import read

TAME = [sys.executable, "-m", "tame"]


def settings() -> list[str]:
    return [PRESET, *(word for text in SETTINGS for word in ("--set", text))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("cli") / "run"
    done = subprocess.run([*TAME, "run", "--out", str(place), *settings()], capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "strict accuracy" in done.stdout
    assert "within-segment accuracy" in done.stdout
    assert "report.html" in done.stdout
    return place


def call(*words: str):
    return CliRunner().invoke(app, list(words))


def test_predict_reads_the_files_people_have(folder, tmp_path):
    x = read().held_x[:7]
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "x.npz", x=x, y=np.arange(7))
    answers = [
        call("predict", str(folder / "model.tame"), str(tmp_path / name)).stdout
        for name in ("x.npy", "x.npz")
    ]
    assert answers[0] == answers[1]
    assert answers[0].split().count("0") > 4
    out = tmp_path / "labels.npy"
    assert call("predict", str(folder / "model.tame"), str(tmp_path / "x.npy"), "--out", str(out))
    assert [str(label) for label in np.load(out)] == answers[0].split()


@pytest.mark.parametrize("name", ["gone.npy", "strange.docx", "broken.npy", "pickled.npy"])
def test_predict_refuses_bad_files(folder, tmp_path, name):
    path = tmp_path / name
    if name == "pickled.npy":
        np.save(path, np.array([{"a": 1}]), allow_pickle=True)
    elif name != "gone.npy":
        path.write_bytes(b"nonsense")
    done = subprocess.run([*TAME, "predict", str(folder / "model.tame"), str(path)],
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 2
    assert name in done.stderr
    assert "Traceback" not in done.stderr


def test_inspect_and_report(folder):
    told = call("inspect", str(folder / "model.tame")).stdout
    experts = json.loads((folder / "result.json").read_text())["experts"]
    assert f"{experts} experts" in told
    assert told.count("packed") == experts - 1  # all but the active one
    assert "0 1" in told
    assert "burn_in = 20" in told
    (folder / "report.html").unlink()
    assert "strict accuracy" in call("report", str(folder)).stdout
    assert (folder / "report.html").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["run", "embeded-split"],
            "no preset named 'embeded-split'; did you mean 'embedded-split'",
        ),
        (["run", "--set", "detector.widht=4"], "did you mean 'width'"),
        (["list", "method"], "did you mean 'methods'"),
        (["report", "nowhere"], "not a finished run"),
        (["inspect", "nowhere.tame"], "there is no file"),
    ],
)
def test_mistakes_get_a_line_not_a_traceback(words, message):
    done = subprocess.run([*TAME, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_listing_and_help_import_no_torch():
    for words in (["list"], ["list", "presets"], ["--help"], ["run", "--help"]):
        code = (
            "import sys; from tame.cli.app import app\n"
            f"try: app({words!r})\n"
            "except SystemExit: pass\n"
            "heavy = {'torch', 'numpy', 'matplotlib', 'sklearn'} & set(sys.modules)\n"
            "sys.exit(f'imported {heavy}' if heavy else 0)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path):
    output = stopped(tmp_path / "run", "events.jsonl", "stream.passes=100")
    assert "nothing is lost" in output
    assert "--resume" in output
    assert (tmp_path / "run" / "model.tame").exists()


def test_ctrl_c_while_it_consolidates_loses_nothing(tmp_path):
    changed = ("selector.training.epochs=400", "run.checkpoint_seconds=0.2")
    output = stopped(tmp_path / "run", "consolidation.tame", *changed)
    assert "stopped while consolidating; nothing is lost" in output
    again = subprocess.run([*TAME, "run", "--out", str(tmp_path / "run"), "--resume"],
                           capture_output=True, text=True, check=False)  # fmt: skip
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "run" / "result.json").exists()
    assert not (tmp_path / "run" / "consolidation.tame").exists()


def stopped(place, file, *changed: str):
    """Press Ctrl-C when there is something in a file of the run; return what it said."""
    words = [word for text in changed for word in ("--set", text)]
    process = subprocess.Popen([*TAME, "run", "--out", str(place), *settings(), *words],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True)  # fmt: skip
    written, deadline = place / file, time.monotonic() + 100
    while time.monotonic() < deadline and not (written.exists() and written.stat().st_size):
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopping after this batch" in output
    assert not (place / "result.json").exists()
    return output
