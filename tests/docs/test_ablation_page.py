"""The tables of docs/ablation.md are those of the committed studies, all of them."""

import json
import re
from pathlib import Path

import ablation_table
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ablation.md").read_text(encoding="utf-8")
FILES = re.findall(r"`(benchmarks/results/ablation/[\w.-]+\.json)`", PAGE)


def test_there_are_tables():
    assert len(FILES) == 6


@pytest.mark.parametrize("file", FILES)
def test_a_table_is_what_its_file_gives(file):
    rows = json.loads((ROOT / file).read_text(encoding="utf-8"))["rows"]
    table = "\n".join(ablation_table.lines(rows))
    assert f"\n\n{table}\n" in PAGE.split(f"`{file}`")[1]
    assert all(len(runs) >= 3 for runs in rows.values())
