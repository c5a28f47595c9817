"""The loss of a batch under the two output forms, and what constant guessing would cost."""

import math
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from tame.types import Reading

Output = Literal["logits", "sigmoid"]


def sample_losses(outputs: Tensor, target: Tensor, form: Output) -> Tensor:
    """Return the cross-entropy of each sample.

    `sigmoid` is the paper's form: outputs squashed to (0, 1) and then fed to a softmax. It bounds
    the loss, and with many absent classes its gradient dies; `logits` is the ordinary form.
    """
    scores = torch.sigmoid(outputs) if form == "sigmoid" else outputs
    return F.cross_entropy(scores, target, reduction="none")


def among_taught(outputs: Tensor, target: Tensor, taught: Tensor, form: Output) -> Tensor:
    """Return outputs in which only labels a network was taught stand against the right one.

    A label that came up since it last learned has an output nobody has told to keep quiet, and
    would make the loss of a network's own data look larger the more such labels there are. Under
    the sigmoid form, where an absent class always has its share, outputs stay as they are.

    >>> outputs, taught = torch.tensor([[4.0, 0.0, 0.0]]), torch.tensor([True, True, False])
    >>> among_taught(outputs, torch.tensor([0]), taught, "logits").tolist()
    [[4.0, 0.0, -inf]]
    >>> among_taught(outputs, torch.tensor([2]), taught, "logits").tolist()
    [[4.0, 0.0, 0.0]]
    """
    if form == "sigmoid":
        return outputs
    right = F.one_hot(target, outputs.shape[-1]).bool()
    return outputs.masked_fill(~(taught | right), -math.inf)


def read(losses: Tensor) -> Reading:
    """Summarise the losses of a batch as floats on the host, in one transfer.

    >>> read(torch.tensor([1.0, 3.0]))
    Reading(loss=2.0, error=1.0, samples=2, unseen=0)
    """
    return summarise(losses.detach().cpu().numpy())


def summarise(losses: np.ndarray) -> Reading:
    """Summarise the losses of a batch that lie on the host."""
    values, count = losses.astype(np.float64), len(losses)
    mean = float(np.add.reduce(values)) / count
    away = values - mean
    variance = float(np.add.reduce(away * away)) / (count - 1) if count > 1 else 0.0
    return Reading(mean, math.sqrt(variance) / math.sqrt(count), count)


def guessing_loss(counts: np.ndarray, form: Output) -> float:
    """Return the lowest loss a constant output reaches on labels that occur `counts` times.

    For logits this is the entropy of the labels. Under the sigmoid form it is higher, since
    absent classes keep a share of the probability.

    >>> round(guessing_loss(np.array([1, 1]), "logits"), 4)
    0.6931
    >>> round(guessing_loss(np.array([1, 1] + [0] * 8), "sigmoid"), 4)
    1.598
    """
    share = counts / counts.sum()
    if form == "logits":
        present = share[share > 0]
        return float(-(present * np.log(present)).sum())
    scores = np.full(len(share), 0.5)
    for _ in range(300):  # projected gradient descent on a convex function over a box
        probability = np.exp(scores) / np.exp(scores).sum()
        scores = np.clip(scores + share - probability, 0.0, 1.0)
    return float(np.log(np.exp(scores).sum()) - share @ scores)


def least_loss(slots: int, form: Output) -> float:
    """Return the least loss an output of so many slots can have.

    >>> least_loss(10, "logits"), round(least_loss(10, "sigmoid"), 3)
    (0.0, 1.461)
    """
    return 0.0 if form == "logits" else math.log(math.e + max(0, slots - 1)) - 1.0
