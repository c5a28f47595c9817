"""A small convolutional network with batch norm: few parameters, most of them well used."""

from dataclasses import dataclass

from torch import nn

from tame.nets.weights import image_channels

SMALLEST = 8


@dataclass(frozen=True)
class ConvNet:
    """Blocks of 3x3 convolution, batch norm and ReLU, then one linear layer.

    The image is halved after the blocks whose numbers `halved` names.

    >>> sum(p.numel() for p in ConvNet()((1, 28, 28), 10).parameters())
    28906
    """

    widths: tuple[int, ...] = (16, 24, 32, 48)
    halved: tuple[int, ...] = (0, 1, 3)

    def __call__(self, input_shape: tuple[int, ...], n_outputs: int) -> nn.Module:
        image_channels("convnet", input_shape, SMALLEST)
        before, height, width = input_shape
        layers: list[nn.Module] = []
        for number, after in enumerate(self.widths):
            layers += [nn.Conv2d(before, after, 3, padding=1, bias=False)]
            layers += [nn.BatchNorm2d(after), nn.ReLU()]
            if number in self.halved:
                layers.append(nn.MaxPool2d(2))
                height, width = height // 2, width // 2
            before = after
        flat = before * height * width
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(flat, n_outputs))
