"""Places in a row as gaps: any places come back, in few bytes."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tame.core.gaps import NARROW, WIDE, from_gaps, to_gaps

places = st.lists(st.integers(0, 200_000), max_size=30, unique=True).map(sorted)


def back(gaps: torch.Tensor, total: int):
    return from_gaps(gaps, torch.tensor([len(gaps)]), total)[1].tolist()


@settings(max_examples=200, deadline=None)
@given(places)
def test_any_places_come_back(given_places: list[int]):
    gaps = to_gaps(torch.tensor(given_places, dtype=torch.int64))
    assert back(gaps, len(given_places)) == given_places


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.integers(0, 600), max_size=8, unique=True).map(sorted), max_size=6))
def test_rows_one_after_another_are_told_apart(rows: list[list[int]]):
    """As on the shelf: many experts in one tensor, decoded in one go."""
    parts = [to_gaps(torch.tensor(row, dtype=torch.int64)) for row in rows]
    narrow = [part for part in parts if part.dtype == NARROW]
    kept = [row for row, part in zip(rows, parts, strict=True) if part.dtype == NARROW]
    gaps = torch.cat([torch.zeros(0, dtype=NARROW), *narrow])
    lengths = torch.tensor([len(part) for part in narrow], dtype=torch.int64)
    owners, found = from_gaps(gaps, lengths, sum(map(len, kept)))
    expected = [(owner, place) for owner, row in enumerate(kept) for place in row]
    assert list(zip(owners.tolist(), found.tolist(), strict=True)) == expected


@pytest.mark.parametrize("gap", [0, 1, 254, 255, 256, 509, 510, 511])
def test_gaps_about_an_escape_of_eight_bits(gap: int):
    named = torch.tensor([gap, gap + 1])
    gaps = to_gaps(named)
    assert gaps.dtype == NARROW
    assert back(gaps, 2) == named.tolist()


@pytest.mark.parametrize("gap", [65_534, 65_535, 65_536, 131_070, 131_071])
def test_gaps_about_an_escape_of_sixteen_bits(gap: int):
    named = torch.tensor([gap, 2 * gap + 1])
    gaps = to_gaps(named)
    assert gaps.dtype == WIDE
    assert back(gaps, 2) == named.tolist()


def test_the_width_is_the_one_that_takes_fewer_bytes():
    sparse = torch.arange(0, 60_000, 50)
    sparser = torch.arange(0, 600_000, 2000)
    assert to_gaps(sparse).nbytes == len(sparse)
    assert to_gaps(sparser).nbytes == 2 * len(sparser)
