"""Work that can be broken off in its middle: what became of it is noted, and taken up again.

A consolidation is a series of trainings that depends on nothing but what was learned before. So it
is enough to note what each has come to: done once more with these notes at hand, the series skips
what was finished, goes on where it was, and ends as if it had never been broken off.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from tame.types import State

_DONE: Final = "done"


class Journal:
    """The notes of a series of trainings, `held` from before or none.

    `due` is asked again and again whether now is a good moment to `save` all notes; saving may
    raise, and so break the series off.

    >>> saved: list[State] = []
    >>> with Journal(save=saved.append, due=lambda: True).open():
    ...     next_note().reached(lambda: {"step": 7})
    >>> with Journal(saved[-1]).open():
    ...     next_note().found
    {'step': 7}
    """

    def __init__(
        self,
        held: State | None = None,
        save: Callable[[State], None] = lambda _: None,
        due: Callable[[], bool] = lambda: False,
    ) -> None:
        self.notes: list[State] = list((held or {}).get("notes", ()))
        self.is_due = due
        self._save = save
        self._begun = 0

    @contextmanager
    def open(self) -> Iterator[None]:
        """Note everything that is done inside, from the first piece of work on."""
        self._begun = 0
        token = _PRESENT.set(self)
        try:
            yield
        finally:
            _PRESENT.reset(token)

    def begin(self) -> "Note":
        """Return the note of the next piece of work."""
        self._begun += 1
        if len(self.notes) < self._begun:
            self.notes.append({})
        return Note(self, self._begun - 1)

    def save(self) -> None:
        """Save all notes."""
        self._save({"notes": self.notes})


class Note:
    """What is noted of one piece of work; without a journal, nothing."""

    def __init__(self, journal: Journal | None = None, place: int = 0) -> None:
        self._journal = journal
        self._place = place

    @property
    def found(self) -> State:
        """What it had come to before; empty if it is begun for the first time."""
        return {} if self._journal is None else self._journal.notes[self._place]

    @property
    def is_done(self) -> bool:
        """Whether it was finished before, with what is found."""
        return bool(self.found.get(_DONE))

    def reached(self, state: Callable[[], State]) -> None:
        """Save what it has come to, if it is time to."""
        if self._journal is not None and self._journal.is_due():
            self._journal.notes[self._place] = state()
            self._journal.save()

    def finished(self, state: Callable[[], State]) -> None:
        """Remember how it ended; from now on that is saved with everything else."""
        if self._journal is not None:
            self._journal.notes[self._place] = {_DONE: True, **state()}


_PRESENT: ContextVar[Journal | None] = ContextVar("journal", default=None)


@contextmanager
def unnoted() -> Iterator[None]:
    """Do work that is noted as a whole by whoever asked for it."""
    token = _PRESENT.set(None)
    try:
        yield
    finally:
        _PRESENT.reset(token)


def next_note() -> Note:
    """Return the note of the piece of work that begins now."""
    journal = _PRESENT.get()
    return Note() if journal is None else journal.begin()
