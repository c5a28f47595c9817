"""How soon after a change a learner is right again about the batches that come."""

from collections.abc import Sequence
from typing import Any

from tame.bench.metrics import change_points
from tame.types import Truth

BEFORE = 20  # batches whose share of right answers is the level to come back to
AFTER = 3  # batches that must reach it together: a batch alone may be lucky
ENOUGH = 0.9  # of that level


def recoveries(truth: Truth, shares: Sequence[float | None]) -> list[dict[str, Any]]:
    """Return for every sudden change after how many batches the level of before was reached.

    `shares[i]` is how much of batch `i` was answered rightly before it was learned (None: it was
    not asked). The level is the mean of the last 20 asked before the change; it is reached again
    with the first batch that comes to nine tenths of that by itself and with the two asked after
    it, and not at all (None) if the next change is there first. `returned` says whether the
    origin had come before: what is new has to be learned.

    >>> truth = Truth((0, 1, 0), (0, 5, 10), {}, {}, lambda step: {})
    >>> shares = [0.9] * 5 + [0.1, 0.3, 0.5, 0.6, 0.6] + [0.0] + [0.9] * 4
    >>> [(one["returned"], one["batches"]) for one in recoveries(truth, shares)]
    [(False, None), (True, 1)]
    """
    found = []
    for start, settled, end in change_points(truth):
        if settled > start + 1:  # gradual: there is no moment to count from
            continue
        place = truth.starts.index(start)
        before = _asked(shares, truth.starts[place - 1], start)[-BEFORE:]
        after = _asked(shares, start, int(min(end, len(shares))))
        found.append({
            "start": start,
            "returned": truth.origins[place] in truth.origins[:place],
            "batches": _reached(after, ENOUGH * _mean(before)) if before else None,
        })  # fmt: skip
    return found


def _asked(shares: Sequence[float | None], begin: int, end: int) -> list[tuple[int, float]]:
    """Return how long after `begin` each asked batch came, and the share right of it."""
    stretch = enumerate(shares[begin:end])
    return [(since, share) for since, share in stretch if share is not None]


def _reached(after: Sequence[tuple[int, float]], level: float) -> int | None:
    stretches = (after[place : place + AFTER] for place in range(len(after) - AFTER + 1))
    reached = (part[0] for part in stretches if min(part[0][1], _mean(part)) >= level)
    return next((since for since, _ in reached), None)


def _mean(part: Sequence[tuple[int, float]]) -> float:
    return sum(share for _, share in part) / len(part)
