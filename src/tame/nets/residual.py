"""A residual network of any width and depth, for images of 32x32."""

from dataclasses import dataclass

from torch import Tensor, nn

from tame.nets.stages import blocks, check_stages
from tame.nets.weights import image_channels

SMALLEST = 8


@dataclass(frozen=True)
class ResidualNet:
    """Pre-activated residual blocks in stages, each at half the size of the last.

    `widths` and `depths` are the channels and the blocks of each stage. The mean over the image
    goes to one linear layer.

    >>> sum(p.numel() for p in ResidualNet()((3, 32, 32), 5).parameters())
    174741
    """

    widths: tuple[int, ...] = (16, 32, 64)
    depths: tuple[int, ...] = (2, 2, 2)

    def __post_init__(self) -> None:
        check_stages(self.widths, self.depths)

    def __call__(self, input_shape: tuple[int, ...], n_outputs: int) -> nn.Module:
        channels, width = image_channels("residual", input_shape, SMALLEST), self.widths[0]
        layers: list[nn.Module] = [nn.Conv2d(channels, width, 3, padding=1, bias=False)]
        layers += [PreActivated(*block) for block in blocks(self.widths, self.depths)]
        last = self.widths[-1]
        layers += [nn.BatchNorm2d(last), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        return nn.Sequential(*layers, nn.Linear(last, n_outputs))


class PreActivated(nn.Module):
    """Two 3x3 convolutions, each after norm and rectifier, beside a shortcut."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.BatchNorm2d(before), nn.ReLU())
        self.body = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, padding=1, bias=False),
        )
        self.projected: nn.Module | None = None
        if before != after or stride != 1:
            self.projected = nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        ready = self.first(x)
        found: Tensor = self.body(ready)
        return found + (x if self.projected is None else self.projected(ready))
