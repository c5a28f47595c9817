"""The sources stay small, and the core speaks of no tasks."""

import re
from pathlib import Path

import pytest

import tame

SOURCE = Path(tame.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
CORE = sorted((SOURCE / "core").rglob("*.py"))
NAMES = [str(path.relative_to(SOURCE)) for path in FILES]
BANNED = {"utils", "helpers", "common", "manager", "base"}


def lines(path: Path):
    return len(path.read_text().splitlines())


def test_files_were_found():
    assert len(CORE) > 10
    assert len(FILES) > len(CORE)


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_file_is_short_and_named_by_a_noun(path: Path):
    assert lines(path) <= 300
    assert path.stem not in BANNED


def test_algorithm_reads_like_the_papers():
    assert lines(SOURCE / "core" / "learner.py") <= 200


@pytest.mark.parametrize("path", CORE, ids=[path.stem for path in CORE])
def test_core_knows_no_task(path: Path):
    words = path.read_text().lower().replace("task-agnostic", "")
    assert not re.findall(r"\w*task\w*", words)


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_nothing_is_pickled(path: Path):
    code = path.read_text()
    if path.parent.name != "checks":
        assert not re.findall(
            r"import pickle|torch\.save\(|torch\.load\((?!.*weights_only=True)", code
        )


@pytest.mark.parametrize("path", CORE, ids=[path.stem for path in CORE])
def test_core_never_seeds_or_draws_globally(path: Path):
    """Every draw takes a generator; `seeded` and `PrivateDraws` in engine are the only doors."""
    code = "\n".join(line for line in path.read_text().splitlines() if ">>>" not in line)
    assert not re.findall(r"manual_seed\(|np\.random\.(seed|rand)|import random", code)
