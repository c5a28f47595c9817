"""VGG11 with batch norm for small colour images: the paper's CIFAR expert, 9.23M parameters."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from tame.nets.weights import Published, begin, check_weights, image_channels

SMALLEST = 32
POOL = 0
LAYERS = (64, POOL, 128, POOL, 256, 256, POOL, 512, 512, POOL, 512, 512, POOL)
IMAGENET = Published("vgg11_bn-*.pth")


@dataclass(frozen=True)
class VGG11:
    """Eight 3x3 convolutions with batch norm, five poolings, one linear layer.

    Simonyan and Zisserman's configuration A without its two wide linear layers, as is usual at
    32x32. Larger images are averaged to one place before the head.

    >>> sum(p.numel() for p in VGG11()((3, 32, 32), 5).parameters())
    9228549
    """

    weights: str = ""

    def __post_init__(self) -> None:
        check_weights(self.weights)

    def __call__(self, input_shape: tuple[int, ...], n_outputs: int) -> nn.Module:
        channels = image_channels("vgg11", input_shape, SMALLEST, self.weights)
        return begin(VGG(channels, n_outputs), VGG.head, self.weights, IMAGENET)


class VGG(nn.Module):
    """The network: `features` gives one vector a sample, `classifier` the outputs.

    >>> import torch
    >>> VGG(1, 2).eval().features(torch.zeros(1, 1, 32, 32)).shape
    torch.Size([1, 512])
    """

    head: ClassVar[str] = "classifier"

    def __init__(self, channels: int, n_outputs: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for width in LAYERS:
            if width == POOL:
                layers.append(nn.MaxPool2d(2))
                continue
            convolution = nn.Conv2d(channels, width, 3, padding=1)
            layers += [convolution, nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
            channels = width
        self.features = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.classifier = nn.Linear(channels, n_outputs)

    def forward(self, x: Tensor) -> Tensor:
        outputs: Tensor = self.classifier(self.features(x))
        return outputs
