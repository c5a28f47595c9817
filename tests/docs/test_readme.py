"""What the README shows runs as written."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

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
    assert "batch 450: switched expert 0" in told


@pytest.mark.parametrize(
    "name", ["README.md", "ARCHITECTURE.md", "docs/algorithm.md", "docs/detection.md"]
)
def test_links_between_documents_lead_somewhere(name):
    page = ROOT / name
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
    for link in links:
        assert (page.parent / link).exists(), f"{name} links to {link}"
