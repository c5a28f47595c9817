"""What a run is measured by; every definition is one function."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tame.bench.record import NOBODY
from tame.bench.telling import answers, told_in_testing
from tame.types import HasExperts, HeldOut, Hints, Learner, Truth


class ChangePoint(NamedTuple):
    """A true change: under way from `start` up to `settled`; what it began lasts up to `end`."""

    start: int
    settled: int
    end: float


def same_as(truth: Truth, origin: int) -> int:
    """Return the earliest origin that is the same distribution as this one, or itself."""
    return truth.alike.get(origin, origin)


def change_points(truth: Truth) -> list[ChangePoint]:
    """Return where the distribution really changes; a segment like the one before is no change.

    >>> truth = Truth((0, 1, 1), (0, 10, 20), {}, {}, lambda step: {}, settled=(0, 15, 20))
    >>> change_points(truth)
    [ChangePoint(start=10, settled=15, end=20)]
    """
    origins = [same_as(truth, origin) for origin in truth.origins]
    ends = [*truth.starts[1:], math.inf]
    return [
        ChangePoint(start, settled, end)
        for start, settled, end, (before, after) in zip(
            truth.starts[1:],
            truth.settled[1:] or truth.starts[1:],
            ends[1:],
            pairwise(origins),
            strict=True,
        )
        if before != after
    ]


def detection(
    truth: Truth, alarms: Sequence[int], commits: Sequence[int] | None = None
) -> dict[str, Any]:
    """Compare alarm steps with the true changes.

    The first alarm inside a segment belongs to its start; its delay counts batches from the first
    batch that holds any of the segment's samples, also where the change is gradual. Every other
    alarm is false, and so is any in a segment that continues the distribution before it, and any
    in a burst. Only while a gradual change is under way, further alarms are neither: the
    distribution does move there.

    `commits` says when each alarm led to a switch or a recruit for good, if that came later.
    """
    calm = [step for step in alarms if not in_burst(truth, step)]
    delays, late, missed, excused = [], [], 0, 0
    sure = dict(zip(alarms, commits or alarms, strict=True))
    for start, settled, end in change_points(truth):
        inside = [step for step in calm if start <= step < end]
        delays += [step - start for step in inside[:1]]
        late += [sure[step] - start for step in inside[:1]]
        missed += not inside
        excused += sum(step < settled for step in inside[1:])
    false = len(alarms) - len(delays) - excused
    found = {"delays": delays, "false_alarms": false, "missed": missed}
    return found if commits is None else {**found, "commit_delays": late}


def in_burst(truth: Truth, step: int) -> bool:
    """Say whether a batch is spoiled without any change."""
    return any(begin <= step < end for begin, end in truth.bursts)


def shares(truth: Truth, step: int) -> dict[int, float]:
    """Return the share of each origin in a batch.

    >>> shares(Truth((0, 1), (0, 1), {}, {}, lambda step: {0: 24, 1: 8}), 0)
    {0: 0.75, 1: 0.25}
    """
    counts = truth.composition(step)
    return {origin: count / sum(counts.values()) for origin, count in counts.items()}


def teaching(truth: Truth, experts: Sequence[int]) -> dict[int, Counter[int]]:
    """Return how many samples of each origin each expert learned; `experts[i]` is step i's.

    A batch that nobody learned (-1) counts for nobody.
    """
    taught: dict[int, Counter[int]] = defaultdict(Counter)
    for step, expert in enumerate(experts):
        if expert != NOBODY:
            taught[expert].update(truth.composition(step))
    return taught


def stands_for(truth: Truth, taught: Mapping[int, Counter[int]]) -> dict[int, int]:
    """Return the origin each expert stands for: what taught it most, ties to the earlier."""
    first = {origin: truth.origins.index(origin) for origin in set(truth.origins)}
    return {
        expert: min(counts, key=lambda origin: (-counts[origin], first[origin]))
        for expert, counts in taught.items()
    }


def local_indices(truth: Truth) -> dict[int, int]:
    """Return each label's index within its segment; labels that segments share stay as they are."""
    every = [label for labels in truth.labels.values() for label in labels]
    if truth.local or len(set(every)) < len(every):
        return {label: label for label in every}
    return {label: index for labels in truth.labels.values() for index, label in enumerate(labels)}


def evaluate(
    learner: Learner, truth: Truth, held: Sequence[HeldOut], stands: Mapping[int, int]
) -> list[dict[str, Any]]:
    """Measure a learner on the held-out samples of each origin.

    Under local labels a strictly right answer is the pair (segment, local label): the expert that
    answered must stand for the sample's segment. A learner without experts has no such figure,
    unless it is told the segment. A learner that is told something at test time is measured so;
    `untold` is then its share of right labels without.
    """
    return [_measure(learner, part, truth, stands) for part in held]


def summarise(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return unweighted means over segments, and `pooled`: strict over all samples."""
    total = sum(row["samples"] for row in rows)
    known = [row for row in rows if row["strict"] is not None]
    pooled = sum(row["strict"] * row["samples"] for row in known) / total if known else None
    return {
        "strict": mean([row["strict"] for row in rows]),
        "within_segment": mean([row["within_segment"] for row in rows]),
        "oracle": mean([row["oracle"] for row in rows]),
        "pooled": pooled,
    }


def _measure(
    learner: Learner, part: HeldOut, truth: Truth, stands: Mapping[int, int]
) -> dict[str, Any]:
    found = answers(learner, part.x, part.origin).cpu()
    testing = told_in_testing(learner)
    nameless = truth.local and Hints.TEST_TASK not in testing
    local = local_indices(truth)
    right = found == part.y
    row: dict[str, Any] = {
        "origin": part.origin,
        "name": part.name,
        "samples": len(part.y),
        "strict": None if nameless else _share(right),
        "within_segment": _share(_localised(found, local) == _localised(part.y, local)),
        "untold": _share(learner.predict(part.x).cpu() == part.y) if testing else None,
        "oracle": None,
        "selector": None,
        "routed": {},
    }
    if isinstance(learner, HasExperts):
        own = [expert for expert, origin in stands.items() if origin == part.origin]
        row |= _routing(learner, part, own)
        if truth.local:
            row["strict"] = _share(right & _sent_to(learner, part, own))
    return row


def _routing(learner: HasExperts, part: HeldOut, own: Sequence[int]) -> dict[str, Any]:
    """Several experts may stand for one origin: the oracle takes the first, routing any of them."""
    counts = Counter(learner.route(part.x).tolist())
    oracle = 0.0
    if own:
        oracle = _share(learner.predict_by(part.x, min(own)).cpu() == part.y)
    return {
        "oracle": oracle,
        "selector": _share(_sent_to(learner, part, own)),
        "routed": {str(expert): counts[expert] for expert in sorted(counts)},
    }


def _sent_to(learner: HasExperts, part: HeldOut, own: Sequence[int]) -> Tensor:
    routed = learner.route(part.x).cpu()
    return torch.isin(routed, torch.tensor(own, dtype=routed.dtype))


def _localised(labels: Tensor, local: Mapping[int, int]) -> Tensor:
    return torch.tensor([local.get(label, -1) for label in labels.tolist()])


def _share(right: Tensor) -> float:
    return float(right.double().mean())


def mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the values that are known, if any."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
