"""LeNet: the paper's two-convolution network for digits, 61,706 parameters at ten outputs."""

from dataclasses import dataclass
from itertools import pairwise

from torch import nn

from tame.nets.weights import image_channels

SMALLEST = 14


@dataclass(frozen=True)
class LeNet:
    """Two 5x5 convolutions with pooling, then 120 - 84 - outputs.

    Inputs of 28x28 are padded by two in the first convolution, as if they were 32x32.

    >>> sum(p.numel() for p in LeNet()((1, 28, 28), 10).parameters())
    61706
    """

    hidden: tuple[int, ...] = (120, 84)

    def __call__(self, input_shape: tuple[int, ...], n_outputs: int) -> nn.Module:
        image_channels("lenet", input_shape, SMALLEST)
        channels, height, width = input_shape
        pad = 2 if (height, width) == (28, 28) else 0
        flat = 16 * _after(height + 2 * pad) * _after(width + 2 * pad)
        sizes = (flat, *self.hidden)
        layers: list[nn.Module] = [
            nn.Conv2d(channels, 6, 5, padding=pad),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
        ]
        for before, after in pairwise(sizes):
            layers += [nn.Linear(before, after), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(sizes[-1], n_outputs))


def _after(side: int) -> int:
    return ((side - 4) // 2 - 4) // 2
