"""A learner consolidated many times along its stream: what it is worth after each.

    python benchmarks/lifelong.py PRESET --data DIR [--times 10] [--device cpu] [--out FILE]
        [--set KEY=VALUE ...]

The stream is cut into so many equal parts, wherever its segments may end, and the learner itself
(no copy of it) is consolidated after each: its selector trained, its experts pruned, and so on.
Measured on a tenth of the training data held back in each segment, of the segments that have begun;
`once` is the same learner, consolidated at the end alone.
"""

import argparse
import time
from typing import Any

import variants

from tame import TAME
from tame.bench.episodes import Said, learners
from tame.bench.experiment import Experiment
from tame.bench.metrics import evaluate, stands_for, summarise, teaching
from tame.bench.preparation import prepare
from tame.config import assignment
from tame.types import Stream

Row = dict[str, Any]


class Lifelong:
    """One learner on its way: what it said, and which experts became one."""

    def __init__(self, experiment: Experiment) -> None:
        prepare(experiment)
        self.stream: Stream = experiment.open_stream()
        self.learner: TAME = experiment.learner()
        self._said: list[Said] = []
        self._merged: dict[int, int] = {}

    def run(self, times: int) -> list[Row]:
        """Learn the whole stream, consolidate so many times, and return a row for each."""
        count, rows = len(self.stream), []
        ends = {round(count * (part + 1) / times) for part in range(times)}
        for step, batch in enumerate(self.stream.batches()):
            seen = self.learner.observe(batch)
            self._said.append(Said(seen.step, seen.change, seen.expert, seen.since))
            if step + 1 in ends:
                rows.append(self._consolidated(step + 1))
                print(rows[-1], flush=True)
        return rows

    def _consolidated(self, steps: int) -> Row:
        began = time.perf_counter()
        self._merged |= dict(self.learner.consolidate().merged)
        seconds = time.perf_counter() - began
        truth = self.stream.truth()
        taught = teaching(truth, [self._kept(one) for one in learners(self._said)])
        origins = {truth.origins[n] for n, start in enumerate(truth.starts) if start < steps}
        held = [part for part in self.stream.held_out() if part.origin in origins]
        stands = stands_for(truth, taught)
        present = {one: stands[one] for one in self.learner.expert_ids if one in stands}
        rows = evaluate(self.learner, truth, held, present)
        selector = [row["selector"] for row in rows if row["selector"] is not None]
        sizes = self.learner.sizes()
        return {
            "steps": steps,
            "segments": len(origins),
            **{key: round(value, 5) for key, value in summarise(rows).items() if value is not None},
            "selector": round(sum(selector) / len(selector), 5) if selector else None,
            "experts": len(self.learner.expert_ids),
            "nonzero": sizes.nonzero,
            "bytes": sizes.sample_bytes,
            "seconds": round(seconds, 1),
        }

    def _kept(self, expert: int) -> int:
        while expert in self._merged:
            expert = self._merged[expert]
        return expert


def main() -> None:
    """Run one preset, consolidated often and once."""
    options: argparse.ArgumentParser = variants.parser(__doc__)
    options.add_argument("--times", type=int, default=10)
    asked = variants.asked(options)
    changes = [{"device": asked.device}, *map(assignment, asked.set)]
    rows = {}
    for name, times in (("often", asked.times), ("once", 1)):
        rows[name] = Lifelong(variants.held_back(asked.preset, changes)).run(times)
        variants.write(asked, {"times": asked.times}, rows)


if __name__ == "__main__":
    main()
