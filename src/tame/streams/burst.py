"""Short bursts of bad labels or spoiled images: an upset, and no change."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from tame.engine.randomness import numpy_generator
from tame.errors import ConfigError


@dataclass(frozen=True)
class Burst:
    """Every `every` batches of a segment, `batches` of them are spoiled (`every` 0: never).

    `kind` says how: wrong `labels`, drawn among the others of the origin, or `pixels` replaced by
    noise. `share` is the fraction of samples (labels) or of each image's pixels that is hit.
    The first burst of a segment comes `every` batches after the change to it is over, and the
    last is over before the next change begins, so that none hides a change.

    >>> list(Burst(every=10, batches=3).spans([0, 25], [0, 26], end=40))
    [(10, 13), (20, 23), (36, 39)]
    """

    every: int = 0
    batches: int = 5
    kind: Literal["labels", "pixels"] = "labels"
    share: float = 1.0

    def __post_init__(self) -> None:
        if self.every and not 1 <= self.batches < self.every:
            raise ValueError(f"a burst has 1 to {self.every - 1} of {self.every} batches")
        if not 0 < self.share <= 1:
            raise ValueError(f"the share of a burst is above 0, at most 1, not {self.share}")

    def spans(
        self, starts: Sequence[int], settled: Sequence[int], end: int
    ) -> Iterator[tuple[int, int]]:
        """Yield the first batch of each burst and the first one after it."""
        if not self.every:
            return
        for calm, following in zip(settled, [*starts[1:], end], strict=True):
            for begin in range(calm + self.every, following - self.batches, self.every):
                yield begin, begin + self.batches

    def refuse(self, labels: int) -> None:
        """Refuse an origin with so few labels that none of them can be wrong."""
        if self.every and self.kind == "labels" and labels == 1:
            raise ConfigError("a segment with one label has no wrong ones for a burst")

    def spoil(self, x: Tensor, y: Tensor, told: Sequence[int], seed: int) -> tuple[Tensor, Tensor]:
        """Return some samples of one origin as they come in a burst; `told` are its labels."""
        draws = numpy_generator(seed)
        if self.kind == "pixels":
            return noisy(x, self.share, draws), y
        return x, mislabelled(y, told, self.share, draws)


def mislabelled(y: Tensor, told: Sequence[int], share: float, draws: np.random.Generator) -> Tensor:
    """Return labels of which a share is wrong: another one of those told.

    >>> mislabelled(torch.tensor([3, 7, 7]), (3, 7), 1.0, numpy_generator(0)).tolist()
    [7, 3, 3]
    """
    known = torch.tensor(told)
    places = torch.zeros(int(known.max()) + 1, dtype=torch.int64)
    places[known] = torch.arange(len(known))
    hit = torch.from_numpy(_chosen(len(y), share, draws))
    moved = torch.from_numpy(draws.integers(1, len(known), len(y)))
    return torch.where(hit, known[(places[y] + moved) % len(known)], y)


def noisy(x: Tensor, share: float, draws: np.random.Generator) -> Tensor:
    """Return inputs of which a share of all values is drawn evenly from their whole range.

    >>> noisy(torch.zeros(1, 4, dtype=torch.uint8), 0.5, numpy_generator(0)).count_nonzero().item()
    2
    """
    flat = x.flatten(1)
    hit = torch.from_numpy(_chosen(flat.shape[1], share, draws))
    if x.dtype == torch.uint8:
        noise = torch.from_numpy(draws.integers(0, 256, flat.shape, dtype=np.uint8))
    else:
        noise = torch.from_numpy(draws.random(flat.shape)).to(x.dtype)
        noise = flat.min() + noise * (flat.max() - flat.min())
    return torch.where(hit, noise, flat).view(x.shape)


def _chosen(
    count: int, share: float, draws: np.random.Generator
) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Return which of so many are hit: exactly the share, rounded up."""
    hit = np.zeros(count, dtype=np.bool_)
    hit[draws.permutation(count)[: int(np.ceil(share * count))]] = True
    return hit
