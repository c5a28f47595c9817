"""How a network is trained on samples kept in memory."""

import math
from dataclasses import dataclass
from typing import Any, Literal

from tame.config import late, part
from tame.engine.losses import Output
from tame.engine.patches import NUMBERS
from tame.registry import AUGMENTS


@dataclass(frozen=True)
class Recipe:
    """How long and how fast to train on a fixed set of samples.

    `cutmix` is the share of images that get a patch of another one, and a share of its label.
    `precision` "auto" is bfloat16 for networks of over a million weights on a GPU, else float32;
    processors that know bfloat16 train convolutions about twice as fast in it.

    >>> round(Recipe(epochs=10, schedule="steps", milestones=(5,)).rate_at(0.7), 4)
    0.01
    """

    epochs: int = 60
    batch: int = 128
    optimiser: Literal["sgd", "adam"] = "sgd"
    rate: float = 0.1
    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float = 1e-4
    schedule: Literal["constant", "cosine", "steps"] = "cosine"
    milestones: tuple[int, ...] = ()
    decay: float = 0.1
    output: Output = "logits"
    augment: Any = part(AUGMENTS, lambda: None)
    cutmix: float = late(0.0)
    precision: Literal["auto", "float32", "bfloat16"] = late("auto")

    def __post_init__(self) -> None:
        if not 0 <= self.cutmix <= 1:
            raise ValueError(f"cutmix is a share of the samples, not {self.cutmix}")

    @property
    def numbers(self) -> tuple[int, int]:
        """How many uniform numbers a sample takes to be changed, and to be patched."""
        changing = 0 if self.augment is None else int(self.augment.numbers)
        return changing, NUMBERS if self.cutmix else 0

    def rate_at(self, progress: float) -> float:
        """Return the rate when this fraction of the training is done."""
        if self.schedule == "cosine":
            return self.rate * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
        if self.schedule == "steps":
            passed = sum(progress * self.epochs >= milestone for milestone in self.milestones)
            return self.rate * self.decay**passed
        return self.rate
