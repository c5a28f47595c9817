"""The convolutional parts of CN-DPM's experts, for images: encoder, decoder and classifier.

Layers, sizes and what is lent are those of the authors' program on CIFAR. An encoder halves the
image twice and ends in a hidden layer; a decoder mirrors it; a classifier is a residual network of
four stages, each image normalised by itself, so that nothing depends on the batch.
"""

from dataclasses import dataclass, fields
from typing import NamedTuple

from torch import Tensor, nn
from torch.nn import functional as F

from tame.errors import InputError
from tame.methods.lateral import Lent, beside, widths

DIMENSIONS = 3
SMALLEST = 12  # of less, the classifier's last stage is a single pixel, which norms make zero
MULTIPLE = 4
STAGES = (1, 2, 4, 8)  # the width of each stage, in that of the first


@dataclass(frozen=True)
class Channels:
    """How wide convolutional experts are; the defaults are their authors' for CIFAR.

    `density` and `classifier` are the channels of the first expert's first layers, the others
    ending in `_later` those of every later expert; deeper layers have two, four and eight times as
    many. A stage of the classifier has `blocks` residual blocks.
    """

    density: int = 32
    density_later: int = 4
    classifier: int = 20
    classifier_later: int = 4
    blocks: int = 1

    def __post_init__(self) -> None:
        for one in fields(self):
            if getattr(self, one.name) < 1:
                raise ValueError(f"{one.name} is 1 or more, not {getattr(self, one.name)}")


class Picture(NamedTuple):
    """The images convolutional experts see, and how wide they are."""

    shape: tuple[int, int, int]
    channels: Channels = Channels()

    def of_density(self, number: int) -> tuple[int, int]:
        """Return the channels of an expert's encoder, and how many it borrows."""
        return widths(self.channels.density, self.channels.density_later, number)

    def of_classifier(self, number: int) -> tuple[int, int]:
        """Return the channels of an expert's classifier, and how many it borrows."""
        return widths(self.channels.classifier, self.channels.classifier_later, number)

    @property
    def quarter(self) -> tuple[int, int]:
        """The height and width of an image halved twice."""
        return self.shape[1] // MULTIPLE, self.shape[2] // MULTIPLE


def picture(shape: tuple[int, ...], channels: Channels) -> Picture:
    """Return what convolutional experts are made for, or say why they cannot be.

    >>> picture((3, 30, 30), Channels())
    Traceback (most recent call last):
    ...
    tame.errors.InputError: form = "conv" takes images (channels, height, width) whose sides are
    multiples of 4 and 12 or more, not (3, 30, 30); `inputs.size` resizes images, and form = "mlp"
    takes any shape
    """
    sides = shape[1:]
    if len(shape) != DIMENSIONS or min(sides) < SMALLEST or any(side % MULTIPLE for side in sides):
        raise InputError(
            f'form = "conv" takes images (channels, height, width) whose sides are multiples of '
            f"{MULTIPLE} and {SMALLEST} or more, not {shape}; `inputs.size` resizes images, and "
            f'form = "mlp" takes any shape'
        )
    return Picture((shape[0], shape[1], shape[2]), channels)


class Encoder(nn.Module):
    """Two convolutions, each pooled to half, and a hidden layer; every layer borrows.

    >>> import torch
    >>> one, two = (Encoder(Picture((3, 12, 12)), number, outputs=5) for number in range(2))
    >>> _, lent = one(torch.zeros(1, 3, 12, 12), ())
    >>> outputs, lent = two(torch.zeros(1, 3, 12, 12), lent)
    >>> outputs.shape, [tuple(part.shape[1:]) for part in lent]
    (torch.Size([1, 5]), [(36, 6, 6), (72, 3, 3), (144,)])
    """

    def __init__(self, seen: Picture, number: int, outputs: int) -> None:
        super().__init__()
        width, borrowed = seen.of_density(number)
        both, (high, wide) = borrowed + width, seen.quarter
        self.one = nn.Conv2d(seen.shape[0], width, 3, padding=1)
        self.two = nn.Conv2d(both, 2 * width, 3, padding=1)
        self.three = nn.Linear(2 * both * high * wide, 4 * width)
        self.out = nn.Linear(4 * both, outputs)

    def forward(self, x: Tensor, lent: Lent) -> tuple[Tensor, Lent]:
        one = beside(lent, 0, F.relu(F.max_pool2d(self.one(x), 2)))
        two = beside(lent, 1, F.relu(F.max_pool2d(self.two(one), 2)))
        three = beside(lent, 2, F.relu(self.three(two.flatten(1))))
        return self.out(three), (one.detach(), two.detach(), three.detach())


