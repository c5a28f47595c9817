"""Random changes to whole batches of images that leave their label alone.

Chance comes in as `odds`, uniform numbers of shape (`numbers`, images): the same numbers give the
same change on every device, and nothing is drawn inside a captured step.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from tame.config import late


@dataclass(frozen=True)
class Affine:
    """Rotate (degrees), scale, shear and shift (fractions) each image at random.

    Works on images in [0, 1] of shape (count, channels, height, width); what comes in from
    outside the frame is zero or, with `rim`, what lies at the frame's rim.

    >>> Affine()(torch.rand(2, 1, 28, 28), torch.rand(Affine.numbers, 2)).shape
    torch.Size([2, 1, 28, 28])
    """

    numbers: ClassVar[int] = 6

    rotation: float = 12.0
    scale: float = 0.12
    shear: float = 0.12
    shift: float = 0.08
    rim: bool = late(default=False)

    def __call__(self, x: Tensor, odds: Tensor) -> Tensor:
        draws = odds * 2 - 1
        angle = draws[0] * math.radians(self.rotation)
        across, along = 1 + draws[1] * self.scale, 1 + draws[2] * self.scale
        shear = draws[3] * self.shear
        cosine, sine = angle.cos(), angle.sin()
        first = torch.stack([cosine * across, (shear - sine) * across, draws[4] * 2 * self.shift])
        second = torch.stack(
            [sine * along, (cosine + shear * sine) * along, draws[5] * 2 * self.shift]
        )
        return _resample(x, torch.stack([first, second]), rim=self.rim)


@dataclass(frozen=True)
class Crop:
    """Cut each image out of its zero-padded self at random, mirror it half of the time, rotate it.

    All three in one resampling of the whole batch. Works on images in [0, 1].

    >>> Crop()(torch.rand(2, 3, 32, 32), torch.rand(Crop.numbers, 2)).shape
    torch.Size([2, 3, 32, 32])
    """

    numbers: ClassVar[int] = 4

    padding: int = 4
    flip: float = 0.5
    rotation: float = 15.0

    def __call__(self, x: Tensor, odds: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        angle = (odds[0] * 2 - 1) * math.radians(self.rotation)
        mirror = 1 - 2 * (odds[1] < self.flip).to(x.dtype)
        steps = 2 * self.padding + 1
        down, right = (odds[2:] * steps).floor().clamp(max=steps - 1) - self.padding
        cosine, sine = angle.cos(), angle.sin()
        first = torch.stack([cosine * mirror, -sine, 2 * right / width])
        second = torch.stack([sine * mirror, cosine, 2 * down / height])
        return _resample(x, torch.stack([first, second]))


def _resample(x: Tensor, rows: Tensor, *, rim: bool = False) -> Tensor:
    theta = rows.permute(2, 0, 1)
    grid = F.affine_grid(theta, list(x.shape), align_corners=False)
    outside = "border" if rim else "zeros"
    return F.grid_sample(x, grid, padding_mode=outside, align_corners=False)
