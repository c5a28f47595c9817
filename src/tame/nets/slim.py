"""A small residual network of separable convolutions, for images that a LeNet cannot learn."""

from dataclasses import dataclass

from torch import Tensor, nn

from tame.nets.stages import blocks, check_stages
from tame.nets.weights import image_channels

SMALLEST = 16


@dataclass(frozen=True)
class SlimNet:
    """Separable 3x3 convolutions with batch norm in stages, each at half the size of the last.

    `widths` and `depths` are the channels and the convolutions of each stage; those that change
    nothing in shape have a shortcut. The mean over the image goes to one linear layer.

    >>> sum(p.numel() for p in SlimNet()((3, 32, 32), 10).parameters())
    58346
    """

    widths: tuple[int, ...] = (32, 64, 112)
    depths: tuple[int, ...] = (2, 4, 3)

    def __post_init__(self) -> None:
        check_stages(self.widths, self.depths)

    def __call__(self, input_shape: tuple[int, ...], n_outputs: int) -> nn.Module:
        channels, width = image_channels("slim", input_shape, SMALLEST), self.widths[0]
        layers: list[nn.Module] = [
            nn.Conv2d(channels, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
        ]
        layers += [Separable(*block) for block in blocks(self.widths, self.depths)]
        return nn.Sequential(*layers, Mean(), nn.Linear(self.widths[-1], n_outputs))


class Separable(nn.Module):
    """A convolution of each channel by itself, then one across channels; a shortcut if it fits."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.fits = before == after and stride == 1
        self.body = nn.Sequential(
            nn.Conv2d(before, before, 3, stride, padding=1, groups=before, bias=False),
            nn.BatchNorm2d(before),
            nn.ReLU(),
            nn.Conv2d(before, after, 1, bias=False),
            nn.BatchNorm2d(after),
        )

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.body(x)
        return (found + x if self.fits else found).relu()


class Mean(nn.Module):
    """The mean of each channel over the image."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean((2, 3))
