"""Images in fewer bytes: the lowest cosine waves of each block, colour at half the sharpness."""

import math
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tame.errors import InputError

SIDE = 8
WAVES = SIDE * SIDE
COLOURS = 3
LARGEST = 127  # of a number kept in a signed byte
MIDDLE = 128
TO_LUMA_AND_CHROMA = (
    (0.299, 0.587, 0.114),
    (-0.168736, -0.331264, 0.5),
    (0.5, -0.418688, -0.081312),
)


@dataclass(frozen=True)
class Codec:
    """Keeps of every 8 by 8 block the waves of lowest frequency, each in a byte.

    `luma` waves tell brightness; `chroma` waves each of the two differences of colour, of blocks
    twice as wide. A wave is rounded to multiples of `step`, the mean of a block to what a byte
    holds. Every image of a shape takes the same bytes: 32 by 32 pixels in colour 696, not 3,072.
    What is put back differs from the image by about as much as a JPEG file does.

    >>> codec = Codec()
    >>> grey = torch.full((2, 3, 32, 32), 100, dtype=torch.uint8)
    >>> codec.encode(grey).shape, bool((codec.decode(codec.encode(grey), (3, 32, 32)) == 100).all())
    (torch.Size([2, 696]), True)
    """

    luma: int = 36
    chroma: int = 15
    step: float = 4.0

    def __post_init__(self) -> None:
        if not (1 <= self.luma <= WAVES and 1 <= self.chroma <= WAVES):
            raise ValueError(f"luma and chroma lie in [1, 64], not {self.luma} and {self.chroma}")
        if self.step <= 0:
            raise ValueError(f"step is positive, not {self.step}")

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
        """Return a row of signed bytes for each image."""
        self.check(tuple(images.shape[1:]), images.dtype)
        x = images.float().view(len(images), -1, *images.shape[-2:])
        if x.shape[1] == 1:
            return self._waves(x - MIDDLE, self.luma)
        x = torch.einsum("ij,njhw->nihw", _tables(x.device).colours, x)
        small = F.avg_pool2d(_widened(x[:, 1:], 2), 2)
        parts = [self._waves(x[:, :1] - MIDDLE, self.luma), self._waves(small, self.chroma)]
        return torch.cat(parts, 1)

    def decode(self, codes: Tensor, shape: tuple[int, ...]) -> Tensor:
        """Return images of this shape, in bytes, from the rows of `encode`."""
        height, width = shape[-2:]
        split = self._size(height, width)
        x = luma = self._plane(codes[:, :split], (height, width), self.luma) + MIDDLE
        if COLOURS in shape[:-2]:
            half = ((height + 1) // 2, (width + 1) // 2)
            small = self._plane(codes[:, split:], half, self.chroma)
            wide = F.interpolate(small, scale_factor=2, mode="bilinear")[..., :height, :width]
            back = _tables(codes.device).back
            x = torch.einsum("ij,njhw->nihw", back, torch.cat([luma, wide], 1))
        return x.round().clamp(0, 255).to(torch.uint8).view(len(codes), *shape)

    def _size(self, height: int, width: int) -> int:
        """Return the bytes of the brightness of an image."""
        return math.ceil(height / SIDE) * math.ceil(width / SIDE) * self.luma

    def _waves(self, planes: Tensor, kept: int) -> Tensor:
        blocks = _widened(planes, SIDE).unfold(2, SIDE, SIDE).unfold(3, SIDE, SIDE)
        basis, order, *_ = _tables(planes.device)
        waves = (basis @ blocks @ basis.T).flatten(-2)[..., order[:kept]]
        scaled = (waves / self._steps(kept, planes.device)).round()
        return scaled.clamp(-LARGEST, LARGEST).to(torch.int8).flatten(1)

    def _plane(self, codes: Tensor, size: tuple[int, int], kept: int) -> Tensor:
        rows, columns = (math.ceil(side / SIDE) for side in size)
        waves = codes.view(len(codes), -1, rows, columns, kept).float()
        basis, order, *_ = _tables(codes.device)
        full = waves.new_zeros((*waves.shape[:-1], WAVES))
        full[..., order[:kept]] = waves * self._steps(kept, codes.device)
        blocks = basis.T @ full.unflatten(-1, (SIDE, SIDE)) @ basis
        planes: Tensor = blocks.transpose(3, 4).reshape(len(codes), -1, rows * SIDE, columns * SIDE)
        return planes[..., : size[0], : size[1]]

    def _steps(self, kept: int, device: torch.device) -> Tensor:
        steps = torch.full((kept,), self.step, device=device)
        steps[0] = max(self.step, SIDE * MIDDLE / LARGEST)
        return steps


class AsKept(nn.Module):
    """Images as they would come back had they been kept: what learned from those is asked so."""

    def __init__(self, codec: Codec) -> None:
        super().__init__()
        self.codec = codec

    def forward(self, images: Tensor) -> Tensor:
        return self.codec.decode(self.codec.encode(images), tuple(images.shape[1:]))


def _widened(planes: Tensor, multiple: int) -> Tensor:
    """Return planes whose sides are multiples, their last row and column repeated."""
    height, width = planes.shape[-2:]
    return F.pad(planes, (0, -width % multiple, 0, -height % multiple), mode="replicate")


class _Tables(NamedTuple):
    """The cosine waves of a block's side, one a row; the order of a block's waves; colours."""

    basis: Tensor
    order: Tensor
    colours: Tensor
    back: Tensor


@cache
@torch.inference_mode(mode=False)
def _tables(device: torch.device) -> _Tables:
    """Return what never changes, made once a device: waves of lowest frequency come first."""
    place = torch.arange(SIDE, dtype=torch.float32)
    basis = torch.cos(math.pi / SIDE * (place + 0.5) * place[:, None]) * math.sqrt(2 / SIDE)
    basis[0] /= math.sqrt(2)
    order = sorted(range(WAVES), key=lambda wave: (wave // SIDE + wave % SIDE, wave // SIDE))
    colours = torch.tensor(TO_LUMA_AND_CHROMA)
    made = (basis, torch.tensor(order), colours, torch.linalg.inv(colours))
    return _Tables(*(table.to(device) for table in made))
