"""Images in fewer bytes: cosine waves, each in as many bits as images usually have of it."""

import math
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn

from tame.errors import InputError

COLOURS = 3
MIDDLE = 128
BYTE = 8
CHUNK = 256  # images worked on at once
FEWEST_BITS, MOST_BITS = 3, 12  # of a wave that is kept: the first three gain more than any two
# How strong waves are in photographs, as log2 of their deviation, for brightness and the two
# differences of colour: at frequency 0, then at 1/64, 1/16, 1/4 and 1 (read off every fifth
# training image of CIFAR-100; between those, straight lines).
STRENGTHS = (
    (11.03, 9.87, 8.57, 6.15, 2.25),
    (9.94, 8.00, 6.76, 4.17, -0.56),
    (8.63, 6.88, 5.80, 3.28, -1.03),
)
LOWEST, APART = -6.0, 2.0  # log2 of the first frequency told, and how far the next one lies
SIDE = 32  # of those images: frequency 0 grows with an image's size
PACE = math.sqrt(2) / 3  # levels lie at equal distances in 1 - exp(-PACE |deviations|)
EDGE = 1 - 1e-3


@dataclass(frozen=True)
class Codec:
    """Keeps a `share` of the bytes of an image, the same of every image.

    A colour image becomes brightness and two differences of colour, each of these a sum of cosine
    waves, and each wave some bits: as many as lower the mean squared error most where images are
    like photographs. At a share of 0.2 a small photograph comes back with an error of about four
    in 255. Compressed memories are from Wang et al., "Memory Replay with Data Compression for
    Continual Learning" (2022), who keep JPEG files.

    >>> codec = Codec(share=0.2)
    >>> grey = torch.full((2, 3, 32, 32), 100, dtype=torch.uint8)
    >>> codec.encode(grey).shape, bool((codec.decode(codec.encode(grey), (3, 32, 32)) == 100).all())
    (torch.Size([2, 614]), True)
    """

    share: float = 0.2

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ValueError(f"share lies above 0 and is 1 at most, not {self.share}")

    def check(self, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        """Raise unless these are images in bytes: (height, width), or 1 or 3 such planes."""
        planes = (1, *shape)[-3] if len(shape) in {2, 3} else 0
        if dtype != torch.uint8 or planes not in {1, COLOURS}:
            kind = str(dtype).removeprefix("torch.")
            raise InputError(
                f"a codec keeps images in bytes, grey or in three colours, not {kind} of shape "
                f"{tuple(shape)}: leave the selector's codec out"
            )

    def encode(self, images: Tensor) -> Tensor:
        """Return a row of bytes for each image."""
        shape = tuple(images.shape[1:])
        self.check(shape, images.dtype)
        plan = _plan(_three(shape), self.share, images.device)
        rows = [_written(part, plan) for part in images.split(CHUNK)]
        return torch.cat(rows)

    def decode(self, codes: Tensor, shape: tuple[int, ...]) -> Tensor:
        """Return images of this shape, in bytes, from the rows of `encode`."""
        plan = _plan(_three(shape), self.share, codes.device)
        images = [_read(part, plan) for part in codes.split(CHUNK)]
        return torch.cat(images).view(len(codes), *shape)


class AsKept(nn.Module):
    """Images as they would come back had they been kept: what learned from those is asked so."""

    def __init__(self, codec: Codec) -> None:
        super().__init__()
        self.codec = codec

    def forward(self, images: Tensor) -> Tensor:
        return self.codec.decode(self.codec.encode(images), tuple(images.shape[1:]))


class _Plan(NamedTuple):
    """How images of one shape are written.

    `rows` and `columns` hold the waves of a side, one a row; `order` the places of the waves that
    are kept, those of fewest bits first; `groups` how many there are of each number of bits.
    """

    shape: tuple[int, int, int]
    colours: Tensor
    rows: Tensor
    columns: Tensor
    deviations: Tensor
    order: Tensor
    groups: tuple[tuple[int, int], ...]
    size: int


def _written(images: Tensor, plan: _Plan) -> Tensor:
    x = images.view(len(images), *plan.shape).float() - MIDDLE
    waves = plan.rows @ torch.einsum("ij,njhw->nihw", plan.colours, x) @ plan.columns.T
    scaled = waves.flatten(1)[:, plan.order] / plan.deviations
    bent = _bent(scaled)
    bits = torch.zeros(len(x), plan.size * BYTE, dtype=torch.uint8, device=x.device)
    place = begin = 0
    for count, width in plan.groups:
        half = 2 ** (width - 1) - 1
        level = (bent[:, begin : begin + count] * (half + 0.5)).round().clamp(-half, half) + half
        spread = level.int()[..., None] >> torch.arange(width, device=x.device) & 1
        bits[:, place : place + count * width] = spread.flatten(1)
        begin, place = begin + count, place + count * width
    weights = 2 ** torch.arange(BYTE, device=x.device)
    packed = (bits.view(len(x), plan.size, BYTE).int() * weights).sum(2)
    return packed.to(torch.uint8)


def _read(codes: Tensor, plan: _Plan) -> Tensor:
    bits = codes.int()[..., None] >> torch.arange(BYTE, device=codes.device) & 1
    bits = bits.flatten(1)
    parts, place = [], 0
    for count, width in plan.groups:
        half = 2 ** (width - 1) - 1
        own = bits[:, place : place + count * width].view(len(codes), count, width)
        level = (own * 2 ** torch.arange(width, device=codes.device)).sum(2)
        parts.append((level - half) / (half + 0.5))
        place += count * width
    scaled = _straight(torch.cat(parts, 1))
    waves = scaled.new_zeros(len(codes), math.prod(plan.shape))
    waves[:, plan.order] = scaled * plan.deviations
    planes = plan.rows.T @ waves.view(len(codes), *plan.shape) @ plan.columns
    x = torch.einsum("ji,njhw->nihw", plan.colours, planes) + MIDDLE
    return x.round().clamp(0, 255).to(torch.uint8)


def _bent(scaled: Tensor) -> Tensor:
    """Return deviations on a scale where levels lie at equal distances, between -1 and 1."""
    return scaled.sign() * (1 - torch.exp(-PACE * scaled.abs()))


def _straight(bent: Tensor) -> Tensor:
    """Undo `_bent`."""
    return -bent.sign() * torch.log1p(-bent.abs().clamp(max=EDGE)) / PACE


@cache
@torch.inference_mode(mode=False)
def _plan(shape: tuple[int, int, int], share: float, device: torch.device) -> _Plan:
    """Return how to write images of a shape, made once."""
    size = max(1, int(share * math.prod(shape)))
    deviations = _deviations(shape)
    bits = _allotted(deviations.square(), size * BYTE)
    kept = bits > 0
    order = torch.argsort(bits, stable=True)[int((~kept).sum()) :]
    counts = torch.bincount(bits[kept], minlength=MOST_BITS + 1).tolist()
    groups = tuple((count, width) for width, count in enumerate(counts) if count)
    return _Plan(
        shape,
        colours=_colours(shape[0]).to(device),
        rows=_basis(shape[1]).to(device),
        columns=_basis(shape[2]).to(device),
        deviations=deviations[order].to(device),
        order=order.to(device),
        groups=groups,
        size=size,
    )


def _three(shape: tuple[int, ...]) -> tuple[int, int, int]:
    planes, height, width = (1, *shape)[-3:]
    return planes, height, width


def _colours(planes: int) -> Tensor:
    """Return an orthonormal turn from red, green and blue; grey is brightness alone."""
    if planes == 1:
        return torch.ones(1, 1)
    third, half, sixth = (1 / math.sqrt(n) for n in (3, 2, 6))
    return torch.tensor([[third] * 3, [half, 0, -half], [sixth, -2 * sixth, sixth]])


def _basis(side: int) -> Tensor:
    """Return the orthonormal cosine waves of a side, one a row."""
    place = torch.arange(side, dtype=torch.float32)
    basis = torch.cos(math.pi / side * (place + 0.5) * place[:, None]) * math.sqrt(2 / side)
    basis[0] /= math.sqrt(2)
    return basis


def _deviations(shape: tuple[int, int, int]) -> Tensor:
    """Return how strong each wave of an image is expected to be."""
    planes, height, width = shape
    across, down = torch.arange(width) / (2 * width), torch.arange(height) / (2 * height)
    frequency = (down[:, None] + across).flatten()
    step = (torch.log2(frequency[1:]) - LOWEST) / APART
    told = torch.tensor(STRENGTHS[:planes])
    left = step.floor().clamp(0, told.shape[1] - 3).long() + 1
    part = step - (left - 1)
    powers = told[:, left] * (1 - part) + told[:, left + 1] * part
    constant = told[:, :1] + math.log2(math.sqrt(height * width) / SIDE)
    deviations = torch.exp2(torch.cat([constant, powers], 1)).flatten()
    return deviations if planes > 1 else deviations / math.sqrt(COLOURS)


def _allotted(variances: Tensor, bits: int) -> Tensor:
    """Return how many bits each wave gets: every bit goes where it lowers the error most."""
    widths = (0, *range(FEWEST_BITS, MOST_BITS + 1))
    left = _errors(widths)
    known = zip(widths, left, strict=True)
    steps = [(b - a, (one - two) / (b - a)) for (a, one), (b, two) in pairwise(known)]
    gains = torch.cat([variances * gain for _, gain in steps])
    costs = torch.tensor([cost for cost, _ in steps]).repeat_interleave(len(variances))
    best = torch.argsort(gains, descending=True, stable=True)
    taken = best[costs[best].cumsum(0) <= bits]
    places = torch.arange(len(variances)).repeat(len(steps))
    return torch.zeros(len(variances), dtype=torch.long).index_add_(0, places[taken], costs[taken])


@cache
def _errors(widths: tuple[int, ...]) -> list[float]:
    """Return what is left of a Laplacian wave's variance in so many bits."""
    chance = torch.linspace(0, 1, 100_001, dtype=torch.float64)[1:-1]
    exact = -torch.log(1 - chance) / math.sqrt(2)
    found = [1.0]
    for width in widths[1:]:
        half = 2 ** (width - 1) - 1
        level = (_bent(exact) * (half + 0.5)).round().clamp(max=half)
        back = _straight(level / (half + 0.5))
        found.append(float((back - exact).square().mean()))
    return found
