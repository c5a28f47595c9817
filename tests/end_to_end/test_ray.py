"""A grid on a Ray cluster of two nodes, one of whose workers is killed."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from test_bench import results, write_grid

from tame.bench.grid import read_grid
from tame.bench.sweep import sweep

pytest.importorskip("ray", reason="ray is not installed: pip install 'tame[ray]'")
pytestmark = pytest.mark.filterwarnings("ignore")


class Quiet:
    """Notes how cells end."""

    def __init__(self) -> None:
        self.endings = {}

    def begun(self, name): ...
    def progress(self, name, phase, done, total): ...
    def ended(self, name, outcome, why):
        self.endings[name] = (outcome, why)

    def stop_asked(self):
        return False


def worker_of_ours():
    """Return the process id of a worker that runs a cell for this process's own cluster."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                title = (folder / "cmdline").read_bytes()
                if title.startswith(b"ray::run_cell") and descends(int(folder.name)):
                    return int(folder.name)
            except OSError:
                continue
    return None


def descends(pid: int) -> bool:
    while pid > 1 and pid != os.getpid():
        stat = Path(f"/proc/{pid}/stat").read_text()
        pid = int(stat.rpartition(")")[2].split()[1])
    return pid == os.getpid()


def kill_one(killed: list[int], until: float) -> None:
    while not killed and time.monotonic() < until:
        pid = worker_of_ours()
        if pid is not None:
            time.sleep(1.0)  # let it begin its cell
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
        time.sleep(0.05)


def test_a_killed_worker_costs_its_cells_work_only(tmp_path):
    import ray
    from ray.cluster_utils import Cluster

    from tame.bench.cluster import RayCrew

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)
    try:
        killed: list[int] = []
        killer = threading.Thread(target=kill_one, args=(killed, time.monotonic() + 240))
        killer.start()
        grid = read_grid(str(write_grid(tmp_path, "finetune")))
        audience = Quiet()
        found = sweep(grid, tmp_path / "out", RayCrew(cluster.address), audience)
        killer.join()
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert len(killed) == 1
    assert [outcome for outcome, _ in audience.endings.values()] == ["done", "done"]
    assert len(found.finished) == len(results(tmp_path / "out")) == 2
