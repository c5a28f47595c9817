"""An origin: a distribution that segments are drawn from."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from tame.streams.dataset import Array, Dataset

View = Callable[[Array], Tensor]


def as_it_is(samples: Array) -> Tensor:
    """Show samples unchanged."""
    return torch.from_numpy(np.ascontiguousarray(samples))


@dataclass(frozen=True)
class Origin:
    """Which samples of a data set belong to a distribution, and how it shows them.

    `labels` are its global labels; the place of one among them is its local label. Where labels
    have another meaning here, `told` says what each of `labels` is called (empty: itself).
    """

    name: str
    data: Dataset
    train: Array
    held: Array
    labels: tuple[int, ...]
    view: View = as_it_is
    told: tuple[int, ...] = ()

    @classmethod
    def of_labels(cls, name: str, data: Dataset, labels: tuple[int, ...]) -> "Origin":
        """Return the samples of a data set that have one of these labels."""
        train = np.flatnonzero(np.isin(data.y, labels))
        return cls(name, data, train, np.flatnonzero(np.isin(data.held_y, labels)), labels)

    @classmethod
    def of_all(cls, name: str, data: Dataset, view: View = as_it_is) -> "Origin":
        """Return a whole data set, shown in some way."""
        labels = tuple(np.unique(data.y).tolist())
        return cls(name, data, np.arange(len(data.y)), np.arange(len(data.held_y)), labels, view)

    def render(self, chosen: Array, local: bool) -> tuple[Tensor, Tensor]:  # noqa: FBT001
        """Return training samples by number, and their labels."""
        return self.view(self.data.x[chosen]), self._told(self.data.y[chosen], local=local)

    def render_held(self, *, local: bool) -> tuple[Tensor, Tensor]:
        """Return the held-out samples and their labels."""
        y = self.data.held_y[self.held]
        return self.view(self.data.held_x[self.held]), self._told(y, local=local)

    @cached_property
    def _places(self) -> Array:
        places = np.zeros(max(self.labels) + 1, dtype=np.int64)
        places[list(self.labels)] = np.arange(len(self.labels))
        return places

    @cached_property
    def _meanings(self) -> Array:
        meanings = np.zeros(max(self.labels) + 1, dtype=np.int64)
        meanings[list(self.labels)] = self.told
        return meanings

    def _told(self, y: Array, *, local: bool) -> Tensor:
        called = self._meanings[y] if self.told else y
        return torch.from_numpy(self._places[called] if local else called)
