"""Where recorded work reads its batch from: one place on the device, filled in one copy."""

import torch
from torch import Tensor

from tame.engine.lesson import Lesson

ALIGNMENT = 64


class Postbox:
    """One place on the device for inputs, uniform numbers and targets, and its pinned twin."""

    def __init__(self, lesson: Lesson, numbers: int) -> None:
        self._numbers = numbers
        self._near = lesson.raw.is_cuda
        parts = (lesson.raw.nbytes, 4 * numbers * len(lesson), lesson.slots.nbytes)
        ends = [0]
        for part in parts:
            ends.append(ends[-1] + -(-part // ALIGNMENT) * ALIGNMENT)
        self._places = [
            slice(begin, begin + part) for begin, part in zip(ends, parts, strict=False)
        ]
        self._inbox = torch.zeros(ends[-1], dtype=torch.uint8, device=lesson.device)
        self._stage = torch.zeros(ends[-1], dtype=torch.uint8, pin_memory=True)
        self.raw, self.odds, self.target = self._parts(self._inbox, lesson)
        self._raw, self._odds, self._target = self._parts(self._stage, lesson)

    def send(self, lesson: Lesson, odds: Tensor | None) -> None:
        """Stage a batch, whose inputs lie where those of the first one lay.

        The stage is free: the loss of the batch before was waited for, and came after its copy.
        """
        self._target.copy_(lesson.slots)
        if self._odds is not None and odds is not None:
            self._odds.copy_(odds)
        (self.raw if self._near else self._raw).copy_(lesson.raw)

    def fetch(self) -> None:
        """Bring what is staged to the device; this can be recorded."""
        begin = self._places[1].start if self._near else 0
        self._inbox[begin:].copy_(self._stage[begin:], non_blocking=True)

    def _parts(self, box: Tensor, lesson: Lesson) -> tuple[Tensor, Tensor | None, Tensor]:
        raw, odds, target = (box[place] for place in self._places)
        shape = (self._numbers, len(lesson))
        return (
            raw.view(lesson.raw.dtype).view(lesson.raw.shape),
            odds.view(torch.float32).view(shape) if self._numbers else None,
            target.view(lesson.slots.dtype),
        )
