"""Whose the samples of a batch are: a mixture is told from one world that a rival half knows."""

import numpy as np
import pytest
import torch
from torch import Tensor

from tame.core.sorting import share_out

DRAWS = np.random.default_rng(7)


def drawn(*parts: tuple[int, float]) -> Tensor:
    """Return what a rival knows of so many samples each, at these rates."""
    return torch.from_numpy(np.concatenate([DRAWS.random(count) < rate for count, rate in parts]))


@pytest.mark.parametrize("usual", [0.05, 0.1, 0.2, 0.3])
def test_the_samples_of_two_worlds_are_told_apart(usual: float):
    wrong, count = 0, 40
    for _ in range(count):
        known, newest = drawn((16, 0.95), (16, usual)), drawn((256, usual))
        owns = share_out(known, torch.cat([known, drawn((48, 0.95), (48, usual))]), newest)
        wrong += int(owns[:16].sum() + (~owns[16:]).sum())
    assert wrong / (32 * count) < usual / 2 + 0.1  # a guess would be 0.5


@pytest.mark.parametrize("usual", [0.0, 0.1, 0.5, 0.8, 0.95])
def test_nothing_is_taken_from_one_world_for_what_the_rival_knows_by_chance(usual: float):
    taken = 0
    for _ in range(300):
        known, newest = drawn((128, usual)), drawn((256, usual))
        taken += int((~share_out(known[:32], known, newest)).sum())
    assert taken <= 300 * 32 / 500


def test_a_small_share_shows_in_many_samples_that_one_batch_does_not_tell():
    newest = torch.arange(256) < 13
    known, near = torch.arange(32) < 6, torch.arange(128) < 24
    assert share_out(known, known, newest).all()
    assert torch.equal(share_out(known, near, newest), ~known)


def test_a_batch_that_is_all_the_rivals_goes_to_it_but_for_nothing():
    known = torch.arange(32) < 30
    near = torch.cat([known, torch.arange(96) < 40])
    assert not share_out(known, near, torch.arange(256) < 100).any()


def test_where_the_rival_knows_all_of_the_new_world_nothing_can_be_said():
    known = torch.ones(32, dtype=torch.bool)
    assert share_out(known, known, torch.ones(256, dtype=torch.bool)).all()
