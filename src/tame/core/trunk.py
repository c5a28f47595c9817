"""A frozen trunk: pre-trained features of images, shared by all that learns, trained by nothing."""

from typing import Any, Protocol, Self, runtime_checkable

import torch
from torch import Tensor, nn

from tame.engine.eager import half, wants_half
from tame.engine.randomness import seeded
from tame.engine.sizes import filled
from tame.errors import ConfigError
from tame.nets import resolve

CHUNK = 256  # images it sees at once


@runtime_checkable
class HasFeatures(Protocol):
    """A network with a trunk: one vector a sample, before its outputs."""

    def features(self, x: Tensor) -> Tensor: ...


class Trunk(nn.Module):
    """What a network sees in an image and in its mirror image, averaged: one vector a sample.

    Roots of the numbers are taken: pooled activations are many small ones and a few large, and a
    root brings them nearer to normal. The network's outputs are left out. It stays in evaluation
    mode whatever it is a part of.

    >>> trunk = Trunk({"name": "resnet18", "stem": "small", "weights": ""}, (3, 8, 8))
    >>> trunk(torch.zeros(2, 3, 8, 8)).shape, trunk.width
    (torch.Size([2, 512]), 512)
    """

    def __init__(self, net: Any, shape: tuple[int, ...]) -> None:
        super().__init__()
        with seeded(0, torch.device("cpu")):
            made = resolve(net)(shape, 1)
        if not isinstance(made, HasFeatures):
            raise ConfigError(f"{type(made).__name__} has no trunk: no method 'features'")
        head = getattr(made, "head", None)
        if isinstance(head, str):
            made.set_submodule(head, nn.Identity())
        made = made.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.net: Any = made.requires_grad_(requires_grad=False).eval()
        with torch.no_grad():
            self.width = int(self.net.features(torch.zeros(1, *shape)).shape[1])

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        count, x = len(x), filled(x, CHUNK)
        with half(x.device, enabled=wants_half(self.net, "auto")):
            seen = self.net.features(torch.cat([x, x.flip(3)]))
        first, second = seen.to(x.dtype).chunk(2)
        mean: Tensor = (first[:count] + second[:count]) / 2
        return mean.sign() * mean.abs().sqrt()

    def train(self, mode: bool = True) -> Self:  # noqa: ARG002, FBT001, FBT002 (torch's form)
        return self
