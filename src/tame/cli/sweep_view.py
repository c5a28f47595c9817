"""The live view of a grid: how many cells are done, and what each worker is at."""

import math
import signal
import time
from types import FrameType, TracebackType
from typing import Any, Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

from tame.cli.log_lines import LogLines

PAUSE = 0.2
_SIGNS = {"done": "[green]done[/green]", "failed": "[red]failed[/red]", "stopped": "stopped"}


class SweepView:
    """Shows a grid in the terminal; Ctrl-C, or time running out, is a request to stop.

    Where there is no terminal it says once a minute how far the cells at work have come.
    """

    def __init__(
        self, names: list[str], console: Console | None = None, minutes: float = 0.0
    ) -> None:
        self.console = console or Console()
        self._total = len(names)
        self._at: dict[str, tuple[str, int, int]] = {}
        self._since: dict[str, float] = {}
        self._counts = dict.fromkeys(_SIGNS, 0)
        self._stop = False
        self._deadline = time.monotonic() + 60 * minutes if minutes else math.inf
        self._shown = 0.0
        self._log = LogLines(self.console)
        self._live = Live(self._table(), console=self.console, auto_refresh=False, transient=True)
        self._before: Any = None

    def __enter__(self) -> Self:
        numbers = (signal.SIGINT, signal.SIGTERM)
        self._before = {number: signal.signal(number, self._on_signal) for number in numbers}
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def begun(self, name: str) -> None:
        """Show a cell among those at work."""
        self._at[name] = ("starting", 0, 0)
        self._since[name] = time.monotonic()
        self._show()

    def progress(self, name: str, phase: str, done: int, total: int) -> None:
        """Show how far a cell is."""
        self._at[name] = (phase, done, total)
        self._show()

    def ended(self, name: str, outcome: str, why: str) -> None:
        """Say what became of a cell; that line stays."""
        self._at.pop(name, None)
        self._counts[outcome] += 1
        spent = time.monotonic() - self._since.pop(name, time.monotonic())
        last = why.strip().splitlines()[-1] if outcome == "failed" and why.strip() else ""
        self.console.print(f"{_SIGNS[outcome]} {name} ({spent:.0f} s)")
        if last:
            self.console.print(f"  {last}", markup=False, highlight=False)
        self._show(now=True)

    def stop_asked(self) -> bool:
        """Say whether somebody pressed Ctrl-C, or time is up."""
        return self._stop or self.time_is_up

    @property
    def time_is_up(self) -> bool:
        """Whether the minutes given are over."""
        return time.monotonic() > self._deadline

    def _show(self, *, now: bool = False) -> None:
        if now or time.monotonic() - self._shown > PAUSE:
            self._shown = time.monotonic()
            self._live.update(self._table(), refresh=True)
        self._log.tell(lambda: "\n  ".join([self._summary, *map(self._place, self._at)]))

    @property
    def _summary(self) -> str:
        ended = ", ".join(f"{count} {what}" for what, count in self._counts.items() if count)
        return f"{self._total} cells: {ended or 'none ended yet'}"

    def _place(self, name: str) -> str:
        phase, done, total = self._at[name]
        return f"{name}: {phase} {done}/{total}" if total else f"{name}: {phase}"

    def _table(self) -> Table:
        table = Table(title=self._summary, title_justify="left")
        table.add_column("cell")
        table.add_column("at")
        table.add_column("", justify="right")
        for name, (phase, done, total) in self._at.items():
            table.add_row(name, phase, f"{done}/{total}" if total else "")
        return table

    def _on_signal(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 (signal's)
        if self._stop:
            raise KeyboardInterrupt
        self._stop = True
        self.console.print("stopping: cells at work save where they are")
