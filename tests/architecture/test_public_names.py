"""The public face: few names, each there, and cheap to look at."""

import os
import subprocess
import sys
from importlib import import_module
from typing import Any

import pytest

import tame
from tame import registry
from tame.registry import METHODS, Registry

REGISTRIES = [value for value in vars(registry).values() if isinstance(value, Registry)]
PARTS = [(table, name) for table in REGISTRIES for name in table]


def modules_after(code: str):
    """Return the modules a fresh interpreter has imported after running some code."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.splitlines()[-1].split())


def test_at_most_twenty_names():
    assert len(tame.__all__) <= 20


def test_names_are_sorted_and_unique_in_dir():
    assert dir(tame) == sorted(set(tame.__all__))
    assert len(set(tame.__all__)) == len(tame.__all__)


@pytest.mark.parametrize("name", tame.__all__)
def test_every_name_can_be_imported_from_where_it_lives(name: str):
    assert getattr(tame, name) is getattr(import_module(tame._WHERE[name]), name)


def test_nothing_else_is_promised():
    assert set(tame._WHERE) == set(tame.__all__)
    with pytest.raises(AttributeError, match="module 'tame' has no attribute 'TAMED'"):
        tame.TAMED  # noqa: B018


@pytest.mark.parametrize(
    "code",
    ["import tame", "import tame.registry, tame.errors, tame.config"]
    + [f"from tame.registry import {name}; list({name})" for name in ("METHODS", "NETS")],
)
def test_listing_imports_no_torch(code: str):
    imported = modules_after(code)
    assert "tame" in imported
    assert not imported & {"torch", "numpy", "matplotlib", "sklearn", "safetensors"}


@pytest.mark.parametrize(
    ("table", "name"), PARTS, ids=[f"{table.kind}-{name}" for table, name in PARTS]
)
def test_every_registered_part_exists_and_is_described(table: Any, name: str):
    part = table.get(name)
    entry = table.entries()[name]
    assert entry.summary
    assert f"{part.__module__}:{part.__qualname__}" == entry.target
    assert part.__doc__


@pytest.mark.parametrize("name", list(METHODS))
def test_listing_says_what_each_method_is_told(name: str):
    declared = " ".join(str(hint.name) for hint in METHODS.get(name).hints)
    assert METHODS.entries()[name].told == (declared or "nothing")
