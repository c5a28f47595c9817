"""What the paper varies after the stream is over: C_p, C_s, and how many segments have been seen.

    python benchmarks/paper_studies.py PRESET --seed N --data DIR --work DIR [--out DIR]
        [--device cpu] [--cp 100,200] [--cs 500,1000] [--after 1,2,5] [--set KEY=VALUE ...]
        [--vary NAME:KEY=VALUE[;KEY=VALUE] ...] [--called NAME] [--trace]

The stream runs once. A smaller C_p or C_s is the top-key prefix of the reservoir, which is as
uniform as a reservoir of that size. Accuracy after k segments comes from the selector's reservoir
of that moment: an expert that is left does not change any more, and its pruning depends on its own
seed alone, so the experts pruned at the end are those that pruning after segment k would give.
(Orders in which no segment returns.) --vary prunes the same experts by other settings.

Results go to --out as NAME-seedN.json (with `anytime`), NAME.cp<k>-seedN.json,
NAME.cs<k>-seedN.json and NAME.<varied>-seedN.json; the first is called otherwise where something
was set:
`--set pruner.memory=2000 --called split-mnist.cp2000`. With --trace its events are kept too.
"""

import argparse
import gzip
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch
import variants
from torch import Tensor

from tame.bench.experiment import resolve
from tame.bench.metrics import evaluate, stands_for, summarise, teaching
from tame.bench.preparation import prepare
from tame.bench.run import Run, Unwatched
from tame.bench.store import RunFolder
from tame.checkpoint import save_learner
from tame.config import assignment
from tame.core.assemble import assemble
from tame.core.learner import TAME
from tame.core.reservoir import Reservoir
from tame.core.routed import RoutedModel
from tame.loading import load_run
from tame.types import Observation, State


class Snapshots(Unwatched):
    """Keeps the selector's state at the end of each segment."""

    def __init__(self, ends: list[int]) -> None:
        self._ends = set(ends)
        self.taken: list[tuple[State, int]] = []
        self.learner: TAME | None = None

    def step(self, seen: Observation) -> None:
        if self.learner is not None and seen.step + 1 in self._ends:
            state = self.learner._selector.state_dict()  # noqa: SLF001 (a study of its insides)
            self.taken.append((state, len(self.learner.expert_ids)))


class Moment:
    """A model of an earlier moment, as far as `evaluate` needs it.

    Its selector has never seen the experts that came later, and sends nothing to them.
    """

    def __init__(self, model: RoutedModel, experts: int) -> None:
        self.model = model
        self.expert_ids = tuple(model.owners.tolist()[:experts])

    def predict(self, x: Tensor) -> Tensor:
        """Return labels by routing."""
        return self.model.predict(x.to(self.model.owners.device))

    def route(self, x: Tensor) -> Tensor:
        """Return the expert of each sample."""
        return self.model.route(x.to(self.model.owners.device))

    def predict_by(self, x: Tensor, expert: int) -> Tensor:
        """Return one expert's labels."""
        return self.model.predict(x.to(self.model.owners.device), expert)


def shortened(reservoir: Reservoir, size: int) -> Reservoir:
    """Return the reservoir a smaller capacity would have kept."""
    state = reservoir.state_dict()
    order = torch.from_numpy(np.argsort(-state["keys"].numpy(), kind="stable")[:size].copy())
    state["keys"] = state["keys"][order]
    state["columns"] = [column[order.to(column.device)] for column in state["columns"]]
    short = Reservoir(min(size, reservoir.capacity), 0)
    short.load_state_dict(state)
    return short


