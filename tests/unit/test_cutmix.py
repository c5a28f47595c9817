"""CutMix: what is pasted, what the labels are worth, and who may ask for it."""

import pytest
import torch
from torch import nn

from tame.engine.fitting import Job, Samples, fit
from tame.engine.patches import NUMBERS, patched
from tame.engine.recipe import Recipe
from tame.errors import ConfigError


def numbered(count: int, size: int = 8) -> torch.Tensor:
    """Images that hold their own number everywhere."""
    return torch.arange(float(count)).view(count, 1, 1, 1).expand(count, 2, size, size)


def test_a_patch_is_of_the_image_before_and_the_share_that_is_left_is_told():
    x = numbered(500)
    odds = torch.rand(NUMBERS, 500, generator=torch.Generator().manual_seed(0))
    mixed, own = patched(x, odds, 1.0)
    kept = (mixed == x).float().mean((1, 2, 3))
    assert torch.allclose(kept, own)
    assert ((mixed == x) | (mixed == x.roll(1, 0))).all()
    assert 0.5 < float(own.mean()) < 0.75  # half of it but for what is cut at the rim
    assert float(own.min()) < 0.2
    assert float(own.max()) > 0.9


def test_a_patch_is_one_rectangle_through_all_channels():
    odds = torch.tensor([[0.0], [0.25], [0.5], [0.25]])
    mixed, own = patched(numbered(2)[1:], odds, 1.0)
    assert torch.equal(mixed, numbered(2)[1:])  # one image: its own patch
    assert float(own) == 0.75
    two = patched(numbered(2), odds.expand(NUMBERS, 2), 1.0)[0][0]
    place = torch.zeros(8, 8)
    place[2:6, 0:4] = 1
    assert torch.equal(two, place.expand(2, 8, 8))


def test_only_a_share_of_the_images_is_patched():
    odds = torch.rand(NUMBERS, 2000, generator=torch.Generator().manual_seed(1))
    own = patched(numbered(2000), odds, 0.3)[1]
    assert 0.25 < float((own < 1).float().mean()) < 0.35


def test_a_step_learns_both_labels_by_their_shares():
    x, y = torch.rand(16, 1, 6, 6), torch.arange(16) % 3
    net = nn.Sequential(nn.Flatten(), nn.Linear(36, 3))
    weights = net[1].weight.detach().clone().requires_grad_()
    bias = net[1].bias.detach().clone()
    samples = Samples(x, y, lambda raw, augment, odds: raw, 3)  # noqa: ARG005
    recipe = Recipe(epochs=1, batch=16, rate=0.5, momentum=0.0, weight_decay=0.0, cutmix=0.8)
    fit([Job(net, samples, torch.Generator().manual_seed(3))], recipe)
    draws = torch.Generator().manual_seed(3)
    rows = torch.randperm(16, generator=draws)
    mixed, own = patched(x[rows], torch.rand(NUMBERS, 16, generator=draws), 0.8)
    said = (mixed.flatten(1) @ weights.T + bias).log_softmax(1)
    at, before = torch.arange(16), y[rows].roll(1)
    loss = -(own * said[at, y[rows]] + (1 - own) * said[at, before]).mean()
    (gradient,) = torch.autograd.grad(loss, weights)
    assert torch.allclose(net[1].weight, weights - 0.5 * gradient, atol=1e-6)


def test_it_is_refused_for_vectors_and_for_shares_that_are_none():
    with pytest.raises(ConfigError, match=r"cutmix is for images; samples have shape \(3,\)"):
        patched(torch.zeros(2, 3), torch.rand(NUMBERS, 2), 1.0)
    with pytest.raises(ValueError, match="cutmix is a share of the samples, not"):
        Recipe(cutmix=1.5)
