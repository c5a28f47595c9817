"""The runs behind the paper's tables and figures, several at a time, resumable.

    python benchmarks/paper_runs.py GROUP [GROUP ...] --data DIR --work DIR [--out DIR]
        [--jobs 2] [--device cpu] [--minutes 9] [--seeds 0,1] [--set KEY=VALUE ...]

Each job is one `tame run` in its own folder under --work; a job killed or out of time goes on with
`--resume` when the script is called again. What is finished is copied to --out (default
benchmarks/results/paper): NAME-seedN.json, and NAME-seedN.events.jsonl.gz where a figure needs it.
"""

import argparse
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import variants

QUICK = (
    "selector.training.epochs=5",
    "selector.retraining.epochs=1",
    "pruner.retraining.epochs=5",
)
LOGITS = ("training.output=logits", "training.rate=0.02")
TWICE = "stream.order=[0,1,2,3,4,0,1,2,3,4]"
RETURN = "stream.order=[0,1,2,1,3]"


@dataclass(frozen=True)
class Job:
    """One run: what it is called, its preset, what is changed, and whether its events are kept."""

    name: str
    preset: str
    seed: int
    changes: tuple[str, ...] = ()
    trace: bool = False

    @property
    def title(self) -> str:
        """The name of its files."""
        return f"{self.name}-seed{self.seed}"


def runs(name: str, seeds: int, preset: str, *changes: str, traced: int = 0) -> list[Job]:
    """Return the same run over seeds; the first `traced` keep their events."""
    return [Job(name, f"paper/{preset}", s, changes, s < traced) for s in range(seeds)]


GROUPS = {
    "split-mnist": runs("split-mnist", 10, "split-mnist", traced=1),
    "split-mnist-global": runs("split-mnist-global", 10, "split-mnist-global"),
    "split-mnist-gap": [
        *runs("split-mnist.balanced", 5, "split-mnist", "selector.each=250"),
        *runs("split-mnist.unpruned-experts", 5, "split-mnist", "pruner.sparsity=0"),
        *runs("split-mnist.unpruned-selector", 5, "split-mnist", "selector.sparsity=0"),
    ],
    "returns": [
        *runs("returns-twice", 10, "split-mnist", TWICE, *QUICK, traced=1),
        *runs("returns-t2", 10, "split-mnist", RETURN, *QUICK, traced=1),
    ],
    "smoothing": [
        *runs(
            "split-mnist.unsmoothed", 5, "split-mnist", "detector.smoothing=1.0", *QUICK, traced=1
        ),
    ],
    "permuted-mnist": runs("permuted-mnist", 3, "permuted-mnist", traced=1),
    "permuted-mnist-gap": [
        *runs("permuted-mnist.balanced", 3, "permuted-mnist", "selector.each=25"),
        *runs("permuted-mnist.unpruned-experts", 3, "permuted-mnist", "pruner.sparsity=0"),
        *runs("permuted-mnist.unpruned-selector", 3, "permuted-mnist", "selector.sparsity=0"),
    ],
    "svhn-mnist": runs("svhn-mnist", 3, "svhn-mnist"),
    "mnist-svhn": runs("mnist-svhn", 3, "mnist-svhn"),
    "svhn-mnist-one-norm": runs("svhn-mnist-one-norm", 3, "svhn-mnist-one-norm"),
    "mnist-svhn-one-norm": runs("mnist-svhn-one-norm", 3, "mnist-svhn-one-norm"),
    "svhn-mnist-gap": [
        *runs("svhn-mnist.unpruned-experts", 3, "svhn-mnist", "pruner.sparsity=0"),
        *runs("svhn-mnist.logits-unpruned", 3, "svhn-mnist", "pruner.sparsity=0", *LOGITS),
    ],
    "mnist-svhn-gap": [
        *runs("mnist-svhn.unpruned-experts", 3, "mnist-svhn", "pruner.sparsity=0"),
        *runs("mnist-svhn.logits-unpruned", 3, "mnist-svhn", "pruner.sparsity=0", *LOGITS),
    ],
    "split-cifar100-20": runs("split-cifar100-20", 3, "split-cifar100-20", traced=1),
    "split-cifar100-20-global": runs("split-cifar100-20-global", 1, "split-cifar100-20-global"),
    "split-cifar100-10": runs("split-cifar100-10", 3, "split-cifar100-10"),
    "split-cifar10-5": runs("split-cifar10-5", 3, "split-cifar10-5"),
}


def command(job: Job, folder: Path, options: argparse.Namespace) -> list[str]:
    """Return the command line that starts or resumes a job."""
    line = [sys.executable, "-m", "tame", "run", "--out", str(folder), "--data", str(options.data)]
    if (folder / "run.toml").exists():
        return [*line, "--resume"]
    line += [job.preset, "--seed", str(job.seed), "--device", options.device]
    for change in (*job.changes, *options.set):
        line += ["--set", change]
    return line


def collect(job: Job, folder: Path, options: argparse.Namespace) -> None:
    """Copy what a finished run is remembered by."""
    out, result = options.out, json.loads((folder / "result.json").read_text())
    result["name"], result["changes"] = job.name, [*job.changes, *variants.told(options.set)]
    (out / f"{job.title}.json").write_text(json.dumps(result, indent=1) + "\n")
    if job.trace:
        packed = gzip.compress((folder / "events.jsonl").read_bytes(), mtime=0)
        (out / f"{job.title}.events.jsonl.gz").write_bytes(packed)


def work_through(jobs: list[Job], options: argparse.Namespace) -> int:
    """Run the jobs, so many at a time, until they are done or time is up; return those left."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    deadline = time.monotonic() + 60 * options.minutes
    waiting = [job for job in jobs if not (options.out / f"{job.title}.json").exists()]
    running: list[tuple[Job, Path, subprocess.Popen[bytes]]] = []
    while (waiting or running) and time.monotonic() < deadline:
        while waiting and len(running) < options.jobs:
            job = waiting.pop(0)
            folder = options.work / job.title
            folder.parent.mkdir(parents=True, exist_ok=True)
            log = (options.work / f"{job.title}.log").open("ab")
            line = command(job, folder, options)
            process = subprocess.Popen(line, stdout=log, stderr=log, env=environment)
            running.append((job, folder, process))
        time.sleep(0.5)
        running = [entry for entry in running if not settled(*entry, options)]
    for _, _, process in running:
        process.send_signal(signal.SIGINT)
    for _, _, process in running:
        process.wait()
    return len(waiting) + len(running)


def settled(
    job: Job, folder: Path, process: "subprocess.Popen[bytes]", options: argparse.Namespace
) -> bool:
    """Say whether a job has ended, and collect what it made."""
    if process.poll() is None:
        return False
    if process.returncode == 0:
        collect(job, folder, options)
    print(
        f"{job.title}: {'done' if process.returncode == 0 else 'FAILED, see its log'}", flush=True
    )
    return True


def main() -> None:
    """Run the named groups."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="+", choices=GROUPS)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/paper"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--seeds", help="only these of each group's seeds, by commas")
    parser.add_argument("--set", action="append", default=[], help="where weights lie, say")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    jobs = [job for group in options.groups for job in GROUPS[group]]
    if options.seeds:
        jobs = [job for job in jobs if str(job.seed) in options.seeds.split(",")]
    left = work_through(jobs, options)
    print(f"{left} left")


if __name__ == "__main__":
    main()
