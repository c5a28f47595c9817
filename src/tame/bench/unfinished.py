"""A consolidation under way: what it has come to lies beside the checkpoint until it is done."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tame.checkpoint import read, write
from tame.engine.journal import Journal
from tame.errors import CheckpointError, RunError
from tame.types import Progress, State


class StopRequestedError(RunError):
    """The run was asked to stop and can go on later."""


class Unfinished:
    """Saves a consolidation now and then, and at once where it is asked to stop, which ends it.

    One that was stopped or killed before goes on from its file. Without a file (where several
    ranks share the work) it can be stopped, and is begun anew; so is one that trains in a way of
    its own, which is stopped where it tells how far it has come. `spent` is how many seconds went
    into it before.
    """

    def __init__(self, path: Path | None, every: float, stop_asked: Callable[[], bool]) -> None:
        self._path = path
        self._every = every
        self._stop_asked = stop_asked
        self._begun = self._saved = time.monotonic()
        self.spent = 0.0
        self._stopping = False
        self._journal = Journal()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Note the trainings done inside."""
        held = None
        if self._path is not None and self._path.exists():
            try:
                header, held = read(self._path)
            except CheckpointError as error:
                raise RunError(f"{error}; without this file consolidation begins anew") from error
            self.spent = float(header["seconds"])
        self._journal = Journal(held, self._save, self._is_due)
        with self._journal.open():
            yield

    def watched(self, progress: Progress) -> Progress:
        """Return a progress that also stops work of which nothing is noted."""

        def say(what: str, done: int, total: int) -> None:
            progress(what, done, total)
            if not self._journal.notes and self._stop_asked():
                raise StopRequestedError("stopped while consolidating")

        return say

    def _is_due(self) -> bool:
        self._stopping = self._stop_asked()
        late = self._path is not None and time.monotonic() - self._saved > self._every
        return late or self._stopping

    def _save(self, notes: State) -> None:
        if self._path is not None:
            seconds = self.spent + time.monotonic() - self._begun
            write(self._path, {"seconds": seconds}, notes)
        self._saved = time.monotonic()
        if self._stopping:
            raise StopRequestedError("stopped while consolidating")