class Study:
    """One stream, and what is made of it afterwards."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        changes: list[dict[str, Any]] = [{"seed": options.seed, "device": options.device}]
        if options.data:
            os.environ["TAME_DATA"] = str(options.data)
        experiment = resolve(options.preset, [*changes, *map(assignment, options.set)])
        prepare(experiment)
        called = options.called or options.name
        folder = RunFolder(options.work / f"{called}-seed{options.seed}")
        truth = experiment.open_stream().truth()
        self.watcher = Snapshots([*truth.starts[1:], len(experiment.open_stream())])
        self.run = Run(experiment, folder, self.watcher)
        folder.create(experiment.to_toml(), overwrite=True)
        self.watcher.learner = self.learner
        self.aside = folder.path / "after-stream.tame"

    @property
    def learner(self) -> TAME:
        """The learner at hand."""
        learner = self.run.learner
        assert isinstance(learner, TAME)  # noqa: S101 (the presets are TAME's)
        return learner

    def stream(self) -> None:
        """Learn, train the selector, and put the learner aside before anything is pruned."""
        self.run._learn(self.run.stream)  # noqa: SLF001
        shutil.copy(self.run.folder.model, self.run.folder.path / "before-selector.tame")
        self._train_selector()
        save_learner(self.learner, self.aside, self.run.position.to_json())

    def _train_selector(self) -> None:
        learner = self.learner
        pool = learner._pool  # noqa: SLF001
        if pool is not None:
            with self.run.position.timed("consolidate"):
                learner._selector.fit(pool.plan, learner._intake.ready)  # noqa: SLF001

    def conclude(self, name: str, changes: list[str], **more: Any) -> None:
        """Consolidate and evaluate the learner at hand, and write its result."""
        run, options = self.run, self.options
        run._consolidate()  # noqa: SLF001
        result = {**run._evaluate(run.stream), **more, "name": name, "changes": changes}  # noqa: SLF001
        path = options.out / f"{name}-seed{options.seed}.json"
        path.write_text(json.dumps(result, indent=1) + "\n")
        print(name, result["accuracy"], result["selector_accuracy"], flush=True)

    def reopen(self, path: Path) -> None:
        """Go back to a learner put aside."""
        learner, _ = load_run(path, device=self.run.experiment.device)
        self.run.learner = learner

    def vary_cp(self, size: int) -> None:
        """Prune with a smaller C_p."""
        self.reopen(self.aside)
        pool = self.learner._pool  # noqa: SLF001
        for expert in [] if pool is None else pool.awake:
            expert.memory = shortened(expert.memory, size)
        self.conclude(f"{self.options.name}.cp{size}", [f"pruner.memory={size}"])

    def vary(self, name: str, change: str) -> None:
        """Prune by other settings."""
        self.reopen(self.aside)
        fixed = [{"seed": self.options.seed, "device": self.options.device}]
        changes = [*fixed, *map(assignment, self.options.set), *variants.changes(change)]
        self.learner.settings = resolve(self.options.preset, changes).learner().settings
        self.conclude(f"{self.options.name}.{name}", change.split(";"))

    def vary_cs(self, size: int) -> None:
        """Train the selector with a smaller C_s."""
        self.reopen(self.run.folder.path / "before-selector.tame")
        selector: Any = self.learner._selector  # noqa: SLF001
        selector._reservoir = shortened(selector._reservoir, size)  # noqa: SLF001
        self._train_selector()
        self.conclude(f"{self.options.name}.cs{size}", [f"selector.memory={size}"])

    def anytime(self, counts: list[int]) -> list[dict[str, Any]]:
        """Return the accuracy after so many segments, over those seen by then."""
        learner, stream = self.learner, self.run.stream
        truth = stream.truth()
        taught = teaching(truth, [event["expert"] for event in self.run.folder.read_events()])
        stands = stands_for(truth, taught)
        rows = []
        for count in counts:
            moment = self._moment(learner, *self.watcher.taken[count - 1])
            seen = set(truth.origins[:count])
            held = [part for part in stream.held_out() if part.origin in seen]
            known: Any = moment
            found = summarise(evaluate(known, truth, held, stands))
            rows.append({"segments": count, "experts": len(moment.expert_ids), **found})
            print(rows[-1], flush=True)
        return rows

    @staticmethod
    def _moment(learner: TAME, state: State, count: int) -> Moment:
        intake, pool = learner._intake, learner._pool  # noqa: SLF001
        assert pool is not None  # noqa: S101 (it has seen data)
        selector = learner.settings.selector.fresh(learner.seed)
        selector.load_state_dict(state, pool.plan)
        selector.fit(pool.plan, intake.ready)
        return Moment(assemble(intake, pool, selector, learner.settings.decision), count)


def _sizes(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def asked() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("preset", help="a preset of the paper, with or without paper/")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/paper"))
    parser.add_argument("--device", default="cpu")
    for name in ("cp", "cs", "after"):
        parser.add_argument(f"--{name}", type=_sizes, default=[])
    for name in ("set", "vary"):
        parser.add_argument(f"--{name}", action="append", default=[])
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("--called", help="the name of the result with nothing varied")
    options = parser.parse_args()
    options.name = options.preset.removeprefix("paper/")
    options.preset = f"paper/{options.name}"
    options.out.mkdir(parents=True, exist_ok=True)
    return options


def main() -> None:
    """Run one study."""
    options = asked()
    study = Study(options)
    study.stream()
    for size in options.cp:
        study.vary_cp(size)
    for size in options.cs:
        study.vary_cs(size)
    for varied in options.vary:
        study.vary(*varied.split(":", 1))
    study.reopen(study.aside)
    study.run._consolidate()  # noqa: SLF001
    anytime = study.anytime(options.after)
    study.reopen(study.aside)
    called = options.called or options.name
    study.conclude(called, variants.told(options.set), **({"anytime": anytime} if anytime else {}))
    if options.trace:
        packed = gzip.compress((study.run.folder.path / "events.jsonl").read_bytes(), mtime=0)
        (options.out / f"{called}-seed{options.seed}.events.jsonl.gz").write_bytes(packed)


if __name__ == "__main__":
    main()
