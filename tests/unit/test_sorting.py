"""Whose the samples of a batch are: a mixture is told from one world that a rival guesses at."""

import torch

from tame.core.sorting import share_out


def test_the_samples_of_two_worlds_are_told_apart():
    own, rival = torch.full((32,), 0.2), torch.full((32,), 5.0)
    mine = torch.arange(32) % 3 > 0
    found = share_out(torch.where(mine, own, rival), torch.where(mine, rival, own))
    assert torch.equal(found, mine)


def test_one_sample_that_a_young_owner_gets_wrong_and_the_rival_right_stays_the_owners():
    own, rival = torch.full((32,), 0.4), torch.full((32,), 6.0)
    own[5], rival[5] = 4.0, 0.02
    assert share_out(own, rival).all()


def test_one_sample_that_only_the_rival_can_explain_is_the_rivals():
    own, rival = torch.full((32,), 0.4), torch.full((32,), 6.0)
    own[5], rival[5] = 9.0, 0.02
    assert share_out(own, rival).tolist() == [place != 5 for place in range(32)]
