"""Work that can be done in any order, done by several processes of this machine."""

import os
import signal
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.reduction import ForkingPickler
from threading import Thread
from typing import Any, ClassVar

from tame.errors import ConfigError, WorldError

Work = Callable[[bytes], bytes]
Outcomes = Generator[tuple[int, bytes], None, None]


@dataclass(frozen=True)
class Processes:
    """Processes of this machine, `count` at a time (0: one for each core this one may use).

    Each computes on the processor, with as many threads as this process: what it returns is the
    same bit for bit. With few cores that is too many threads; one thread a process is best.

    >>> Processes(count=2).device
    'cpu'
    """

    device: ClassVar[str] = "cpu"

    count: int = 0

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError(f"count is 0 (all cores) or more, not {self.count}")

    def check(self) -> None:
        """Make sure that everything it needs is there: it needs nothing."""

    def each(self, work: Work, loads: Iterable[bytes]) -> Outcomes:
        """Yield the number of each load and what became of it, whichever is done first."""
        _check_sendable(work)
        count = self.count or len(os.sched_getaffinity(0))
        others = set(active_children())
        with ProcessPoolExecutor(count, get_context("spawn"), _enter) as pool:
            try:
                yield from flow(loads, lambda load: pool.submit(work, load), _first_done, count)
            except BrokenProcessPool as error:
                raise WorldError(
                    "a worker process has died, killed or out of memory; in a script of your own, "
                    "what it does must stand under: if __name__ == '__main__'"
                ) from error
            except BaseException:  # Ctrl-C, say: nobody waits for what is under way
                for child in set(active_children()) - others:
                    child.terminate()
                raise


def flow(
    loads: Iterable[bytes],
    start: Callable[[bytes], Any],
    first_done: Callable[[list[Any]], tuple[Any, bytes]],
    most: int,
) -> Outcomes:
    """Yield number and outcome of each load, with so many under way and no more in memory."""
    numbers: dict[Any, int] = {}
    for number, load in enumerate(loads):
        if len(numbers) == most:
            done, outcome = first_done(list(numbers))
            yield numbers.pop(done), outcome
        numbers[start(load)] = number
    while numbers:
        done, outcome = first_done(list(numbers))
        yield numbers.pop(done), outcome


def _first_done(under_way: list[Future[bytes]]) -> tuple[Future[bytes], bytes]:
    done = wait(under_way, return_when=FIRST_COMPLETED).done.pop()
    return done, done.result()


def _check_sendable(work: Work) -> None:
    try:
        ForkingPickler.dumps(work)
    except Exception as error:
        raise ConfigError(
            f"this learner cannot be sent to another process ({error}); a net of your own must "
            "be a function or class at the top level of a module"
        ) from error


def _enter() -> None:
    """Leave Ctrl-C to the process that started this one, and end when that one does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
