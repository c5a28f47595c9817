"""Where recorded work reads its batch from: one place on the device, filled in one copy."""

import torch
from torch import Tensor

from tame.engine.lesson import Lesson

ALIGNMENT = 64


class Postbox:
    """One place on the device for inputs and targets, and its pinned twin on the host."""

    def __init__(self, lesson: Lesson) -> None:
        size = -(-lesson.raw.nbytes // ALIGNMENT) * ALIGNMENT
        total = size + lesson.slots.nbytes
        self._inbox = torch.zeros(total, dtype=torch.uint8, device=lesson.device)
        self._stage = torch.zeros(total, dtype=torch.uint8, pin_memory=True)
        self.raw, self.target = self._parts(self._inbox, lesson)
        self._raw, self._target = self._parts(self._stage, lesson)

    def send(self, lesson: Lesson) -> None:
        """Bring a batch to the device in one copy.

        The stage is free: the loss of the batch before was waited for, and came after its copy.
        """
        self._target.copy_(lesson.slots)
        if lesson.raw.is_cuda:
            self.target.copy_(self._target, non_blocking=True)
            self.raw.copy_(lesson.raw)
        else:
            self._raw.copy_(lesson.raw)
            self._inbox.copy_(self._stage, non_blocking=True)

    @staticmethod
    def _parts(box: Tensor, lesson: Lesson) -> tuple[Tensor, Tensor]:
        raw = box[: lesson.raw.nbytes].view(lesson.raw.dtype).view(lesson.raw.shape)
        return raw, box[-lesson.slots.nbytes :].view(lesson.slots.dtype)
