"""Cells on a Ray cluster: a worker or node that dies costs its cell's work, which is done again.

A cell runs in a folder of its node's own and comes back whole, so that nodes need not share a file
system; they need this package, and the data under the same `TAME_DATA`.
"""

import os
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tame.bench.crew import complete, on_gpu
from tame.bench.run import Unwatched
from tame.bench.store import RunFolder
from tame.bench.sweep import DONE, FAILED, STOPPED, Audience, Task
from tame.errors import RunError

RETRIES = 3  # of a cell whose worker or node died
PAUSE = 0.5
Files = dict[str, bytes]


class RayCrew:
    """The workers of a cluster at an address, or of one started here for the time of the grid."""

    def __init__(self, address: str | None = None) -> None:
        try:
            import ray
        except ImportError as error:
            raise RunError("--ray needs the package ray: pip install 'tame[ray]'") from error
        self._ray = ray
        self._address = address

    def work(self, tasks: Sequence[Task], audience: Audience) -> None:
        """Send every task at once; Ray gives each to a worker with a free processor."""
        own = not self._ray.is_initialized()
        if own:
            self._ray.init(address=self._address, log_to_driver=False, include_dashboard=None)
        try:
            self._gather({self._send(task, audience): task for task in tasks}, audience)
        finally:
            if own:
                self._ray.shutdown()

    def _send(self, task: Task, audience: Audience) -> Any:
        remote = self._ray.remote(num_cpus=1, num_gpus=int(on_gpu(task)), max_retries=RETRIES)(
            run_cell
        )
        audience.begun(task.name)
        audience.progress(task.name, "sent to the cluster", 0, 0)
        return remote.remote(task, _files(Path(task.folder)), os.environ.get("TAME_DATA"))

    def _gather(self, pending: dict[Any, Task], audience: Audience) -> None:
        while pending:
            ready, _ = self._ray.wait(list(pending), timeout=PAUSE)
            for reference in ready:
                self._receive(reference, pending.pop(reference), audience)
            if audience.stop_asked():
                for reference, task in pending.items():
                    self._ray.cancel(reference, force=True)
                    audience.ended(task.name, STOPPED, "stopped; its work on the cluster is lost")
                return

    def _receive(self, reference: Any, task: Task, audience: Audience) -> None:
        try:
            outcome, why, files = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            audience.ended(task.name, FAILED, f"lost {RETRIES + 1} times on the cluster: {error}")
            return
        _unpack(files, RunFolder(task.folder))
        audience.ended(task.name, outcome, why)


def run_cell(task: Task, files: Files, data: str | None) -> tuple[str, str, Files]:
    """Run a cell on this node, from the files it has come with, and return what it left."""
    if data is not None:
        os.environ["TAME_DATA"] = data
    with tempfile.TemporaryDirectory() as folder:
        place = RunFolder(folder)
        _unpack(files, place)
        try:
            complete(task._replace(folder=folder), Unwatched())
        except Exception:  # noqa: BLE001 (whatever goes wrong is this cell's own)
            return FAILED, traceback.format_exc(), _files(place.path)
        return DONE, "", _files(place.path)


def _files(folder: Path) -> Files:
    return {path.name: path.read_bytes() for path in folder.glob("*") if path.is_file()}


def _unpack(files: Files, folder: RunFolder) -> None:
    """Write files whole, the result last: only then is the cell done."""
    folder.path.mkdir(parents=True, exist_ok=True)
    for name in sorted(files, key=lambda name: name == folder.result.name):
        partial = folder.path / f"{name}.partial"
        partial.write_bytes(files[name])
        partial.replace(folder.path / name)
