"""Kill -9 a run at chosen moments, resume it, and compare it with one that was never stopped.

    python benchmarks/kills.py [--out benchmarks/results/kills.json] [--full]

Twenty kills: 3 before the first checkpoint, 5 during consolidation, 3 during the write of a
checkpoint, 9 at random moments. After each, `--resume` must give the same `result.json` (but for
times), the same bytes of `events.jsonl` and the same state in `model.tame`, every bit of it.
`--full` runs the packaged preset as it is; else a shorter form of it, so that more of the time is
spent in the phases that matter.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tame.checkpoint import PARTIAL, read
from tame.checks.failure import difference
from tame.errors import CheckpointError

SHORT = (
    "stream.passes=4",
    "selector.memory=600",
    "selector.training.epochs=8",
    "pruner.memory=200",
    "pruner.retraining.epochs=8",
)
PLAN = {"before the first checkpoint": 3, "consolidation": 5, "checkpoint write": 3, "random": 9}
PATIENCE = 300.0
MEANT = {"before the first checkpoint": "no checkpoint", "consolidation": "consolidate"}
HASTE = (1.0, 4.0, 1000.0)  # a run may be faster than the reference was; the last kills at once
Moment = Callable[[Path, float], bool]


def command(folder: Path, settings: tuple[str, ...], *, resume: bool = False) -> list[str]:
    """Return the command line of a run."""
    line = [sys.executable, "-m", "tame", "run", "--out", str(folder)]
    if resume:
        return [*line, "--resume"]
    for setting in (*settings, "run.checkpoint_seconds=0.2"):
        line += ["--set", setting]
    return line


def when_killed(folder: Path, settings: tuple[str, ...], moment: Moment, haste: float) -> bool:
    """Start a run and kill it at the moment; return False if it ended first.

    With `haste` the moment is told that more time was spent than was.
    """
    shutil.rmtree(folder, ignore_errors=True)
    process = subprocess.Popen(
        command(folder, settings), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    begun = time.monotonic()
    while process.poll() is None:
        spent = time.monotonic() - begun
        if moment(folder, haste * spent) or spent > PATIENCE:
            process.kill()
            process.wait()
            return True
        time.sleep(0.0005)
    return False


def before_first(folder: Path, spent: float) -> bool:
    """Events are being written, and no checkpoint exists."""
    del spent
    return (folder / "events.jsonl").exists() and not (folder / "model.tame").exists()


def writing(count: int) -> Moment:
    """Return a moment: the `count`-th distinct time that a partial checkpoint is seen."""
    seen = {"now": False, "times": 0}

    def moment(folder: Path, spent: float) -> bool:
        del spent
        there = any(folder.glob(f"model.tame*{PARTIAL}"))
        seen["times"] += there and not seen["now"]
        seen["now"] = there
        return there and seen["times"] >= count

    return moment


def consolidating(after: float) -> Moment:
    """Return a moment: so many seconds after the checkpoint that precedes consolidation."""
    begun: list[float] = []

    def moment(folder: Path, spent: float) -> bool:
        if not begun and phase(folder) == "consolidate":
            begun.append(spent)
        return bool(begun) and spent - begun[0] >= after

    return moment


def at(when: float) -> Moment:
    """Return a moment: so many seconds after the start."""
    return lambda _, spent: spent >= when


def phase(folder: Path) -> str:
    """Return the phase the folder's checkpoint stands in."""
    try:
        return str(read(folder / "model.tame")[0]["run"]["phase"])
    except CheckpointError:
        return ""


def resume_and_compare(folder: Path, reference: Path) -> str:
    """Finish a killed run; return what differs from the reference, or nothing."""
    done = subprocess.run(
        command(folder, (), resume=True), capture_output=True, text=True, check=False
    )
    if done.returncode:
        return f"resume failed: {done.stderr[-500:]}"
    if (folder / "events.jsonl").read_bytes() != (reference / "events.jsonl").read_bytes():
        return "events.jsonl differs"
    results = [json.loads((place / "result.json").read_text()) for place in (folder, reference)]
    for result in results:
        result.pop("seconds")
    if results[0] != results[1]:
        return "result.json differs"
    documents = [read(place / "model.tame") for place in (folder, reference)]
    return difference(documents[0][1], documents[1][1]) or ""


def moments(
    plan: dict[str, int], seconds: dict[str, float]
) -> list[tuple[str, Callable[[], Moment]]]:
    """Return how to make the planned moments, times drawn from what the reference run took."""
    draws = random.Random(0)  # noqa: S311 (a schedule, not a secret)
    found: list[tuple[str, Callable[[], Moment]]] = []
    for kind, count in plan.items():
        for number in range(count):
            if kind == "before the first checkpoint":
                found.append((kind, lambda: before_first))
            elif kind == "consolidation":
                after = draws.uniform(0.05, 0.9) * seconds["consolidate"]
                found.append((kind, partial(consolidating, after)))
            elif kind == "checkpoint write":
                found.append((kind, partial(writing, number + 1)))
            else:
                found.append((kind, partial(at, draws.uniform(0.3, 0.95) * seconds["wall"])))
    return found


def trial(plan: dict[str, int], settings: tuple[str, ...], root: Path) -> list[dict[str, Any]]:
    """Run the reference, then every kill; return a row each."""
    reference = root / "reference"
    begun = time.monotonic()
    subprocess.run(command(reference, settings), check=True, stdout=subprocess.DEVNULL)
    seconds = json.loads((reference / "result.json").read_text())["seconds"]
    seconds["wall"] = time.monotonic() - begun
    rows = []
    for number, (kind, make) in enumerate(moments(plan, seconds)):
        folder = root / f"kill-{number}"
        killed, state = False, ""
        for haste in HASTE:
            killed = when_killed(folder, settings, make(), haste)
            state = phase(folder) or "no checkpoint"
            if killed and state == MEANT.get(kind, state):
                break
        noted = (folder / "consolidation.tame").exists()
        problem = resume_and_compare(folder, reference) if killed else "ended before the kill"
        told = {"kind": kind, "killed_in": state, "goes_on_in_a_training": noted}
        rows.append({**told, "equal": not problem, "problem": problem})
        shutil.rmtree(folder)
    return rows


def main() -> None:
    """Run the trial and write its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/kills.json"))
    parser.add_argument("--full", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = trial(PLAN, () if options.full else SHORT, Path(folder))
    equal = sum(row["equal"] for row in rows)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"equal": equal, "of": len(rows), "kills": rows}, indent=1))
    for row in rows:
        print(row)
    print(f"{equal} of {len(rows)} equal to the run never stopped: {options.out}")
    sys.exit(equal != len(rows))


if __name__ == "__main__":
    main()
