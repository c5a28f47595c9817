"""An endless stream: 200 segments drawn from 5 distributions; how many experts, how much memory.

    python benchmarks/detection_endless.py [--streams permuted local] [--seeds 5] [--jobs 16]
        [--rows "quorum careful features" "deviation immediate"] [--out FILE]

The embedded digits with their pixels in five orders, 100 batches of 32 a segment, or five pairs of
digits with the labels 0 and 1 in each, 60 batches a segment; a segment is never like the one
before. After every tenth segment: experts, the bytes the learner says it keeps, and the resident
memory of its process (one process a run). Flat means that the bytes after the last segment are
those after the fiftieth. A run takes some minutes; those the file holds already are not repeated.
"""

import argparse
import gc
import json
import multiprocessing
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from tame.bench.decisions import decisions
from tame.bench.episodes import Said, noticing
from tame.bench.experiment import Experiment, resolve
from tame.bench.machine import versions
from tame.types import Stream

OUT = Path("benchmarks/results/detection/endless.json")
SEGMENTS, EVERY, SETTLED = 200, 10, 50
STREAMS: dict[str, dict[str, Any]] = {
    "permuted": {"name": "permute", "segments": 5, "lengths": [100]},
    "local": {"name": "split", "classes": 2, "labels": "local", "lengths": [60]},
}
Task = tuple[str, str, int, int]


def experiment(row: str, stream: str, seed: int, segments: int) -> Experiment:
    """Return one run: a detector, a conduct and what newcomers start from, on so many segments."""
    detector, conduct, *start = row.split()
    course = {"data": "embedded", "batch": 32, "drawn": segments, **STREAMS[stream]}
    given = {"detector": detector, "conduct": conduct, "seed": seed, "stream": course}
    begun = [{"training": {"start": name}} for name in start]
    return resolve("bench/detection", [given, *begun])


def resident() -> int:
    """Return the bytes of memory this process holds."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def snapshot(learner: Any, segment: int) -> dict[str, int]:
    """Return what the learner keeps after so many segments."""
    gc.collect()
    sizes = learner.sizes()
    kept = {"model": sizes.model_bytes, "samples": sizes.sample_bytes}
    kept |= {"training": sizes.training_bytes, "resident": resident()}
    return {"segments": segment, "experts": len(learner.expert_ids), **kept}


def follow(learner: Any, stream: Stream, every: int) -> tuple[list[Said], list[dict[str, int]]]:
    """Let a learner see a whole stream; return what it said, and what it kept on the way."""
    ends = [*stream.truth().starts[1:], len(stream)]
    due = {end: place for place, end in enumerate(ends, start=1) if place % every == 0}
    said, kept = [], []
    for step, batch in enumerate(stream.batches(), start=1):
        seen = learner.observe(batch)
        said.append(Said(seen.step, str(seen.change.value), seen.expert, seen.since))
        if step in due:
            kept.append(snapshot(learner, due[step]))
    return said, kept


def growth(kept: Sequence[dict[str, int]], settled: int) -> dict[str, float]:
    """Return how much larger everything is in the end than after the settled segment.

    >>> growth([{"segments": 5, "model": 10}, {"segments": 10, "model": 15}], 5)
    {'model': 1.5}
    """
    early = next(one for one in kept if one["segments"] >= settled)
    names = [name for name in early if name not in ("segments", "experts")]
    return {name: round(kept[-1][name] / max(1, early[name]), 4) for name in names}


def run(task: Task) -> dict[str, Any]:
    """Return everything about one run."""
    row, name, seed, segments = task
    torch.set_num_threads(1)
    made = experiment(row, name, seed, segments)
    learner, stream, begun = made.learner(), made.open_stream(), time.perf_counter()
    every = min(EVERY, max(1, segments // 4))
    said, kept = follow(learner, stream, every)
    before = len(learner.expert_ids)
    done = learner.consolidate()
    truth = stream.truth()
    found = noticing(truth, said, learner.expert_ids)
    wrong = decisions(truth, said, learner.expert_ids)
    counts = ("delays", "sample_delays", "commit_delays", "commit_sample_delays")
    return {
        "row": row, "stream": name, "seed": seed, "segments": segments,
        "batches": len(stream),
        "origins": len(set(truth.origins)),
        "experts_before_consolidation": before,
        "experts": len(learner.expert_ids),
        "merged": len(done.merged),
        "longest_delay": max(found["delays"], default=None),
        **{key: value for key, value in {**found, **wrong}.items() if key not in counts},
        "growth": growth(kept, min(SETTLED, segments // 2)),
        "kept": kept,
        "seconds": round(time.perf_counter() - begun),
        "versions": versions(),
    }  # fmt: skip


def name_of(task: Task) -> str:
    """Return the name a run has in the file."""
    row, stream, seed, segments = task
    return f"{row} | {stream} | seed {seed} | {segments} segments"


def complete(tasks: Iterable[Task], jobs: int, out: Path) -> dict[str, Any]:
    """Run what the file does not hold yet, a process each, and write it after every run."""
    document: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
    document["command"] = "python benchmarks/detection_endless.py"
    waiting = [task for task in tasks if name_of(task) not in document]
    out.parent.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    with context.Pool(jobs, maxtasksperchild=1) as pool:
        for found in pool.imap_unordered(run, waiting):
            told = (found["row"], found["stream"], found["seed"], found["segments"])
            document[name_of(told)] = found
            out.write_text(json.dumps(document, indent=1) + "\n")
            print(line(found), flush=True)
    return document


def line(found: dict[str, Any]) -> str:
    """Return a run in a line of the table."""
    keys = ("row", "stream", "seed", "experts_before_consolidation", "experts", "origins")
    more = ("missed", "false_alarms", "wrong_reuse", "wrong_recruits", "seconds")
    grown = ", ".join(f"{key} x{value:g}" for key, value in found["growth"].items())
    return "| " + " | ".join(str(found[key]) for key in (*keys, *more)) + f" | {grown} |"


def main() -> None:
    """Run every row on every stream and seed, and print a line of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", nargs="*", default=list(STREAMS), choices=list(STREAMS))
    rows = ["quorum careful features", "deviation immediate"]
    parser.add_argument("--rows", nargs="*", default=rows)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--segments", type=int, default=SEGMENTS)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    tasks = [
        (row, stream, seed, options.segments)
        for seed in range(options.seeds)
        for stream in options.streams
        for row in options.rows
    ]
    complete(tasks, options.jobs, options.out)


if __name__ == "__main__":
    main()
