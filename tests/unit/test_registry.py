"""Names resolve on first use, and mistyped ones are helped along."""

from importlib.metadata import EntryPoint
from typing import Any

import pytest

from tame import Deviation, registry
from tame.errors import ConfigError, suggest
from tame.registry import DETECTORS, Entry, Registry


def test_listing_resolves_nothing():
    table = Registry("thing", {"broken": Entry("no.such.module:Thing")})
    assert list(table) == ["broken"]
    with pytest.raises(ModuleNotFoundError):
        table.get("broken")


def test_parts_know_their_name():
    assert DETECTORS.name_of(Deviation()) == "deviation"
    with pytest.raises(ConfigError, match="builtins:int is not a registered detector"):
        DETECTORS.name_of(3)


def test_other_packages_add_parts_but_replace_none(monkeypatch: pytest.MonkeyPatch):
    def points(group: str) -> Any:
        assert group == "tame.things"
        return [
            EntryPoint("new", "tame.types:Batch", group),
            EntryPoint("old", "tame.types:Change", group),
        ]

    monkeypatch.setattr(registry, "entry_points", points)
    table = Registry("thing", {"old": Entry("tame.types:Hints")})
    assert list(table) == ["old", "new"]
    assert table.get("new").__name__ == "Batch"
    assert table.get("old").__name__ == "Hints"
    assert table.entries()["new"].summary == "from another package"


def test_suggestions():
    assert suggest("lent", ["lenet", "mlp"]) == "; did you mean 'lenet'?"
    assert suggest("zzz", ["lenet", "mlp"]) == "; known: lenet, mlp"
    assert suggest("zzz", []) == ""
