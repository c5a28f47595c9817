"""Plain state as a shared form and the bytes of its numbers."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tame import Deviation
from tame.checks.failure import difference
from tame.core.terse import decode, encode
from tame.types import Reading

tensors = st.tuples(
    st.lists(st.integers(0, 3), max_size=3),
    st.sampled_from([torch.float32, torch.uint8, torch.bool, torch.int64, torch.bfloat16]),
).map(lambda made: torch.ones(made[0], dtype=made[1]))
leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | tensors
states = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(states)
def test_any_state_comes_back(state: object):
    assert difference(state, decode(*encode(state))) is None


def test_floats_come_back_bit_for_bit():
    values = [0.1 + 0.2, -0.0, math.inf, -math.inf, 5e-324, math.pi]
    found = decode(*encode({"a": values, "b": math.nan}))
    assert np.array(found["a"]).tobytes() == np.array(values).tobytes()
    assert math.isnan(found["b"])


@pytest.mark.parametrize("number", [2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63 - 1, 2**63])
def test_whole_numbers_at_the_ends_of_each_width(number: int):
    state = {"one": number, "many": [0, number]}
    assert decode(*encode(state)) == state


def test_detectors_of_one_history_share_their_form():
    """What differs between experts lies in the bytes; the names are written once."""
    first, second = Deviation(window=30), Deviation(window=30)
    for number in range(40):
        first.update(Reading(1.0 + 0.01 * (number % 3), 0.1, 16))
        second.update(Reading(2.0 - 0.01 * (number % 5), 0.2, 16))
    forms = {encode(one.state_dict())[0] for one in (first, second)}
    assert len(forms) == 1
    assert len(encode(first.state_dict())[1]) == 2 * 30 * 8 + 8 + 4


def test_bytes_that_do_not_fit_the_form_are_refused():
    form, data = encode({"a": [1, 2, 3], "b": 0.5})
    with pytest.raises(ValueError, match="bytes of numbers"):
        decode(form, data + b"\0")
    with pytest.raises(ValueError, match="buffer"):
        decode(form, data[:-1])
