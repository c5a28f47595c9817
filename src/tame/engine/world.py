"""Several processes that learn one stream together: who takes part, and how they talk.

torchrun starts the processes and tells each its rank; `join` connects them. What the hosts say to
each other goes over gloo, what lies on GPUs over nccl. Nobody waits for ever: a rank that is gone
or late is a `WorldError` on the others.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tame.engine.randomness import derive
from tame.errors import WorldError

TIMEOUT = "TAME_TIMEOUT"
SECONDS = 1800.0
PLACE = re.compile(r"^\[[^\]]*\]\s*")  # in torch's sources, before its message
MEETING = ("MASTER_ADDR", "MASTER_PORT", "RANK")


class Share(NamedTuple):
    """The rows of a batch one rank computes, and how many ranks compute the same ones."""

    begin: int
    end: int
    rows: int
    copies: int = 1


@dataclass(frozen=True)
class World:
    """The ranks that work together; alone it is one, and talks to nobody.

    >>> World().share(5), World(rank=1, size=2).share(5)[:2]
    (Share(begin=0, end=5, rows=5, copies=1), (2, 5))
    """

    rank: int = 0
    size: int = 1
    place: int = 0
    patience: float = SECONDS
    swift: Any = None  # the group that carries what lies on GPUs

    @property
    def first(self) -> bool:
        """Whether this is the rank that writes files and shows progress."""
        return self.rank == 0

    def device(self, name: str) -> str:
        """Return a device's name on this machine: each rank has a GPU of its own."""
        return f"cuda:{self.place}" if name == "cuda" and self.size > 1 else name

    def takes(self, number: int) -> bool:
        """Say whether this rank does one of many pieces of work, dealt out in turn."""
        return number % self.size == self.rank

    def share(self, count: int, rank: int | None = None) -> Share:
        """Return a rank's rows of a batch; one of fewer rows than ranks is not divided."""
        if count < self.size:
            return Share(0, count, count, self.size)
        rank = self.rank if rank is None else rank
        return Share(rank * count // self.size, (rank + 1) * count // self.size, count)

    def gather(self, values: Tensor) -> list[Tensor]:
        """Return what each rank has, all of the same form and on the host."""
        parts = [torch.empty_like(values) for _ in range(self.size)]
        self._talk(lambda talk: talk.all_gather(parts, values))
        return parts

    def add_up(self, values: Tensor) -> Tensor:
        """Replace values by their sum over the ranks, the same bits on each."""
        group = self.swift if values.is_cuda else None
        self._talk(lambda talk: talk.all_reduce(values, group=group))
        return values

    def anyone(self, flag: bool) -> bool:  # noqa: FBT001 (it is the message)
        """Return on all ranks whether one of them says so."""
        return flag if self.size == 1 else bool(self.add_up(torch.tensor([int(flag)])))

    def as_first(self, values: Tensor) -> Tensor:
        """Replace values on the host by those the first rank has, and return them."""
        if self.size > 1:
            self._talk(lambda talk: talk.broadcast(values, src=0))
        return values

    def exchange(self, data: bytes) -> list[bytes]:
        """Return what each rank has to say, at any length."""
        lengths = [int(length) for length in self.gather(torch.tensor([len(data)]))]
        box = np.zeros(max(1, *lengths), dtype=np.uint8)
        box[: len(data)] = np.frombuffer(data, dtype=np.uint8)
        parts = self.gather(torch.from_numpy(box))
        pairs = zip(parts, lengths, strict=True)
        return [part[:length].numpy().tobytes() for part, length in pairs]

    def agree(self, text: str, otherwise: str) -> None:
        """Make sure that every rank has the same text."""
        if self.size > 1:
            own = torch.tensor([derive(0, text)])
            if not all(torch.equal(own, other) for other in self.gather(own)):
                raise WorldError(f"rank {self.rank} of {self.size}: {otherwise}")

    def connect(self, name: str) -> None:
        """Find the other ranks; a name is used once, since what was left under it stays there."""
        wait = timedelta(seconds=self.patience)

        def meet(talk: Any) -> None:
            store, _, _ = next(talk.rendezvous("env://", self.rank, self.size, timeout=wait))
            own = talk.PrefixStore(name, store)
            own.set_timeout(wait)
            talk.init_process_group(
                "gloo", store=own, rank=self.rank, world_size=self.size, timeout=wait
            )

        self._talk(meet)

    def _talk(self, speak: Callable[[Any], object]) -> None:
        import torch.distributed as talk

        try:
            speak(talk)
        except (RuntimeError, ValueError) as error:
            raise WorldError(
                f"rank {self.rank} of {self.size} lost the others: one has failed or left, or kept "
                f"it waiting for more than {self.patience:g} seconds ({TIMEOUT}): "
                f"{PLACE.sub('', str(error)).split('. ')[0]}"
            ) from error


ALONE = World()
_meetings = count()
_current: ContextVar[World] = ContextVar("world", default=ALONE)


def current() -> World:
    """Return the world this process has joined; alone if none.

    >>> current().size
    1
    """
    return _current.get()


def rank() -> int:
    """Return the rank torchrun gave this process; 0 without torchrun."""
    return _whole("RANK")


def ranks() -> int:
    """Return how many processes torchrun has started; 1 without torchrun."""
    return _whole("WORLD_SIZE", 1)


@contextmanager
def join(device: str = "cpu") -> Iterator[World]:
    """Take part in the world torchrun has started; without torchrun, be alone.

    Learners made inside are divided over its ranks: each must be given the same batches there.
    `device` is where they will compute, "cpu" or "cuda".

    >>> with join() as world:
    ...     world.size, world.first
    (1, True)
    """
    size = ranks()
    if size == 1 or current().size > 1:
        yield current()
        return
    world = _start(size, device)
    token = _current.set(world)
    try:
        yield world
    finally:
        _current.reset(token)
        torch.distributed.destroy_process_group()


def _start(size: int, device: str) -> World:
    import torch.distributed as talk

    missing = [name for name in MEETING if name not in os.environ]
    if missing:
        raise WorldError(f"WORLD_SIZE is {size}, but {missing[0]} is not set; start with torchrun")
    if talk.is_initialized():
        raise WorldError("torch.distributed is in use already; let tame's join start it")
    place, patience = _whole("LOCAL_RANK"), _seconds()
    if device != "cpu":
        _take_gpu(place, device)
    world = World(rank(), size, place, patience)
    world.connect(f"tame {next(_meetings)}")
    if device == "cpu":
        return world
    wait = timedelta(seconds=patience)
    return replace(world, swift=talk.new_group(backend="nccl", timeout=wait))


def _take_gpu(place: int, device: str) -> None:
    """Choose this rank's GPU; errors of nccl are raised where they happen, not in a thread."""
    if device != "cuda":
        raise WorldError(f"several ranks compute on 'cpu' or on 'cuda', a GPU each, not {device!r}")
    if place >= torch.cuda.device_count():
        raise WorldError(
            f"rank {rank()} has no GPU of its own: {torch.cuda.device_count()} here, "
            f"and it is number {place}; start fewer ranks, or use the device cpu"
        )
    os.environ.setdefault("TORCH_NCCL_BLOCKING_WAIT", "1")
    torch.cuda.set_device(place)


def _seconds() -> float:
    given = os.environ.get(TIMEOUT, str(SECONDS))
    try:
        seconds = float(given)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise WorldError(f"{TIMEOUT} is a number of seconds above 0, not {given!r}")
    return seconds


def _whole(name: str, otherwise: int = 0) -> int:
    given = os.environ.get(name, str(otherwise))
    if not given.isdecimal():
        raise WorldError(f"{name} is a whole number, 0 or more, not {given!r}")
    return int(given)
