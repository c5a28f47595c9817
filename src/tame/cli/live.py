"""The live view of a run: progress, loss against threshold, the active expert, changes."""

import math
import signal
import time
from types import FrameType, TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from tame.cli.log_lines import LogLines
from tame.types import Change, Observation

PAUSE = 0.1
STOPPING = "stopping after this batch; Ctrl-C again stops now, back to the last checkpoint"
STOPPABLE = ("stream", "consolidate")  # phases that save where they are


class LiveView:
    """Shows a run in the terminal, and turns Ctrl-C into a request to stop at a safe place.

    Where there is no terminal it says once a minute, in a line, how far the run has come.
    """

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console()
        self._bars = Progress(
            TextColumn("{task.description:<24}"),
            BarColumn(bar_width=20),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TextColumn("{task.fields[note]}"),
            console=self.console,
        )
        self._bar: TaskID | None = None
        self._what = ""
        self._phase = ""
        self._stop = False
        self._total = 0
        self._shown = 0.0
        self._log = LogLines(self.console)
        self._before: Any = None

    def __enter__(self) -> Self:
        self._before = {
            number: signal.signal(number, self._on_signal)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def phase(self, name: str, total: int, done: int) -> None:
        """Begin a phase of the run."""
        self._phase = name
        if name == "stream":
            self._total = total
            self._bar = self._bars.add_task("stream", total=total, completed=done, note="")

    def step(self, seen: Observation) -> None:
        """Show one observation; a change stays on the screen."""
        if seen.change is not Change.NONE:
            self.console.print(
                f"batch {seen.step}: loss {seen.loss:.3f}{_judged(seen)}: "
                f"[bold]{seen.change}{_whom(seen.expert)}[/bold]"
            )
        if seen.restarted:
            self.console.print(f"batch {seen.step}: expert {seen.expert} never learned, restarted")
        now = time.monotonic()
        if self._bar is not None and (now - self._shown > PAUSE or seen.step + 1 == self._total):
            note = f"loss {seen.loss:.3f}{_judged(seen)}{_whom(seen.expert)}"
            self._bars.update(self._bar, completed=seen.step + 1, note=note)
            self._shown = now
            self._log.tell(lambda: f"batch {seen.step + 1} of {self._total}: {note}")

    def progress(self, what: str, done: int, total: int) -> None:
        """Show how far consolidation has come."""
        if what != self._what or self._bar is None:
            self._what = what
            self._bar = self._bars.add_task(what, total=total, note="")
        self._bars.update(self._bar, completed=done, total=total)
        self._log.tell(lambda: f"{what}: {done} of {total}")

    def stop_asked(self) -> bool:
        """Say whether somebody pressed Ctrl-C."""
        return self._stop

    def _on_signal(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 (signal's)
        if self._phase not in STOPPABLE or self._stop:
            raise KeyboardInterrupt
        self._stop = True
        self.console.print(STOPPING)


def _judged(seen: Observation) -> str:
    """Say what the detector held against its threshold, if it has one yet."""
    if not math.isfinite(seen.threshold):
        return ""
    return f", detector at {seen.smoothed:.2f} of {seen.threshold:.2f}"


def _whom(expert: int) -> str:
    return "" if expert < 0 else f" expert {expert}"
