"""What the README shows runs as written."""

import re
import runpy
import shlex
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tame.bench.experiment import resolve
from tame.config import assignment

ROOT = Path(__file__).parents[2]


def test_the_ten_lines_of_python_run(tmp_path, monkeypatch):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    draws = np.random.default_rng(0)
    x = draws.integers(0, 256, size=(8, 1, 28, 28), dtype=np.uint8)
    y = draws.integers(0, 3, size=8)
    monkeypatch.chdir(tmp_path)
    names = {"my_stream": [(x, y)] * 3}
    exec(compile(code, "README.md", "exec"), names)  # noqa: S102 (the point of this test)
    assert names["labels"].shape == (8,)
    assert (tmp_path / "model.tame").exists()


def test_the_example_learns_all_machines(capsys):
    main = runpy.run_path(str(ROOT / "examples" / "own_stream.py"))["main"]
    assert main() > 0.8
    told = capsys.readouterr().out
    assert "batch 450: suspected" in told
    assert "batch 451: switched expert 0" in told


PAGES = sorted(
    path.relative_to(ROOT).as_posix() for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"))
)


@pytest.mark.parametrize("name", PAGES)
def test_links_between_documents_lead_somewhere(name):
    page = ROOT / name
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
    for link in links:
        assert (page.parent / link).exists(), f"{name} links to {link}"


@pytest.mark.parametrize("name", ["README.md", "docs/parallel.md"])
def test_runs_that_are_shown_can_be_started(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "DIR"
    own.mkdir()
    for part in ("", "held_"):
        np.save(own / f"{part}x.npy", np.zeros((4, 3), np.float32))
        np.save(own / f"{part}y.npy", np.arange(4))
    text = (ROOT / name).read_text(encoding="utf-8")
    shown = re.findall(r"^(?:torchrun .*-m )?tame run(.*)$", text, flags=re.MULTILINE)
    assert len(shown) > 4
    for line in shown:
        words = shlex.split(line, comments=True)
        changes = [after for word, after in pairwise(words) if word == "--set"]
        preset = words[0] if words and not words[0].startswith("-") else None
        assert resolve(preset, [assignment(change) for change in changes]).method == "tame"
