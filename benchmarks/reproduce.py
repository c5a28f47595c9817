"""Cells of the competitors' own papers and repositories, run again with our methods.

    python benchmarks/reproduce.py NAME [NAME ...] [--data DIR] [--seeds 1] [--out DIR]
    python benchmarks/reproduce.py --table

NAME is a cell below, "all" every one. Each writes NAME.json to --out (default
benchmarks/results/competitors) with one entry a seed: what they say, what we measure, and how.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tame.bench.metrics import evaluate, summarise
from tame.bench.telling import Telling
from tame.core.inputs import Inputs
from tame.core.settings import Training
from tame.methods.agem import AGEM, AGEMSettings
from tame.methods.ewc import EWC, EWCSettings
from tame.methods.finetune import FineTune
from tame.methods.rwalk import RWalk, RWalkSettings
from tame.methods.si import SI, SISettings
from tame.methods.single import SingleSettings
from tame.nets.mlp import MLP
from tame.streams.permute import Permute

RESULTS = Path(__file__).parent / "results" / "competitors"


@dataclass(frozen=True)
class Cell:
    """One published figure: where it stands, its setting, and how to run it again.

    `theirs` is the mean accuracy in percent, None where the source gives none.
    """

    source: str
    setting: str
    theirs: float | None
    learner: Callable[[int], Any]
    stream: Any


AGEM_SOURCE = "facebookresearch/agem, plotting_code/agem_plots.ipynb: mean of 5 runs"
AGEM_SETTING = (
    "Permuted MNIST, 17 tasks, one pass over all images, batch 10, plain SGD, MLP 256-256, "
    "weights truncated normal 0.1, biases 0.1, pixels in [0, 1], one shared head"
)
RAW = Inputs(mean=(0.0,), std=(1.0,))
PERMUTED = Permute(data="mnist", segments=17, batch=10)


def agem_net(input_shape: tuple[int, ...], n_outputs: int) -> nn.Module:
    """Return the network of the A-GEM authors' Permuted MNIST."""
    net = MLP(hidden=(256, 256))(input_shape, n_outputs)
    for parameter in net.parameters():
        if parameter.ndim > 1:
            nn.init.trunc_normal_(parameter, std=0.1, a=-0.2, b=0.2)
        else:
            nn.init.constant_(parameter, 0.1)
    return net


def agem_cell(theirs: float | None, kind: Any, settings: Any, rate: float, **own: Any) -> Cell:
    """Return a cell of the A-GEM authors' Permuted MNIST in their code's form of a method."""
    training = Training(rate=rate, momentum=0.0, nesterov=False, weight_decay=0.0, clip=0.0)
    chosen = settings(inputs=RAW, training=training, **own)
    said = ", ".join(f"{name} {value}" for name, value in {"rate": rate, **own}.items())
    return Cell(
        AGEM_SOURCE,
        f"{AGEM_SETTING}; {said}",
        theirs,
        lambda seed: kind(net=agem_net, seed=seed, settings=chosen),
        PERMUTED,
    )


REPO: dict[str, Any] = {"form": "agem-repo", "heads": "shared"}
CELLS = {
    "finetune-permuted-mnist": agem_cell(47.95, FineTune, SingleSettings, 0.03),
    "ewc-permuted-mnist": agem_cell(68.35, EWC, EWCSettings, 0.03, strength=10.0, **REPO),
    "si-permuted-mnist": agem_cell(None, SI, SISettings, 0.1, strength=0.01, **REPO),
    "rwalk-permuted-mnist": agem_cell(85.80, RWalk, RWalkSettings, 0.1, strength=1.0, **REPO),
    "agem-permuted-mnist": agem_cell(89.12, AGEM, AGEMSettings, 0.1, each=25, **REPO),
}


def run(cell: Cell, seed: int) -> dict[str, Any]:
    """Run a cell with one seed and return what was measured."""
    begun = time.perf_counter()
    stream, learner = cell.stream.open(seed), cell.learner(seed)
    truth = stream.truth()
    telling = Telling(learner.hints, truth)
    for step, batch in enumerate(stream.batches()):
        telling.inform(learner, step)
        learner.observe(batch)
    learner.consolidate()
    rows = evaluate(learner, truth, stream.held_out(), {})
    return {
        "seed": seed,
        "accuracy": round(100 * summarise(rows)["within_segment"], 2),
        "per_segment": [round(100 * row["within_segment"], 2) for row in rows],
        "seconds": round(time.perf_counter() - begun, 1),
    }


def write(name: str, runs: list[dict[str, Any]], out: Path) -> None:
    """Write what a cell says and what we measured to its file."""
    cell = CELLS[name]
    result = {
        "command": f"python benchmarks/reproduce.py {name} --seeds {len(runs)}",
        "source": cell.source,
        "setting": cell.setting,
        "theirs": cell.theirs,
        "ours": round(sum(run["accuracy"] for run in runs) / len(runs), 2),
        "runs": runs,
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")


def show(out: Path) -> None:
    """Print every cell that has been run as a row of a Markdown table."""
    print("| cell | theirs | ours | seeds | source |\n|---|---|---|---|---|")
    for name in CELLS:
        path = out / f"{name}.json"
        if path.exists():
            found = json.loads(path.read_text())
            theirs = "none given" if found["theirs"] is None else f"{found['theirs']:.2f}"
            rest = f"{found['ours']:.2f} | {len(found['runs'])} | {found['source']}"
            print(f"| {name} | {theirs} | {rest} |")


def main() -> None:
    """Run the cells named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CELLS))
    parser.add_argument("--data")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if asked.data:
        os.environ["TAME_DATA"] = asked.data
    names = list(CELLS) if "all" in asked.names else asked.names
    for name in names:
        runs = []
        for seed in range(asked.seeds):
            runs.append(run(CELLS[name], seed))
            write(name, runs, asked.out)
            print(name, runs[-1]["accuracy"], f"{runs[-1]['seconds']:.0f} s", flush=True)
    if asked.table:
        show(asked.out)


if __name__ == "__main__":
    main()
