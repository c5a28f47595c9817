"""`tame data` as a person types it."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest
from faulty_server import dead_address, packed, packed_source, plain_source, serving
from typer.testing import CliRunner

from tame.cli.app import app
from tame.errors import DataError
from tame.streams.catalogue import SOURCES

TAME = [sys.executable, "-m", "tame"]
DIGITS = {name: name.encode() * 5000 for name in ("train.gz", "labels.gz")}
BATCHES = {"data_batch_1": b"1" * 500, "test_batch": b"2" * 500}
ARCHIVE = packed({f"cifar-10-batches-py/{name}": data for name, data in BATCHES.items()})


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving() as running:
        running.files |= DIGITS | {"cifar10.tar.gz": ARCHIVE}
        yield running


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    """Small data sets under the real names, and a data folder of the test's own."""
    small = plain_source("mnist", DIGITS, "MNIST/raw")
    monkeypatch.setitem(SOURCES, "mnist", small)
    archived = packed_source("cifar10", ARCHIVE, BATCHES, "cifar-10-batches-py")
    monkeypatch.setitem(SOURCES, "cifar10", archived)
    monkeypatch.setenv("TAME_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def call(*words: str):
    return CliRunner().invoke(app, ["data", *words])


def typed(*words: str):
    return subprocess.run(
        [*TAME, "data", *words], capture_output=True, text=True, check=False, timeout=60
    )


def test_list_fetch_list_verify(server, root):
    before = call("list").stdout
    assert str(root) in before
    assert re.search(r"mnist +absent, 0 MB to download", before)
    assert re.search(r"svhn .*non-commercial research only", before)
    done = call("fetch", "mnist", "cifar10", "--from", server.url)
    assert done.exit_code == 0, done.output
    assert f"mnist: fetched to {root / 'MNIST/raw'}" in done.stdout
    assert "train.gz" in done.stdout  # its progress
    assert (root / "MNIST/raw/train.gz").read_bytes() == DIGITS["train.gz"]
    assert (root / "cifar-10-batches-py/test_batch").read_bytes() == BATCHES["test_batch"]
    after = call("list").stdout
    assert re.search(r"mnist +present in MNIST/raw", after)
    assert re.search(r"cifar10 +present in cifar-10-batches-py", after)
    checked = call("verify")
    assert checked.exit_code == 0
    assert checked.stdout.count("  ok ") == 4
    assert "svhn: not here" in checked.stdout


def test_second_fetch_says_so_and_asks_for_nothing(server, root):
    assert call("fetch", "mnist", "--from", server.url).exit_code == 0
    asked = len(server.asked)
    again = call("fetch", "mnist", "--from", server.url)
    assert (again.exit_code, len(server.asked)) == (0, asked)
    assert f"mnist: already in {root}" in again.stdout


@pytest.mark.parametrize("option", ["--to", "--data"])
def test_folder_on_the_command_line_wins(server, root, tmp_path, option):
    place = tmp_path / "named"
    assert call("fetch", "mnist", option, str(place), "--from", server.url).exit_code == 0
    assert (place / "MNIST/raw/train.gz").exists()
    assert not root.exists()
    assert "present in MNIST/raw" in call("list", "--data", str(place)).stdout
    assert call("verify", str(place)).exit_code == 0


def test_verify_tells_wrong_from_missing_and_exits_with_one(server, root):
    call("fetch", "mnist", "--from", server.url)
    (root / "MNIST/raw/train.gz").write_bytes(b"broken")
    wrong = call("verify")
    assert wrong.exit_code == 1
    assert re.search(r"wrong +MNIST/raw/train\.gz \(MD5 \w{32}, official \w{32}\)", wrong.stdout)
    (root / "MNIST/raw/labels.gz").unlink()
    missing = call("verify")
    assert missing.exit_code == 1
    assert re.search(r"missing +MNIST/raw/labels\.gz", missing.stdout)
    assert "not whole in MNIST/raw, lacks labels.gz" in call("list").stdout
    assert call("fetch", "mnist", "--from", server.url).exit_code == 0
    assert call("verify").exit_code == 0


def test_faults_on_the_way_are_survived(server, root):
    server.faults = ["cut", "other page"]
    refused = call("fetch", "mnist", "--from", server.url, "--tries", "1")
    assert isinstance(refused.exception, DataError)
    assert "kept and will not be asked for again" in str(refused.exception)
    server.faults = []
    done = call("fetch", "mnist", "--from", server.url, "--tries", "1")
    assert done.exit_code == 0
    assert server.asked[1] == ("train.gz", f"bytes={len(DIGITS['train.gz']) // 2}-")
    assert (root / "MNIST/raw/train.gz").read_bytes() == DIGITS["train.gz"]


def test_mistakes_and_dead_servers_get_a_line_not_a_traceback(root):
    address = dead_address()
    for words, message in (
        (["fetch", "cifr10"], "did you mean 'cifar10'"),
        (["fetch", "mnist", "--from", address, "--tries", "1"], f"{address}/train-images"),
        (["fetch", "mnist", "--from", "somewhere"], "is no address to fetch from"),
        (["verify", str(root / "nowhere")], "there is no folder"),
    ):
        done = typed(*words)
        assert done.returncode == 2
        assert message in done.stderr
        assert "Traceback" not in done.stderr


def test_ctrl_c_keeps_what_has_arrived_and_the_next_fetch_goes_on(server, root):
    code = (  # where the tests run in the background, a shell has SIGINT ignored from the start
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from faulty_server import plain_source\n"
        "from tame.streams.catalogue import SOURCES\n"
        "from tame.cli.app import main\n"
        f"SOURCES['mnist'] = plain_source('mnist', {DIGITS!r}, 'MNIST/raw')\n"
        "main()"
    )
    server.faults = ["silent"]
    path = os.pathsep.join(filter(None, sys.path))
    process = subprocess.Popen(
        [sys.executable, "-c", code, "data", "fetch", "mnist", "--from", server.url],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=os.environ | {"PYTHONPATH": path},
    )  # fmt: skip
    partial, half = root / "MNIST/raw/train.gz.partial", len(DIGITS["train.gz"]) // 2
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and not (partial.exists() and partial.stat().st_size == half):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 130, output
    assert "what has arrived is kept" in output
    assert "Traceback" not in output
    assert partial.stat().st_size == half
    assert call("fetch", "mnist", "--from", server.url).exit_code == 0
    assert server.asked[1] == ("train.gz", f"bytes={half}-")
    assert (root / "MNIST/raw/train.gz").read_bytes() == DIGITS["train.gz"]


def test_data_commands_import_nothing_heavy(root):
    for words in (["list"], ["fetch", "--help"], ["--help"]):
        code = (
            "import sys; from tame.cli.app import app\n"
            f"try: app({['data', *words]!r})\n"
            "except SystemExit: pass\n"
            "heavy = {'torch', 'numpy', 'matplotlib', 'sklearn'} & set(sys.modules)\n"
            "sys.exit(f'imported {heavy}' if heavy else 0)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert not root.exists()  # looking makes no folder