class Decoder(nn.Module):
    """From latents (samples, draws, latent) to images (samples, draws, pixels); nothing is lent.

    >>> import torch
    >>> Decoder(Picture((3, 12, 12)), 5)(torch.zeros(2, 4, 5)).shape
    torch.Size([2, 4, 432])
    """

    def __init__(self, seen: Picture, latent: int) -> None:
        super().__init__()
        width, (high, wide) = seen.channels.density, seen.quarter
        self.layers = nn.Sequential(
            nn.Linear(latent, 4 * width),
            nn.ReLU(),
            nn.Linear(4 * width, 2 * width * high * wide),
            nn.ReLU(),
            nn.Unflatten(1, (2 * width, high, wide)),
            nn.ConvTranspose2d(2 * width, width, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(width, seen.shape[0], 4, stride=2, padding=1),
        )

    def forward(self, latents: Tensor) -> Tensor:
        images: Tensor = self.layers(latents.flatten(0, 1))
        return images.view(*latents.shape[:2], -1)


class Residual(nn.Module):
    """A residual network of four stages; each, like the stem and the pooled features, borrows.

    >>> import torch
    >>> one, two = (Residual(Picture((3, 12, 12)), number, outputs=2) for number in range(2))
    >>> _, lent = one(torch.zeros(1, 3, 12, 12), ())
    >>> outputs, lent = two(torch.zeros(1, 3, 12, 12), lent)
    >>> outputs.shape, [tuple(part.shape[1:]) for part in lent]
    (torch.Size([1, 2]), [(24, 12, 12), (24, 12, 12), (48, 6, 6), (96, 3, 3), (192,)])
    """

    def __init__(self, seen: Picture, number: int, outputs: int) -> None:
        super().__init__()
        width, borrowed = seen.of_classifier(number)
        both, blocks = borrowed + width, seen.channels.blocks
        self.stem = nn.Conv2d(seen.shape[0], width, 3, padding=1, bias=False)
        before = (1, *STAGES[:-1])
        self.stages = nn.ModuleList(
            _stage(both * taken, width * given, 1 if place == 0 else 2, blocks)
            for place, (taken, given) in enumerate(zip(before, STAGES, strict=True))
        )
        self.out = nn.Linear(both * STAGES[-1], outputs)

    def forward(self, x: Tensor, lent: Lent) -> tuple[Tensor, Lent]:
        own = F.relu(F.instance_norm(self.stem(x)))
        parts = [beside(lent, 0, own)]
        for place, stage in enumerate(self.stages, 1):
            own = stage(parts[-1])
            own = own.mean((2, 3)) if place == len(STAGES) else own
            parts.append(beside(lent, place, own))
        return self.out(parts[-1]), tuple(part.detach() for part in parts)


class Block(nn.Module):
    """Two 3x3 convolutions beside a shortcut, projected where shapes differ; no norm is learned.

    >>> import torch
    >>> Block(4, 8, 2)(torch.zeros(1, 4, 6, 6)).shape
    torch.Size([1, 8, 3, 3])
    """

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.one = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.two = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        changed = stride > 1 or before != after
        self.short = nn.Conv2d(before, after, 1, stride, bias=False) if changed else None

    def forward(self, x: Tensor) -> Tensor:
        inner = F.relu(F.instance_norm(self.one(x)))
        inner = F.instance_norm(self.two(inner))
        return F.relu(inner + (x if self.short is None else F.instance_norm(self.short(x))))


def _stage(before: int, after: int, stride: int, blocks: int) -> nn.Sequential:
    rest = (Block(after, after, 1) for _ in range(1, blocks))
    return nn.Sequential(Block(before, after, stride), *rest)
