"""ResNet-18, in its ImageNet form or with a small stem for 32x32; torchvision's tensor names."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from tame.errors import ConfigError
from tame.nets.weights import IMAGENET, Published, begin, check_weights, image_channels

Stem = Literal["imagenet", "small"]
SMALLEST: dict[Stem, int] = {"imagenet": 32, "small": 8}
WIDTHS = (64, 128, 256, 512)
PUBLISHED = Published("resnet18-*.pth")


@dataclass(frozen=True)
class ResNet18:
    """He and others' 18-layer residual network; 11,689,512 parameters at 1000 outputs.

    `stem` "imagenet" is a 7x7 convolution and a pooling that leave a quarter of the side; "small"
    is a 3x3 convolution that leaves all of it, for images of 32x32.

    >>> sum(p.numel() for p in ResNet18()((3, 32, 32), 1000).parameters())
    11689512
    """

    stem: Stem = "imagenet"
    weights: str = ""

    def __post_init__(self) -> None:
        check_weights(self.weights)
        if self.stem not in SMALLEST:
            raise ConfigError(f"a stem is 'imagenet' or 'small', not {self.stem!r}")
        if self.stem == "small" and self.weights == IMAGENET:
            raise ConfigError('there are no ImageNet weights for stem = "small"')

    def __call__(self, input_shape: tuple[int, ...], n_outputs: int) -> nn.Module:
        smallest = SMALLEST[self.stem]
        channels = image_channels("resnet18", input_shape, smallest, self.weights)
        net = ResNet(channels, n_outputs, self.stem)
        return begin(net, net.head, self.weights, PUBLISHED)


class ResNet(nn.Module):
    """The network: `features` gives one vector a sample, `fc` the outputs.

    >>> ResNet(1, 2, "small").eval().features(torch.zeros(1, 1, 8, 8)).shape
    torch.Size([1, 512])
    """

    head: ClassVar[str] = "fc"

    def __init__(self, channels: int, n_outputs: int, stem: Stem) -> None:
        super().__init__()
        kernel, stride = (7, 2) if stem == "imagenet" else (3, 1)
        self.conv1 = nn.Conv2d(channels, WIDTHS[0], kernel, stride, kernel // 2, bias=False)
        self.bn1 = nn.BatchNorm2d(WIDTHS[0])
        self.pool = nn.MaxPool2d(3, 2, 1) if stem == "imagenet" else nn.Identity()
        self.layer1 = _layer(WIDTHS[0], WIDTHS[0], 1)
        self.layer2 = _layer(WIDTHS[0], WIDTHS[1], 2)
        self.layer3 = _layer(WIDTHS[1], WIDTHS[2], 2)
        self.layer4 = _layer(WIDTHS[2], WIDTHS[3], 2)
        self.fc = nn.Linear(WIDTHS[3], n_outputs)

    def features(self, x: Tensor) -> Tensor:
        """Return the pooled features, one vector a sample."""
        x = self.pool(torch.relu_(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return x.mean((2, 3))

    def forward(self, x: Tensor) -> Tensor:
        outputs: Tensor = self.fc(self.features(x))
        return outputs


class Residual(nn.Module):
    """Two 3x3 convolutions beside a shortcut, which is projected where the shape changes.

    >>> Residual(4, 8, 2).eval()(torch.zeros(1, 4, 6, 6)).shape
    torch.Size([1, 8, 3, 3])
    """

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.downsample: nn.Module = nn.Identity()
        if stride > 1 or before != after:
            projection = nn.Conv2d(before, after, 1, stride, bias=False)
            self.downsample = nn.Sequential(projection, nn.BatchNorm2d(after))

    def forward(self, x: Tensor) -> Tensor:
        inner = self.bn2(self.conv2(torch.relu_(self.bn1(self.conv1(x)))))
        return torch.relu_(inner + self.downsample(x))


def _layer(before: int, after: int, stride: int) -> nn.Sequential:
    return nn.Sequential(Residual(before, after, stride), Residual(after, after, 1))
