"""Lines for a log: how far a work has come, where nobody sees a table or bars move."""

import time
from collections.abc import Callable

from rich.console import Console

SILENCE = 60.0  # seconds a log may go without a line


class LogLines:
    """Prints something once a minute at most, and only where the console is no terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._told = time.monotonic()

    def tell(self, words: Callable[[], str]) -> None:
        """Print what `words` returns, if nothing was told for a while."""
        now = time.monotonic()
        if not self._console.is_terminal and now - self._told >= SILENCE:
            self._console.print(words(), markup=False, highlight=False, soft_wrap=True)
            self._told = now
