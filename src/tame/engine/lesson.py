"""One checked batch on its way to a network: moved and made ready when first asked for."""

from functools import cached_property
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor


class Prepare(Protocol):
    """From raw samples to what a network takes."""

    def __call__(self, raw: Tensor) -> Tensor: ...
    def prepare(self, raw: Tensor, augment: Any = None, odds: Tensor | None = None) -> Tensor:
        """Return network inputs, changed by `augment` as the uniform numbers `odds` say."""
        ...


def is_costly(step: Any) -> bool:
    """Say whether an input step is worth keeping the outcome of: it runs a network of its own."""
    return getattr(step, "trunk", None) is not None


class Lesson:
    """Raw inputs where they came from, slots on the host, how many are live, and the input step.

    >>> lesson = Lesson(torch.zeros(2, 3), torch.tensor([0, 1]), 2, torch.nn.Identity(), "cpu")
    >>> lesson.ready.shape, lesson.target
    (torch.Size([2, 3]), tensor([0, 1]))
    """

    def __init__(
        self, raw: Tensor, slots: Tensor, live: int, step: Any, device: torch.device | str
    ) -> None:
        self.raw = raw
        self.slots = slots
        self.live = live
        self.step: Prepare = step
        self.device = torch.device(device)
        self._part: tuple[int, int, Lesson] | None = None

    def __len__(self) -> int:
        return int(self.raw.shape[0])

    @cached_property
    def near(self) -> Tensor:
        """The raw inputs on the learner's device."""
        return self.raw.to(self.device)

    @cached_property
    def ready(self) -> Tensor:
        """What a network takes, unaugmented."""
        return self.step(self.near)

    def lend(self, ready: Tensor) -> None:
        """Take what a network was given from who made it ready."""
        self.__dict__.setdefault("ready", ready)

    @cached_property
    def target(self) -> Tensor:
        """The slots on the learner's device."""
        return self.slots.to(self.device)

    @cached_property
    def counts(self) -> np.ndarray:
        """How many samples each live slot has."""
        return np.bincount(self.slots.numpy(), minlength=self.live)

    def rows(self, begin: int, end: int) -> "Lesson":
        """Return some of its samples as a lesson; asked again for the same, the same one."""
        if self._part is None or self._part[:2] != (begin, end):
            raw, slots = self.raw[begin:end], self.slots[begin:end]
            part = Lesson(raw, slots, self.live, self.step, self.device)
            self._part = (begin, end, part)
        return self._part[2]

    def changed(self, augment: Any, odds: Tensor) -> Tensor:
        """Return what a network takes after a random change."""
        return self.step.prepare(self.near, augment, odds.to(self.device))
