"""Local processes that work through cells: each cell in a fresh one, so that none harms another."""

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from tame.bench.experiment import from_table
from tame.bench.run import resume, start
from tame.bench.store import RunFolder
from tame.bench.sweep import DONE, FAILED, STOPPED, Audience, Task
from tame.bench.unfinished import StopRequestedError
from tame.types import Observation

GRACE = 20.0  # seconds that a worker asked to stop is given
PAUSE = 0.2
Work = Callable[[Task, Any], None]


class _Hand(NamedTuple):
    task: Task
    process: Any
    line: Connection


class LocalCrew:
    """So many processes at a time, started anew for each task; of them so many on a GPU."""

    def __init__(self, jobs: int, gpu_jobs: int = 0, work: Work | None = None) -> None:
        self._jobs = jobs
        self._gpu_jobs = gpu_jobs or jobs
        self._do = work or complete
        self._context = multiprocessing.get_context("spawn")

    def work(self, tasks: Sequence[Task], audience: Audience) -> None:
        """Work through the tasks; asked to stop, let the workers save and begin nothing new."""
        waiting, busy = deque(tasks), dict[str, _Hand]()
        try:
            while (waiting or busy) and not audience.stop_asked():
                self._employ(waiting, busy, audience)
                _listen(busy, audience)
            _ask_to_stop(busy)
            deadline = time.monotonic() + GRACE
            while busy and time.monotonic() < deadline:
                _listen(busy, audience)
        finally:
            for hand in busy.values():
                hand.process.kill()
                hand.process.join()
                audience.ended(hand.task.name, STOPPED, "stopped between two checkpoints")

    def _employ(self, waiting: deque[Task], busy: dict[str, _Hand], audience: Audience) -> None:
        while len(busy) < self._jobs and (task := self._next(waiting, busy)) is not None:
            waiting.remove(task)
            audience.begun(task.name)
            ours, theirs = self._context.Pipe()
            process = self._context.Process(target=_serve, args=(self._do, task, theirs))
            process.daemon = True
            process.start()
            theirs.close()
            busy[task.name] = _Hand(task, process, ours)

    def _next(self, waiting: deque[Task], busy: dict[str, _Hand]) -> Task | None:
        """Return the first task there is room for, on the GPU too if that is where it runs."""
        full = sum(on_gpu(hand.task) for hand in busy.values()) >= self._gpu_jobs
        return next((task for task in waiting if not (full and on_gpu(task))), None)


def on_gpu(task: Task) -> bool:
    """Say whether a task computes on a GPU."""
    return str(task.table["device"]).startswith("cuda")


def _listen(busy: dict[str, _Hand], audience: Audience) -> None:
    """Wait a moment for news, and let go of the workers that have ended."""
    lines: list[Any] = [hand.line for hand in busy.values()]
    wait([*lines, *(hand.process.sentinel for hand in busy.values())], PAUSE)
    for hand in list(busy.values()):
        if _heard(hand, audience):
            del busy[hand.task.name]


def _heard(hand: _Hand, audience: Audience) -> bool:
    """Pass on what a worker said; say whether that was its last."""
    try:
        while hand.line.poll():
            kind, *said = hand.line.recv()
            if kind == "progress":
                audience.progress(hand.task.name, *said)
            else:
                hand.process.join()
                audience.ended(hand.task.name, kind, *said)
                return True
    except (EOFError, ConnectionResetError):
        hand.process.join()
    if hand.process.is_alive():
        return False
    audience.ended(hand.task.name, FAILED, f"its process died: {_cause(hand.process.exitcode)}")
    return True


def _cause(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _ask_to_stop(busy: dict[str, _Hand]) -> None:
    for hand in busy.values():
        try:
            hand.line.send("stop")
        except OSError:
            continue  # it has just ended


def _serve(work: Work, task: Task, line: Connection) -> None:
    """Do one task in this process, telling how it gets on."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C is for the one who asks
    _die_with_parent()
    try:
        work(task, Reporter(line))
        line.send((DONE, ""))
    except StopRequestedError as stop:
        line.send((STOPPED, str(stop)))
    except BaseException:  # noqa: BLE001 (whatever goes wrong is this cell's own)
        line.send((FAILED, traceback.format_exc()))


def complete(task: Task, watcher: Any) -> None:
    """Run a cell from where it stands to its end."""
    experiment = from_table(task.table, task.table["preset"])
    if RunFolder(task.folder).config.exists():
        resume(task.folder, [], watcher)
    else:
        start(experiment, task.folder, watcher, overwrite=True)


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    sentinel = parent.sentinel

    def watch() -> None:
        wait([sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class Reporter:
    """Watches a run and says over a line how far it is; hears over it that it shall stop."""

    def __init__(self, line: Connection) -> None:
        self._line = line
        self._phase = ("stream", 0)
        self._said = 0.0
        self._stop = False

    def phase(self, name: str, total: int, done: int) -> None:
        self._phase = (name, total)
        self._say(name, done, total)

    def step(self, seen: Observation) -> None:
        if time.monotonic() - self._said > PAUSE:
            self._say(self._phase[0], seen.step + 1, self._phase[1])

    def progress(self, what: str, done: int, total: int) -> None:
        if time.monotonic() - self._said > PAUSE:
            self._say(what, done, total)
        if self._phase[0] != "consolidate" and self.stop_asked():  # there the run itself stops
            raise StopRequestedError(f"stopped while {what}")

    def stop_asked(self) -> bool:
        """Say whether the other end has said so, or is gone."""
        if not self._stop and self._line.poll():
            self._stop = True
        return self._stop

    def _say(self, phase: str, done: int, total: int) -> None:
        self._said = time.monotonic()
        self._line.send(("progress", phase, done, total))
