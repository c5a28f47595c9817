"""How much each weight matters to a network's answers: the diagonal of the Fisher information."""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from tame.methods.vectors import gradients, weights

Labels = Literal["sampled", "given"]


def fisher(
    net: nn.Module, scores: Callable[[Tensor], Tensor], x: Tensor, choose: Callable[[Tensor], int]
) -> Tensor:
    """Return the mean over samples of the squared gradient of log p(y|x), one entry a weight.

    `scores` gives what the softmax takes; `choose` picks the y of a sample, given its row of
    log-probabilities and nothing else. Gradients are squared sample by sample: the square of a
    batch's mean gradient would shrink with the size of the batch.
    """
    net.eval()
    total = torch.zeros_like(weights(net))
    for sample in x.split(1):
        net.zero_grad(set_to_none=True)
        logs = scores(sample).log_softmax(1)[0]
        logs[choose(logs.detach())].backward()
        total += gradients(net).square()
    net.zero_grad(set_to_none=True)
    return total / max(1, len(x))


def drawn(logs: Tensor, generator: torch.Generator) -> int:
    """Return a label drawn by these log-probabilities."""
    return int(torch.multinomial(logs.cpu().exp(), 1, generator=generator))


def moving_average(fisher: Tensor, squares: Tensor, interval: int, share: float) -> Tensor:
    """Return a running Fisher after `interval` steps whose squared gradients add up to `squares`.

    >>> moving_average(torch.tensor([1.0]), torch.tensor([40.0]), 10, 0.9)
    tensor([3.7000])
    """
    return (1 - share) * fisher + share / interval * squares
