"""Cells of the competitors' own papers and repositories, run again with our methods.

    python benchmarks/reproduce.py NAME [NAME ...] --work DIR [--data DIR] [--seeds 1] [--jobs 2]
        [--gpu-jobs 2] [--minutes 9] [--set KEY=VALUE ...] [--out DIR]
    python benchmarks/reproduce.py --table

NAME is a row of `reproduce.toml`, which holds every setting; "all" is every one. Each seed is a run
of its own under --work; one that is stopped, killed or out of time goes on when the script is
called again. NAME.json in --out (default benchmarks/results/competitors) has what they say, what we
measure, and how. With --set a run is another one than the published: its file says so.
"""

import argparse
import json
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tame.bench.crew import LocalCrew
from tame.bench.experiment import changes_from
from tame.bench.grid import Cell, grid_of, read_plan
from tame.bench.store import RunFolder, write_text
from tame.bench.sweep import sweep

GRID = Path(__file__).with_suffix(".toml")
RESULTS = Path(__file__).parent / "results" / "competitors"


@dataclass(frozen=True)
class Source:
    """Where a figure was published and in which setting; `theirs` is in per cent, if printed."""

    source: str
    setting: str
    theirs: float | None
    measure: str = "within_segment"


AGEM = "facebookresearch/agem, plotting_code/agem_plots.ipynb: mean of 5 runs"
AGEM_SETTING = (
    "Permuted MNIST, 17 tasks, one pass over all images, batch 10, plain SGD, MLP 256-256, "
    "weights truncated normal 0.1, biases 0.1, pixels in [0, 1], one shared head; "
)
ITAML = "iTAML (2020), Table 1: MNIST, five tasks of two digits"
ITAML_SETTING = "Split MNIST, MLP 400-400, 2000 exemplars, groups of 20; "
ITAML_LAST = "last weights where theirs are chosen by test accuracy; "
CNDPM = "CN-DPM (2020), Split MNIST, one pass"
CNDPM_SETTING = "batch 10, short-term memory 500, log alpha -400, 8000 and 2000 steps asleep"
HCL_SETTING = "8 couplings of width 512 on pixels, batch 32; every constant is ours; "
DEN_SETTING = "Permuted MNIST, 10 tasks, MLP 312-128, "
SOURCES = {
    "finetune-permuted-mnist": Source(AGEM, AGEM_SETTING + "rate 0.03", 47.95),
    "ewc-permuted-mnist": Source(AGEM, AGEM_SETTING + "rate 0.03, strength 10", 68.35),
    "si-permuted-mnist": Source(
        AGEM,
        AGEM_SETTING + "rate 0.1, strength 0.01 where theirs is 0.1, no step beyond the anchor",
        None,
    ),
    "si-permuted-mnist-own": Source(
        "SI (2017), ten tasks, as later comparisons quote it",
        "Permuted MNIST, 10 tasks, twenty passes, MLP 2000-2000, Adam at 0.001, batch 256, c 0.1, "
        "xi 0.1, pixels in [0, 1], one shared head",
        97.1,
    ),
    "rwalk-permuted-mnist": Source(AGEM, AGEM_SETTING + "rate 0.1, strength 1", 85.80),
    "agem-permuted-mnist": Source(AGEM, AGEM_SETTING + "rate 0.1, 25 samples a label", 89.12),
    "itaml-split-mnist": Source(
        ITAML,
        ITAML_SETTING + "20 passes over every task where theirs has 5 over the first, "
        f"{ITAML_LAST}as the paper writes it",
        97.95,
        "strict",
    ),
    "itaml-split-mnist-code": Source(
        ITAML,
        ITAML_SETTING + "5 passes over the first task, 20 over the others, "
        f"{ITAML_LAST}as the code does it: weights not restored, rate 0.05 for the fifth task",
        97.95,
        "strict",
    ),
    "den-permuted-mnist": Source(
        "DEN (2018): its gain over fine-tuning; no number of it for this stream is known to us",
        DEN_SETTING + "2000 iterations a stage over all images of a task",
        None,
    ),
    "den-finetune-permuted-mnist": Source(
        "what DEN's gain is measured from", DEN_SETTING + "one shared head, one pass", None
    ),
    "bgd-permuted-mnist": Source(
        "BGD (2018) shows a curve, no number",
        "Permuted MNIST, 10 tasks, ten passes, MLP 200-200, first spread 0.02, batch 128",
        None,
        "strict",
    ),
    "cndpm-split-mnist": Source(CNDPM, CNDPM_SETTING, 93.23, "strict"),
    "cndpm-split-mnist-code": Source(
        CNDPM, CNDPM_SETTING + "; counts as its code counts", 93.23, "strict"
    ),
    "hcl-fr-split-mnist": Source(
        "as the TAME paper quotes HCL-FR", HCL_SETTING + "one pass", 90.89, "strict"
    ),
    "hcl-gr-split-mnist": Source(
        "as the TAME paper quotes HCL-GR", HCL_SETTING + "one pass", 84.65, "strict"
    ),
}


