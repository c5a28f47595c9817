"""EfficientNet-B0: inverted residuals with squeeze-and-excitation; torchvision's tensor names."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tame.errors import ConfigError
from tame.nets.weights import Published, begin, check_weights, image_channels

SMALLEST = 32
STEM, TOP = 32, 1280
SQUEEZE = 4
PUBLISHED = Published("efficientnet_b0_*.pth")


class Stage(NamedTuple):
    """Blocks of one width: `repeats` of them, the first with the `stride`."""

    expand: int
    kernel: int
    stride: int
    width: int
    repeats: int

    def blocks(self) -> list["Stage"]:
        """Return the stage block by block."""
        return [self, *[self._replace(stride=1)] * (self.repeats - 1)]


STAGES = (
    Stage(1, 3, 1, 16, 1),
    Stage(6, 3, 2, 24, 2),
    Stage(6, 5, 2, 40, 2),
    Stage(6, 3, 2, 80, 3),
    Stage(6, 5, 1, 112, 3),
    Stage(6, 5, 2, 192, 4),
    Stage(6, 3, 1, 320, 1),
)


@dataclass(frozen=True)
class EfficientNetB0:
    """Tan and Le's baseline network; 5,288,548 parameters at 1000 outputs.

    `dropout` is the published 0.2, before the head. `drop_connect` leaves whole blocks out, the
    deeper the likelier: published as 0.2 for 350 passes, 0 here, where data may pass once.

    >>> sum(p.numel() for p in EfficientNetB0()((3, 32, 32), 1000).parameters())
    5288548
    """

    dropout: float = 0.2
    drop_connect: float = 0.0
    weights: str = ""

    def __post_init__(self) -> None:
        check_weights(self.weights)
        check_rate("dropout", self.dropout)
        check_rate("drop_connect", self.drop_connect)

    def __call__(self, input_shape: tuple[int, ...], n_outputs: int) -> nn.Module:
        channels = image_channels("efficientnet-b0", input_shape, SMALLEST, self.weights)
        net = EfficientNet(channels, n_outputs, self.dropout, self.drop_connect)
        return begin(net, net.head, self.weights, PUBLISHED)


class EfficientNet(nn.Module):
    """The network: `features` gives one vector a sample, `classifier` the outputs.

    >>> EfficientNet(1, 2, 0.0, 0.0).eval().features(torch.zeros(1, 1, 32, 32)).shape
    torch.Size([1, 1280])
    """

    head: ClassVar[str] = "classifier"

    def __init__(self, channels: int, n_outputs: int, dropout: float, drop_connect: float) -> None:
        super().__init__()
        layers: list[nn.Module] = [_convolution(channels, STEM, 3, 2)]
        before, count, total = STEM, 0, sum(stage.repeats for stage in STAGES)
        for stage in STAGES:
            blocks = nn.Sequential()
            for single in stage.blocks():
                blocks.append(Inverted(before, single, drop_connect * count / total))
                before, count = stage.width, count + 1
            layers.append(blocks)
        layers += [_convolution(before, TOP, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(dropout), nn.Linear(TOP, n_outputs))

    def forward(self, x: Tensor) -> Tensor:
        outputs: Tensor = self.classifier(self.features(x))
        return outputs


class Inverted(nn.Module):
    """Widen, convolve each channel, weigh the channels, narrow; a shortcut where shapes agree.

    >>> Inverted(16, STAGES[1], 0.0).eval()(torch.zeros(1, 16, 8, 8)).shape
    torch.Size([1, 24, 4, 4])
    """

    def __init__(self, before: int, stage: Stage, drop: float) -> None:
        super().__init__()
        wide = before * stage.expand
        layers: list[nn.Module] = [_convolution(before, wide, 1)] if stage.expand > 1 else []
        self.block = nn.Sequential(
            *layers,
            _convolution(wide, wide, stage.kernel, stage.stride, groups=wide),
            Squeeze(wide, before // SQUEEZE),
            _convolution(wide, stage.width, 1)[:2],
        )
        self.shortcut = stage.stride == 1 and before == stage.width
        self.drop = drop

    def forward(self, x: Tensor) -> Tensor:
        inner: Tensor = self.block(x)
        return x + drop_samples(inner, self.drop, self.training) if self.shortcut else inner


class Squeeze(nn.Module):
    """Weighs each channel by what all channels hold on average over the image.

    >>> Squeeze(8, 2)(torch.zeros(1, 8, 4, 4)).shape
    torch.Size([1, 8, 4, 4])
    """

    def __init__(self, width: int, narrow: int) -> None:
        super().__init__()
        self.fc1 = nn.Conv2d(width, narrow, 1)
        self.fc2 = nn.Conv2d(narrow, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean((2, 3), keepdim=True)
        return x * torch.sigmoid(self.fc2(F.silu(self.fc1(mean))))


def drop_samples(x: Tensor, rate: float, training: bool) -> Tensor:  # noqa: FBT001 (as torch's)
    """Zero whole samples at random in training, and scale the others up to make up for it.

    >>> drop_samples(torch.ones(2, 1, 1, 1), 0.5, False).sum()
    tensor(2.)
    """
    if not (training and rate):
        return x
    return x * F.dropout(x.new_ones(len(x), 1, 1, 1), rate)


def check_rate(name: str, rate: float) -> None:
    """Refuse a share to be dropped that is none.

    >>> check_rate("dropout", 1.0)
    Traceback (most recent call last):
    ...
    tame.errors.ConfigError: dropout lies in [0, 1), not 1.0
    """
    if not 0 <= rate < 1:
        raise ConfigError(f"{name} lies in [0, 1), not {rate}")


def _convolution(
    before: int, after: int, kernel: int, stride: int = 1, groups: int = 1
) -> nn.Sequential:
    convolution = nn.Conv2d(before, after, kernel, stride, kernel // 2, 1, groups, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(after), nn.SiLU())
