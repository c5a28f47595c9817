"""The project's own errors: each says what came and what would do."""

import difflib
from collections.abc import Iterable


class TameError(Exception):
    """Anything this package refuses to do."""


class InputError(TameError, ValueError):
    """A batch or sample that cannot be learned from or predicted; nothing was changed."""


class ConfigError(TameError, ValueError):
    """A setting, preset or name that does not exist or does not fit."""


class DataError(TameError):
    """A data set that is not there, not whole, or not what it says it is."""


class CheckpointError(TameError):
    """A file that is not a readable checkpoint of this version."""


class StorageError(TameError, OSError):
    """A file that could not be written; what was there before is untouched."""


class RunError(TameError):
    """A run folder that cannot be started, resumed or read."""


class WorldError(TameError):
    """Processes that should work together and do not: one is gone, late, or somewhere else."""


def suggest(name: str, known: Iterable[str]) -> str:
    """Return the tail of an error message that helps a mistyped name along.

    >>> suggest("finetun", ["tame", "finetune"])
    "; did you mean 'finetune'?"
    """
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; known: {', '.join(known)}" if known else ""
