"""Random changes depend on the numbers handed in, and on nothing else."""

from typing import Any

import pytest
import torch

from tame import Inputs
from tame.core.augment import Affine
from tame.core.inputs import InputStep

IMAGES = torch.rand(6, 2, 12, 12, generator=torch.Generator().manual_seed(0))


def odds(count: int, seed: int = 0):
    return torch.rand(Affine.numbers, count, generator=torch.Generator().manual_seed(seed))


def changed(seed: int, affine: Any = None):
    return (affine or Affine())(IMAGES, odds(len(IMAGES), seed))


def test_odds_decide():
    before, given = torch.get_rng_state(), IMAGES.clone()
    assert torch.equal(changed(1), changed(1))
    assert not torch.equal(changed(1), changed(2))
    assert torch.equal(IMAGES, given)
    assert torch.equal(torch.get_rng_state(), before)


def test_every_image_is_changed_in_its_own_way():
    same = IMAGES[:1].repeat(6, 1, 1, 1)
    found = Affine()(same, odds(6))
    assert len({tuple(image.flatten().tolist()) for image in found}) == 6


def test_no_change_of_no_size():
    still = changed(0, Affine(rotation=0.0, scale=0.0, shear=0.0, shift=0.0))
    assert torch.allclose(still, IMAGES, atol=1e-5)


def test_shift_alone_moves_the_picture():
    dot = torch.zeros(50, 1, 11, 11)
    dot[:, :, 5, 5] = 1.0
    affine = Affine(rotation=0.0, scale=0.0, shear=0.0, shift=0.2)
    moved = affine(dot, odds(50)).flatten(1).argmax(1)
    rows, columns = moved // 11, moved % 11
    assert rows.unique().numel() > 2
    assert columns.unique().numel() > 2
    assert int((rows - 5).abs().max()) <= 3  # 0.2 of 11 pixels, and rounding


def test_what_comes_in_is_nothing_or_what_lies_at_the_rim():
    white = torch.ones(50, 1, 11, 11)
    assert float(Affine(shift=0.2)(white, odds(50)).min()) == 0
    assert torch.allclose(Affine(shift=0.2, rim=True)(white, odds(50)), white)


@pytest.mark.parametrize("shape", [(12,), (1, 12, 12)])
def test_only_images_are_augmented(shape: tuple[int, ...]):
    step = InputStep(Inputs(), shape, torch.float32)
    x = torch.rand(3, *shape)
    found = step.prepare(x, Affine(), odds(3))
    assert torch.equal(found, step(x)) is (len(shape) == 1)
