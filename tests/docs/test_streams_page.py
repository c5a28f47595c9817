"""What docs/streams.md shows runs, and it leaves nothing out."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

from tame.bench.experiment import resolve
from tame.bench.presets import presets
from tame.registry import STREAMS
from tame.streams.burst import Burst
from tame.streams.course import Course
from tame.streams.imbalance import Imbalance
from tame.types import Truth

PAGE = (Path(__file__).parents[2] / "docs" / "streams.md").read_text(encoding="utf-8")
PARTS = (Course, Burst, Imbalance, Truth, *(STREAMS.get(name) for name in STREAMS))
FIELDS = {field.name for part in PARTS for field in dataclasses.fields(part)}


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL))
def test_every_example_runs(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "streams.md", "exec"), {"__name__": "streams"})  # noqa: S102 (the point)


def test_there_are_examples():
    assert len(re.findall(r"```python\n", PAGE)) == 2


@pytest.mark.parametrize("table", re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL))
def test_every_table_is_an_experiment(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for part in ("", "held_"):  # where a table asks for the user's own
        np.save(f"{part}x.npy", np.zeros((12, 5), np.float32))
        np.save(f"{part}y.npy", np.arange(12) % 6)
    path = tmp_path / "mine.toml"
    path.write_text(table)
    assert len(resolve(str(path)).open_stream()) > 0


@pytest.mark.parametrize("name", sorted(FIELDS | set(STREAMS)))
def test_every_option_and_field_is_described(name):
    assert re.search(rf"`{name}[`(]", PAGE)


@pytest.mark.parametrize("name", [name for name, _ in presets() if name.startswith("hard/")])
def test_every_hard_preset_is_described(name):
    assert f"| `{name}` |" in PAGE
