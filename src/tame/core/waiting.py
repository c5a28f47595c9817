"""Batches that wait before they may enter a reservoir, so that whose they are can still change."""

from collections.abc import Callable, Iterator
from typing import NamedTuple, Self

from torch import Tensor

from tame.engine.lesson import Lesson
from tame.types import Reading, State

NOBODY = -1


class Waiting(NamedTuple):
    """A batch put aside: its step, its samples, who learned it, and how it read before.

    `rival` is an expert that may own some of its samples (-1: nobody), as when one world gives way
    to another; `known` says which of them it knows, once it was asked.
    """

    step: int
    raw: Tensor
    slots: Tensor
    owner: int
    rival: int = NOBODY
    loss: float = 0.0
    error: float = 0.0
    known: Tensor | None = None

    def read_as(self, reading: Reading) -> "Waiting":
        """Return it with the loss it had before anyone learned it."""
        return self._replace(loss=reading.loss, error=reading.error)

    @property
    def reading(self) -> Reading:
        """The loss it had before anyone learned it."""
        return Reading(self.loss, self.error, len(self.slots))

    @property
    def nbytes(self) -> int:
        """Its bytes."""
        known = 0 if self.known is None else self.known.nbytes
        return int(self.raw.nbytes + self.slots.nbytes + known)


class Queue:
    """The last batches that were learned, oldest first."""

    def __init__(self) -> None:
        self._waiting: list[Waiting] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Waiting]:
        return iter(self._waiting)

    def add(self, batch: Waiting) -> None:
        """Put a batch at the end."""
        self._waiting.append(batch)

    def release(self, most: int) -> list[Waiting]:
        """Return the oldest batches, those beyond the `most` newest, which stay."""
        free = max(0, len(self._waiting) - most)
        out, self._waiting = self._waiting[:free], self._waiting[free:]
        return out

    def change(self, renew: Callable[[Waiting], Waiting | None]) -> None:
        """Put what `renew` returns in place of each batch; None drops it."""
        found = [renew(batch) for batch in self._waiting]
        self._waiting = [batch for batch in found if batch is not None]

    def owned(self, owner: int) -> list[Waiting]:
        """Return the batches of one expert."""
        return [batch for batch in self._waiting if batch.owner == owner]

    def state_dict(self) -> State:
        return {"waiting": [batch._asdict() for batch in self._waiting]}

    @classmethod
    def restore(cls, state: State) -> Self:
        """Return the queue that `state_dict` described."""
        queue = cls()
        queue._waiting = [restore_waiting(kept) for kept in state["waiting"]]
        return queue


def put_aside(step: int, lesson: Lesson) -> Waiting:
    """Return a copy of a batch, which is its giver's to change, before anyone read it."""
    return Waiting(step, lesson.raw.clone(), lesson.slots.clone(), NOBODY)


def restore_waiting(kept: State) -> Waiting:
    """Return a batch from its saved form; labels stay on the host."""
    batch = Waiting(**kept)
    known = None if batch.known is None else batch.known.cpu().clone()
    return batch._replace(raw=batch.raw.clone(), slots=batch.slots.cpu().clone(), known=known)
