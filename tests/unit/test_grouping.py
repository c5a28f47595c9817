"""Samples grouped by expert: each once, small groups together, large ones alone."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tame.core.grouping import Limits, grouped

chosen = st.lists(st.integers(0, 12), min_size=1, max_size=80)


@settings(max_examples=150, deadline=None)
@given(chosen, st.integers(1, 9), st.integers(0, 6), st.sets(st.integers(0, 12)))
def test_every_sample_goes_to_its_expert(owners: list[int], chunk: int, few: int, odd: set[int]):
    """Whatever pays, and whoever cannot be run with others."""
    numbers = [-1 if position in odd else position % 2 for position in range(13)]
    found = [set() for _ in owners]
    for group in grouped(torch.tensor(owners), Limits(chunk), numbers, lambda count: count <= few):
        assert group.rows.shape[0] == len(group.positions)
        kinds = {numbers[position] for position in group.positions}
        assert len(kinds) == 1
        if len(group.positions) > 1:
            assert kinds != {-1}
            assert group.rows.shape[1] <= few
        for position, rows in zip(group.positions, group.rows.tolist(), strict=True):
            for row in rows:
                found[row].add(position)
    assert found == [{owner} for owner in owners]


@settings(max_examples=60, deadline=None)
@given(chosen, st.integers(1, 9))
def test_alone_no_sample_is_asked_about_twice_nor_more_than_a_chunk(owners: list[int], chunk: int):
    groups = list(grouped(torch.tensor(owners), Limits(chunk), [0] * 13, lambda _: False))
    rows = [row for group in groups for row in group.rows.flatten().tolist()]
    assert sorted(rows) == list(range(len(owners)))
    assert max(group.rows.numel() for group in groups) <= chunk


def test_a_team_is_no_larger_than_its_limits():
    limits = Limits(8, many=64, together=1000)
    owners = torch.arange(300).repeat_interleave(2)
    sizes = [len(group.positions) for group in grouped(owners, limits, [0] * 300, lambda _: True)]
    assert sizes == [64] * 4 + [300 - 4 * 64]
    few = torch.arange(3).repeat_interleave(500)
    assert [len(g.positions) for g in grouped(few, limits, [0] * 3, lambda _: True)] == [2, 1]


@settings(max_examples=60, deadline=None)
@given(chosen, st.integers(1, 9))
def test_even_groups_have_few_sizes_and_nobody_elses_samples(owners: list[int], chunk: int):
    limits = Limits(chunk, even=True)
    found = [set() for _ in owners]
    for group in grouped(torch.tensor(owners), limits, [0] * 13, lambda _: False):
        assert group.rows.numel() in {1, 2, 4, 8, chunk}
        for row in group.rows.flatten().tolist():
            found[row].update(group.positions)
    assert found == [{owner} for owner in owners]
