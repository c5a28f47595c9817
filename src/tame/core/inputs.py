"""The input step: from what the files hold to what a network takes, saved with the model."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tame.config import late, part
from tame.core.standard import Standard
from tame.core.trunk import CHUNK, Trunk
from tame.errors import InputError
from tame.registry import AUGMENTS, NETS

IMAGE_DIMENSIONS = 3
GREY_DIMENSIONS = 2


@dataclass(frozen=True)
class Inputs:
    """How raw samples become network inputs.

    Bytes (uint8) are scaled to [0, 1]; floats are taken as they are. `mean` and `std` then
    normalise, one value for all or one a channel; left empty they are 0.5 and 0.5 for bytes, and
    floats are not touched. `size` resizes images; `augment` changes the samples an expert trains
    on (never those its loss is judged by). A grey image (height, width) gets its channel.
    `standardise` brings every feature (of images every channel) to mean 0 and spread 1 by the first
    so many samples of the stream (0: not): for measurements in units of their own.
    `trunk` names a network, as `net` does, whose features of the image and its mirror image stand
    in for the image: it is never trained, and everything after it works on vectors.
    """

    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    size: tuple[int, ...] = ()
    augment: Any = part(AUGMENTS, lambda: None)
    trunk: Any = part(NETS, lambda: None)
    standardise: int = late(default=0)

    def __post_init__(self) -> None:
        if len(self.mean) != len(self.std):
            raise ValueError(f"mean and std go together, not {self.mean} and {self.std}")
        if self.size and len(self.size) != GREY_DIMENSIONS:
            raise ValueError(f"size is (height, width), not {self.size}")
        if any(value <= 0 for value in self.std):
            raise ValueError(f"std is positive, not {self.std}")
        if self.standardise < 0:
            raise ValueError(f"standardise counts samples, 0 or more, not {self.standardise}")


class InputStep(nn.Module):
    """Scales, resizes and normalises raw samples of one shape and dtype.

    >>> step = InputStep(Inputs(), (28, 28), torch.uint8)
    >>> step(torch.full((1, 28, 28), 255, dtype=torch.uint8)).unique(), step.output_shape
    (tensor([1.]), (1, 28, 28))
    """

    mean: Tensor
    std: Tensor

    def __init__(self, inputs: Inputs, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        super().__init__()
        self.inputs = inputs
        self._raw = (tuple(shape), dtype)
        self.is_bytes = dtype == torch.uint8
        self.grey = self.is_bytes and len(shape) == GREY_DIMENSIONS
        shape = (1, *shape) if self.grey else tuple(shape)
        self.is_image = len(shape) == IMAGE_DIMENSIONS
        if (inputs.size or inputs.trunk is not None) and not self.is_image:
            done = "resized" if inputs.size else "seen by a trunk"
            raise InputError(f"samples of shape {shape} are not images and cannot be {done}")
        if len(inputs.mean) > 1 and len(inputs.mean) != shape[0]:
            raise InputError(f"{len(inputs.mean)} means for samples of shape {shape}")
        self.output_shape = (shape[0], *inputs.size) if inputs.size else shape
        mean, std = inputs.mean, inputs.std
        if not mean:
            mean, std = ((0.5,), (0.5,)) if self.is_bytes else ((0.0,), (1.0,))
        view = (-1, *[1] * (len(shape) - 1)) if shape else (-1,)
        self.register_buffer("mean", torch.tensor(mean).view(view), persistent=False)
        self.register_buffer("std", torch.tensor(std).view(view), persistent=False)
        one = (shape[0], *[1] * (len(shape) - 1)) if self.is_image else shape
        self.standard = Standard(one, inputs.standardise) if inputs.standardise else None
        self.trunk = None if inputs.trunk is None else Trunk(inputs.trunk, self.output_shape)
        if self.trunk is not None:
            self.output_shape = (self.trunk.width,)

    def forward(self, x: Tensor) -> Tensor:
        return self.prepare(x)

    def under(self, inputs: Inputs) -> "InputStep":
        """Return the step other settings would make of the same raw samples."""
        made = InputStep(inputs, *self._raw).to(self.mean.device)
        made.standard = made.standard and self.standard
        return made

    def follow(self, x: Tensor) -> None:
        """Let raw samples count among those that inputs are standardised by."""
        if self.standard is not None:
            self.standard.follow(self._fixed(self.scale(x.to(self.mean.device))))

    def prepare(self, x: Tensor, augment: Any = None, odds: Tensor | None = None) -> Tensor:
        """Return network inputs; images are changed by `augment` as the numbers `odds` say."""
        if self.trunk is None:
            return self._images(x, augment, odds)
        parts = range(0, len(x), CHUNK) if len(x) else (0,)
        within = [slice(begin, begin + CHUNK) for begin in parts]
        chances = [None if odds is None else odds[:, rows] for rows in within]
        seen = [
            self.trunk(self._images(x[rows], augment, chance))
            for rows, chance in zip(within, chances, strict=True)
        ]
        return torch.cat(seen)

    def _images(self, x: Tensor, augment: Any, odds: Tensor | None) -> Tensor:
        scaled = self.scale(x)
        return self.normalise(augment(scaled, odds) if augment and self.is_image else scaled)

    def scale(self, x: Tensor) -> Tensor:
        """Return floats at the network's size, bytes brought to [0, 1]."""
        x = x.unsqueeze(1) if self.grey else x
        x = x.to(self.mean.dtype)
        if self.is_bytes:
            x = x / 255
        if self.inputs.size and tuple(x.shape[-2:]) != self.inputs.size:
            x = F.interpolate(x, self.inputs.size, mode="bilinear", antialias=True)
        return x

    def normalise(self, x: Tensor) -> Tensor:
        x = self._fixed(x)
        x = x if self.standard is None else self.standard(x)
        return x.contiguous(memory_format=torch.channels_last) if self.is_image else x

    def _fixed(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.std
