"""Scores of (expert, label) pairs by class statistics and by a network, each where it knows."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from tame.engine.eager import half, wants_half

CHUNK = 256
IMAGES = 4  # dimensions of a batch of them


class Views(nn.Module):
    """A network on images as its own input step makes them, each with its mirror image.

    >>> Views(nn.Flatten(), nn.Identity())(torch.zeros(2, 1, 1, 3)).shape
    torch.Size([2, 3])
    """

    def __init__(self, net: nn.Module, step: nn.Module) -> None:
        super().__init__()
        self.net = net
        self.step = step

    def forward(self, raw: Tensor) -> Tensor:
        return torch.cat([self._see(part) for part in raw.split(CHUNK)])

    def _see(self, raw: Tensor) -> Tensor:
        x = self.step(raw)
        views = [x, x.flip(3)] if x.ndim == IMAGES else [x]
        with half(x.device, enabled=wants_half(self.net, "auto")):
            seen = [self.net(view) for view in views]
        mean = torch.stack([scores.to(x.dtype).log_softmax(1) for scores in seen]).mean(0)
        return mean.log_softmax(1)


class Eye(NamedTuple):
    """A trained network, the pairs its outputs stand for, and how much it is trusted."""

    views: Views
    known: Tensor
    share: float


class MomentScores(nn.Module):
    """Log-probabilities of pairs: the statistics' and, among the pairs it knows, the network's.

    The network's are mixed into those of the statistics, on the scale of logarithms; how likely it
    is that a sample is of any pair the network knows is for the statistics alone to say.
    """

    known: Tensor

    def __init__(self, rule: nn.Linear, temperature: float, eye: Eye | None) -> None:
        super().__init__()
        self.rule = rule
        self.temperature = temperature
        self.views = None if eye is None else eye.views
        self.share = 0.0 if eye is None else eye.share
        self.register_buffer("known", torch.zeros(0).long() if eye is None else eye.known)

    def forward(self, raw: Tensor, ready: Tensor) -> Tensor:
        told: Tensor = (self.rule(ready.flatten(1)) / self.temperature).log_softmax(1)
        if self.views is None:
            return told
        some = told[:, self.known]
        mixed = (self.share * self.views(raw) + (1 - self.share) * some).log_softmax(1)
        return told.index_copy(1, self.known, mixed + some.logsumexp(1, keepdim=True))
