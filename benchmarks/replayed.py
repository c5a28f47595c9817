"""Whether a preset over a frozen trunk learns today what it learned when its kept cells were made.

    git worktree add --detach BEFORE COMMIT          # one for each source that cells were made by
    python benchmarks/features.py PRESET FOLDER --data DIR
    python benchmarks/replayed.py PRESET FOLDER --before BEFORE [--before ...] [--cells DIR]
        [--seeds 0 1 2] [--jobs 1] [--out FILE]

Each seed's stream is learned twice from what the trunk sees, by today's source and by the one its
cell names, and all tensors of the two learners are compared: experts, their samples, statistics,
and the selector's reservoir with the expert of every sample. What is left of the preset is a
network trained on that reservoir. Figures of detection are held against the cell's, too. A job is
two processes; runs the file holds already are not repeated. Samples are features here and coded
images in the preset.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open

from tame.bench.experiment import resolve
from tame.bench.harvest import rounded
from tame.bench.machine import hardware, source, versions

HERE = Path(__file__).parent
OUT = HERE / "results" / "detection" / "replayed.json"
CELLS = HERE / "results" / "grids" / "headline"
NOW = HERE.parent
DIGEST = "from tame.bench.machine import source; print(source())"
FIGURES = ("experts", "detection", "expert_agreement", "merged")


@dataclass(frozen=True)
class Replay:
    """One seed of a preset, on features in a folder, against the cell that was kept."""

    preset: str
    features: Path
    seed: int
    cell: Path

    def settings(self) -> list[str]:
        """Return what differs from `cifar100-features.toml`."""
        made = resolve(self.preset, [])
        memory = made.settings.selector.memory
        changed = {"stream.data": f"files:{self.features}", "stream.classes": made.stream.classes}
        changed |= {"selector.memory": memory}
        return [word for key, value in changed.items() for word in ("--set", f"{key}={value}")]


def python(root: Path, *words: str) -> str:
    """Run Python on the source in one folder; return what it prints."""
    surroundings = os.environ | {"PYTHONPATH": str(root / "src"), "OMP_NUM_THREADS": "1"}
    asked = subprocess.run(
        [sys.executable, *words], env=surroundings, check=True, text=True, stdout=subprocess.PIPE
    )
    return asked.stdout.strip()


def learned(replay: Replay, root: Path, out: Path) -> dict[str, Any]:
    """Learn the stream by the source in one folder; return the result."""
    given = ["-m", "tame", "run", str(HERE / "cifar100-features.toml"), *replay.settings()]
    python(root, *given, "--seed", str(replay.seed), "--out", str(out))
    found: dict[str, Any] = json.loads((out / "result.json").read_text())
    return found


def differing(left: Path, right: Path) -> tuple[int, list[str]]:
    """Return how many tensors there are, and the names of those that are not the same."""
    with safe_open(left, "numpy") as one, safe_open(right, "numpy") as two:
        names, others = set(one.keys()), set(two.keys())
        same = {n for n in names & others if _equal(one.get_tensor(n), two.get_tensor(n))}
    return len(names | others), sorted((names | others) - same)


def _equal(one: Any, two: Any) -> bool:
    return one.dtype == two.dtype and np.array_equal(one, two)


def compared(replay: Replay, sources: dict[str, Path]) -> dict[str, Any]:
    """Learn by both sources; say what is the same."""
    cell = json.loads(replay.cell.read_text())
    made_by = cell["versions"]["source"]
    if made_by not in sources:
        raise SystemExit(f"{replay.cell} was made by source {made_by}; name its checkout: --before")
    with tempfile.TemporaryDirectory() as scratch:
        now, before = Path(scratch, "now"), Path(scratch, "before")
        with ThreadPoolExecutor(2) as pair:
            today = pair.submit(learned, replay, NOW, now)
            pair.submit(learned, replay, sources[made_by], before).result()
        result = today.result()
        tensors, other = differing(now / "model.tame", before / "model.tame")
    figures = {name: rounded(result[name]) for name in FIGURES}
    row = {"preset": replay.preset, "seed": replay.seed, "before": made_by, "tensors": tensors}
    row |= {"different": other, "samples_kept": result["samples_kept"], **figures}
    return row | {"as_the_cell": {name: figures[name] == cell[name] for name in FIGURES}}


def _say(row: dict[str, Any]) -> None:
    other = ", ".join(row["different"]) or "none"
    differs = [name for name, same in row["as_the_cell"].items() if not same]
    print(
        f"{row['preset']}, seed {row['seed']}: {row['tensors']} tensors, different: {other};"
        f" figures unlike the cell's: {', '.join(differs) or 'none'}",
        flush=True,
    )


def main() -> None:
    """Replay the seeds of one preset that the file does not hold."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("preset")
    options.add_argument("features", type=Path)
    options.add_argument("--before", type=Path, action="append", default=[])
    options.add_argument("--cells", type=Path, default=CELLS)
    options.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--out", type=Path, default=OUT)
    found = options.parse_args()
    rows = json.loads(found.out.read_text())["rows"] if found.out.exists() else []
    held = {(row["preset"], row["seed"]) for row in rows if row["now"] == source()}
    rows = [row for row in rows if (row["preset"], row["seed"]) in held]
    sources = {python(root, "-c", DIGEST): root for root in found.before}
    todo = [
        Replay(
            found.preset, found.features, seed, found.cells / f"{found.preset}.tame-seed{seed}.json"
        )
        for seed in found.seeds
        if (found.preset, seed) not in held
    ]
    with ThreadPoolExecutor(found.jobs) as crew:
        for row in crew.map(lambda replay: compared(replay, sources), todo):
            rows.append({**row, "now": source()})
            _say(row)
            about = {"hardware": hardware("cpu"), "versions": versions()}
            found.out.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
