"""Reservoirs, label tables and files, under any sequence of batches."""

import tempfile
from pathlib import Path
from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tame import checkpoint
from tame.checks.failure import difference
from tame.core.labels import LabelTable
from tame.core.reservoir import Reservoir

sizes = st.lists(st.integers(1, 40), min_size=1, max_size=8)
labels = st.lists(st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=8), max_size=8)
tensors = st.tuples(
    st.lists(st.integers(0, 3), max_size=4),
    st.sampled_from([torch.float32, torch.uint8, torch.bool, torch.int64, torch.bfloat16]),
).map(lambda made: torch.ones(made[0], dtype=made[1]))
leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | tensors
states = st.dictionaries(
    st.text("abc/.$é ", min_size=1, max_size=4),
    st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.text("xyz", min_size=1, max_size=3), inner, max_size=3)
        ),
        max_leaves=8,
    ),
    max_size=4,
)


@settings(max_examples=80, deadline=None)
@given(sizes, st.integers(1, 30), st.integers(0, 1000))
def test_reservoir_keeps_the_largest_keys_of_all(batches: list[Any], capacity: int, seed: int):
    kept, everything = Reservoir(capacity, seed), Reservoir(1000, seed)
    start = 0
    for size in batches:
        rows = torch.arange(start, start + size)
        kept.add(rows)
        everything.add(rows)
        start += size
    count = min(capacity, start)
    assert kept.keys().tolist() == everything.keys()[:count].tolist()
    assert kept.columns()[0].tolist() == everything.columns()[0][:count].tolist()
    assert len(kept) == count


@settings(max_examples=80, deadline=None)
@given(labels)
def test_label_table_is_one_to_one_and_in_order_of_first_sight(batches: list[Any]):
    table, seen = LabelTable(), []
    for batch in batches:
        y = torch.tensor(batch)
        new = [label for label in dict.fromkeys(batch) if label not in seen]
        assert table.unknown(y) == new
        table.open(new)
        seen += new
        assert table.labels()[table.slots(y)].tolist() == batch
    assert table.labels().tolist() == seen


@settings(max_examples=80, deadline=None)
@given(states)
def test_any_state_survives_a_file(state: Any):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        checkpoint.write(path, {}, state)
        _, found = checkpoint.read(path)
    assert difference(state, found) is None