class Printed:
    """Prints what ends, and asks to stop when time is up."""

    def __init__(self, minutes: float) -> None:
        self._deadline = time.monotonic() + 60 * minutes
        self._begun: dict[str, float] = {}

    def begun(self, name: str) -> None:
        """Note when it was."""
        self._begun[name] = time.monotonic()

    def progress(self, name: str, phase: str, done: int, total: int) -> None:
        """Say nothing."""

    def ended(self, name: str, outcome: str, why: str) -> None:
        """Print what became of a run."""
        spent = time.monotonic() - self._begun[name]
        print(f"{outcome} {name} ({spent:.0f} s) {why.strip().splitlines()[-1:]}", flush=True)

    def stop_asked(self) -> bool:
        """Say whether time is up."""
        return time.monotonic() > self._deadline


def measured(cell: Cell, result: dict[str, Any]) -> dict[str, Any]:
    """Return what is kept of a run."""
    measure = SOURCES[cell.row].measure
    return {
        "seed": cell.seed,
        "accuracy": round(100 * result["accuracy"][measure], 2),
        "untold": result["untold_accuracy"] and round(100 * result["untold_accuracy"], 2),
        "per_segment": [round(100 * row[measure], 2) for row in result["per_segment"]],
        "experts": result["experts"],
        "parameters": result["parameters"]["dense"],
        "seconds": round(sum(result["seconds"].values()), 1),
        "device": result["hardware"].get("gpu") or result["hardware"]["cpu"],
    }


def write(name: str, cells: list[Cell], options: argparse.Namespace) -> None:
    """Write what a cell says and what we measured to its file."""
    done = [c for c in cells if c.row == name and RunFolder(c.folder(options.work)).result.exists()]
    if not done:
        return
    runs = [measured(cell, RunFolder(cell.folder(options.work)).read_result()) for cell in done]
    source = SOURCES[name]
    result = {
        "command": f"python benchmarks/reproduce.py {name} --seeds {len(runs)}",
        "source": source.source,
        "setting": source.setting,
        "reconstruction": name.startswith("hcl"),
        "changed": options.set,
        "theirs": source.theirs,
        "ours": round(sum(run["accuracy"] for run in runs) / len(runs), 2),
        "measure": source.measure,
        "runs": runs,
    }
    write_text(options.out / f"{name}.json", json.dumps(result, indent=1) + "\n")


def show(out: Path) -> None:
    """Print every cell that has been run as a row of a Markdown table."""
    print("| cell | theirs | ours | seeds | source |\n|---|---|---|---|---|")
    for name in SOURCES:
        path = out / f"{name}.json"
        if path.exists():
            found = json.loads(path.read_text())
            theirs = "none given" if found["theirs"] is None else f"{found['theirs']:.2f}"
            rest = f"{found['ours']:.2f} | {len(found['runs'])} | {found['source']}"
            print(f"| {name} | {theirs} | {rest} |")


def asked() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SOURCES))
    parser.add_argument("--data")
    parser.add_argument("--work", type=Path, default=Path("runs/reproduce"))
    parser.add_argument("--seeds", type=int, default=1, help="so many, where a cell has as many")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--gpu-jobs", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    options.names = list(SOURCES) if "all" in options.names else options.names
    for name in options.names:
        if name not in SOURCES:
            parser.error(f"no cell named {name}; there are {', '.join(SOURCES)}")
    if options.set and options.out == RESULTS:
        parser.error("with --set a run is not the published one: name another --out")
    return options


def main() -> None:
    """Run the cells named on the command line."""
    options = asked()
    if options.data:
        os.environ["TAME_DATA"] = str(Path(options.data).resolve())
    grid = grid_of(read_plan(str(GRID)).only(options.names), changes_from(options.set))
    cells = [cell for cell in grid.cells if options.names and cell.seed < options.seeds]
    if cells:
        crew, view = LocalCrew(options.jobs, options.gpu_jobs), Printed(options.minutes)
        found = sweep(replace(grid, cells=tuple(cells)), options.work, crew, view)
        print(f"{len(cells) - len(found.finished)} of {len(cells)} left")
    for name in options.names:
        write(name, cells, options)
    if options.table:
        show(options.out)


if __name__ == "__main__":
    main()
