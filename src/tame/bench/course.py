"""Following a learner through its stream: the accuracy matrix, probes after shifts, prequential.

A row of the matrix is what a copy of the learner answers once it has consolidated; the learner
itself goes on untouched. Probes ask the learner as it is, on a thinned part of what is held out.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from tame.bench import matrix
from tame.bench.recovery import recoveries
from tame.bench.telling import answers, told_in_testing
from tame.types import Batch, HeldOut, Hint, Hints, Learner, Stream, Truth

THIN = 200  # samples of each origin that a probe asks for
RATIO = 4  # probes lie 1, 4, 16, ... batches after a shift


@dataclass
class Followed:
    """What has been found so far; part of a run's checkpoint.

    `rows` are the matrix's, `known[i]` the probes in segment `i` on what had come before it (the
    first of them at its very start), `early` the prequential counts of each segment: right, asked,
    and `shares` the share right of every batch (None: it was not asked).
    """

    rows: list[list[float]] = field(default_factory=list)
    known: list[list[float]] = field(default_factory=list)
    early: list[list[int]] = field(default_factory=list)
    shares: list[float | None] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "rows": self.rows,
            "known": self.known,
            "early": self.early,
            "shares": self.shares,
        }


class Course:
    """Asks a learner at the right moments."""

    def __init__(self, stream: Stream, found: Followed, ask_every: int = 1) -> None:
        self.found = found
        self._ask_every = ask_every
        self._truth = stream.truth()
        self._held = {part.origin: part for part in stream.held_out()}
        self._origins = list(dict.fromkeys(self._truth.origins))
        self._thin = {origin: _thinned(part) for origin, part in self._held.items()}
        self._stops = [*self._truth.starts[1:], len(stream)]

    def before(self, learner: Learner, step: int, batch: Batch) -> None:
        """Ask the learner about a batch it has not seen, if it is one to ask: test, then train."""
        place = self._place(step)
        while len(self.found.early) <= place:
            self.found.early.append([0, 0])
            self.found.known.append([])
        self.found.shares += [None] * (step + 1 - len(self.found.shares))
        if step % self._ask_every == 0:
            counts = self.found.early[place]
            right = int((self._guess(learner, step, batch.x).cpu() == batch.y.cpu()).sum())
            counts[0] += right
            counts[1] += len(batch)
            self.found.shares[step] = round(right / max(1, len(batch)), 4)
        if self._probes(step, place):
            self._probe(learner, place)

    def due(self, step: int) -> bool:
        """Say whether a row of the matrix is due now that so many batches are learned."""
        return sum(stop <= step for stop in self._stops) > len(self.found.rows)

    def add_row(self, copy: Learner) -> None:
        """Measure a consolidated copy on everything held out."""
        held = [self._held[origin] for origin in self._origins]
        self.found.rows.append([_right(copy, part) for part in held])

    def summary(self) -> dict[str, Any]:
        """Return the matrix and everything that is read off it, as `result.json` has it."""
        return summarise(self.found, self._truth, list(self._held.values()))

    def asked(self) -> dict[str, Any]:
        """Return what the answers before learning come to: all there is without a matrix."""
        return early(self.found, self._truth)

    def _place(self, step: int) -> int:
        return max(i for i, start in enumerate(self._truth.starts) if start <= step)

    def _probes(self, step: int, place: int) -> bool:
        """Say whether to probe before this batch: at a segment's start, and 1, 4, 16, ... later."""
        since = step - self._truth.starts[place]
        late = round(math.log(since, RATIO)) if since else 0
        return place > 0 and (since == 0 or since == RATIO**late)

    def _probe(self, learner: Learner, place: int) -> None:
        seen = dict.fromkeys(self._truth.origins[:place])
        shares = [_right(learner, self._thin[origin]) for origin in seen]
        self.found.known[place].append(sum(shares) / len(shares))

    def _guess(self, learner: Any, step: int, x: Tensor) -> Tensor:
        if Hints.TEST_TASK in told_in_testing(learner):
            made = self._truth.composition(step)
            told: Tensor = learner.predict_told(x, Hint(task=max(made, key=lambda o: made[o])))
            return told
        guessed: Tensor = learner.predict(x, when="now")
        return guessed


def copied(learner: Any, make: Callable[[], Any]) -> Any:
    """Return a learner of its own that stands where this one does."""
    copy = make()
    copy.load_state_dict(learner.state_dict())
    return copy


def summarise(found: Followed, truth: Truth, held: Sequence[HeldOut]) -> dict[str, Any]:
    """Return what a followed stream comes to."""
    origins = list(dict.fromkeys(truth.origins))
    first = [truth.origins.index(origin) for origin in origins]
    chance = chances(truth, {part.origin: part.y for part in held})
    rows = found.rows
    dips = [matrix.worst_dip(probes[0], probes[1:]) for probes in found.known if probes]
    sunk = [dip for dip in dips if dip is not None]
    return {
        "origins": origins,
        "matrix": rows,
        "chance": chance,
        "average_accuracy": matrix.average_accuracy(rows),
        "backward_transfer": matrix.backward_transfer(rows, first),
        "forward_transfer": matrix.forward_transfer(rows, first, chance),
        "forgetting": matrix.forgetting(rows, first),
        "average_anytime": matrix.average_anytime(rows, first),
        "after_each": [sum(k) / len(k) for k in _knowns(rows, first)],
        **early(found, truth),
        "worst_dip": max(sunk) if sunk else None,
        "probes": found.known,
    }


def early(found: Followed, truth: Truth) -> dict[str, Any]:
    """Return the share of answers that were right before they were learned, and recoveries."""
    right, asked = (sum(counts[place] for counts in found.early) for place in (0, 1))
    return {
        "prequential": right / asked if asked else None,
        "recoveries": recoveries(truth, found.shares),
    }


def chances(truth: Truth, labels: Mapping[int, Tensor]) -> list[float]:
    """Return for each origin what guessing among the labels seen before it would get right."""
    found, seen = [], set[int]()
    for origin in dict.fromkeys(truth.origins):
        y = labels[origin].tolist()
        found.append(sum(label in seen for label in y) / len(y) / len(seen) if seen else 0.0)
        seen |= set(y)
    return found


def _knowns(rows: Sequence[Sequence[float]], first: Sequence[int]) -> list[list[float]]:
    return [matrix.known(row, first, at) for at, row in enumerate(rows)]


def _right(learner: Any, part: HeldOut) -> float:
    return float((answers(learner, part.x, part.origin).cpu() == part.y).double().mean())


def _thinned(part: HeldOut) -> HeldOut:
    """Return so many samples of a part, evenly spaced: held-out samples may be sorted by label."""
    count = min(THIN, len(part.y))
    rows = torch.linspace(0, len(part.y) - 1, count).long()
    return HeldOut(part.origin, part.name, part.x[rows], part.y[rows])
