"""Settings become tables, TOML and settings again; what does not fit is refused by name."""

import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tame import Deviation, Inputs, Magnitude, NetworkSelector, Settings, Training
from tame.config import assignment, build, convert, dump, merge, to_toml
from tame.core.augment import Affine
from tame.core.detectors.quorum import Quorum
from tame.engine.recipe import Recipe
from tame.errors import ConfigError
from tame.registry import METHODS, STREAMS

positive = st.floats(1e-6, 1e6)
counts = st.integers(1, 10**6)
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
affines = st.builds(Affine, rotation=positive, scale=st.floats(0, 1))
recipes = st.builds(
    Recipe,
    epochs=counts,
    optimiser=st.sampled_from(["sgd", "adam"]),
    rate=positive,
    nesterov=st.booleans(),
    schedule=st.sampled_from(["constant", "cosine", "steps"]),
    milestones=st.lists(counts, max_size=3).map(tuple),
    augment=st.none() | affines,
)
everything = st.builds(
    Settings,
    slots=counts,
    inputs=st.builds(Inputs, augment=st.none() | affines),
    training=st.builds(Training, rate=positive, output=st.sampled_from(["logits", "sigmoid"])),
    detector=st.builds(Deviation, smoothing=st.floats(0.01, 1), window=counts, width=positive),
    selector=st.builds(
        NetworkSelector,
        net=st.just("same") | st.just({"name": "mlp", "hidden": [3]}),
        memory=st.integers(1, 100),
        training=recipes,
    ),
    pruner=st.builds(Magnitude, sparsity=st.floats(0, 0.99), retraining=recipes),
)
plain = st.booleans() | st.integers() | st.floats(allow_nan=False) | words
values = plain | st.lists(plain, max_size=3)
keys = st.text("abcdefghij_", min_size=1, max_size=4).filter(lambda key: key != "name")
tables = st.dictionaries(
    keys, st.recursive(values, lambda inner: st.dictionaries(keys, inner, max_size=3)), max_size=4
)


@settings(max_examples=60, deadline=None)
@given(everything)
def test_settings_survive_toml(chosen: Any):
    table = dump(chosen)
    read = tomllib.loads(to_toml(table))
    assert read == table
    assert dump(build(Settings, read)) == table


@settings(max_examples=100, deadline=None)
@given(tables)
def test_tables_survive_toml(table: Any):
    assert tomllib.loads(to_toml(table)) == table


@settings(max_examples=100, deadline=None)
@given(tables, tables)
def test_merge_lets_the_second_win_and_keeps_the_rest(base: Any, over: Any):
    merged = merge(base, over)
    assert merge(base, {}) == base
    assert merge(base, base) == base
    assert merge(merged, over) == merged
    assert set(merged) == set(base) | set(over)
    assert all(merged[key] == base[key] for key in base if key not in over)
    for key, value in over.items():
        if not isinstance(value, dict):
            assert merged[key] == value


@settings(max_examples=100, deadline=None)
@given(st.lists(keys, min_size=1, max_size=4), plain.filter(lambda value: value != ""))
def test_assignments_are_toml_values(path: Any, value: float):
    literal = to_toml({"v": value}).removeprefix("v = ").rstrip("\n")
    found = assignment(".".join(path) + "=" + literal)
    for key in path:
        found = found[key]
    assert found == value


@pytest.mark.parametrize("method", list(METHODS))
def test_defaults_of_every_method_survive(method: str):
    kind = METHODS.get(method).settings_type
    table = dump(kind())
    assert dump(build(kind, tomllib.loads(to_toml(table)))) == table


@pytest.mark.parametrize("stream", list(STREAMS))
def test_defaults_of_every_stream_survive(stream: str):
    kind = STREAMS.get(stream)
    assert build(kind, tomllib.loads(to_toml(dump(kind())))) == kind()


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"slot": 3}, "unknown key 'slot'; did you mean 'slots'?"),
        ({"training": {"rat": 1.0}}, "unknown key 'training.rat'; did you mean 'rate'?"),
        ({"detector": "deviatoin"}, "no detector named 'deviatoin'; did you mean 'deviation'?"),
        ({"detector": {"widht": 4}}, "unknown key 'detector.widht'; did you mean 'width'?"),
        (
            {"detector": {"name": "deviation", "widht": 4}},
            "unknown key 'detector.widht'; did you mean 'width'?",
        ),
        (
            {"selector": {"name": "network", "training": {"epoch": 4}}},
            "unknown key 'selector.training.epoch'; did you mean 'epochs'?",
        ),
        ({"slots": "ten"}, "'slots' is int, not 'ten'"),
        ({"slots": 1.5}, "'slots' is int, not 1.5"),
        ({"slots": True}, "'slots' is int, not True"),
        ({"slots": 0}, "Settings: slots is 1 or more, not 0"),
        ({"training": 3}, "'training' is a table, not 3"),
        ({"training": {"rate": "fast"}}, "'training.rate' is float, not 'fast'"),
        ({"training": {"rate": True}}, "'training.rate' is float, not True"),
        ({"training": {"nesterov": 1}}, "'training.nesterov' is bool, not 1"),
        ({"training": {"milestones": 5}}, "'training.milestones' is a list, not 5"),
        ({"training": {"milestones": [1.5]}}, "'training.milestones' is int, not 1.5"),
        (
            {"training": {"output": "logit"}},
            "'training.output' cannot be 'logit'; did you mean 'logits'?",
        ),
        (
            {"detector": {"name": "deviation", "smoothing": 2.0}},
            "detector: smoothing lies in (0, 1], not 2.0",
        ),
    ],
)
def test_what_does_not_fit_is_refused_by_name(table: Any, said: str):
    with pytest.raises(ConfigError) as error:
        build(Settings, table)
    assert str(error.value) == said


def test_whole_numbers_are_numbers_too():
    assert build(Settings, {"training": {"rate": 1}}).training.rate == 1.0


def test_a_part_without_a_name_is_the_default_one_changed():
    assert build(Settings, {"detector": {"width": 5}}).detector == Quorum(width=5.0)


def test_none_may_be_written():
    assert convert(int | None, "none", "x") is None
    assert convert(int | None, 3, "x") == 3
    with pytest.raises(ConfigError, match="'x' cannot be 'many'"):
        convert(int | None, "many", "x")


def test_new_name_drops_the_old_settings():
    base = {"net": {"name": "mlp", "hidden": [3]}}
    assert merge(base, {"net": {"name": "lenet"}}) == {"net": {"name": "lenet"}}
    assert merge(base, {"net": {"hidden": [4]}}) == {"net": {"name": "mlp", "hidden": [4]}}
    assert merge({"net": "mlp"}, {"net": {"hidden": [4]}}) == {
        "net": {"name": "mlp", "hidden": [4]}
    }


@pytest.mark.parametrize("text", ["width", "=3", " =3"])
def test_what_is_no_assignment_is_refused(text: Any):
    with pytest.raises(ConfigError, match=r"is not of the form key\.key=value"):
        assignment(text)
