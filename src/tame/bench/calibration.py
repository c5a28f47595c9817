"""Whether a learner's confidence is worth what it says."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from tame.types import ArrayLike, HeldOut

BINS = 15
CHUNK = 1024


@runtime_checkable
class HasProbabilities(Protocol):
    """A learner that says how sure it is."""

    def log_probabilities(self, x: ArrayLike) -> tuple[Tensor, Tensor]:
        """Return (samples, labels) log-probabilities, and the label of each column."""
        ...


def calibration_error(learner: Any, held: Sequence[HeldOut]) -> float | None:
    """Return the ECE over all held-out samples, or nothing for a learner without probabilities."""
    if not isinstance(learner, HasProbabilities):
        return None
    sure, right = [], []
    for part in held:
        for x, y in zip(part.x.split(CHUNK), part.y.split(CHUNK), strict=True):
            scores, labels = learner.log_probabilities(x)
            best, place = scores.exp().max(1)
            sure.append(best.double().cpu())
            right.append(labels[place].cpu() == y)
    return expected_error(torch.cat(sure), torch.cat(right))


def expected_error(confidence: Tensor, right: Tensor) -> float:
    """Return the expected calibration error (Guo et al. 2017), 15 bins of equal width.

    The sum over bins of their share of samples times |accuracy - mean confidence|.

    >>> expected_error(torch.tensor([0.9, 0.9, 0.5, 0.5]), torch.tensor([1, 1, 0, 1]))
    0.05...
    """
    bins = (confidence * BINS).ceil().long().clamp(1, BINS) - 1  # (0, 1/15], (1/15, 2/15], ...
    gap = right.double() - confidence.double()
    sums = torch.zeros(BINS, dtype=torch.float64).index_add_(0, bins, gap)
    return float(sums.abs().sum() / len(confidence))
