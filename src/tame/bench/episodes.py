"""From what a learner said batch by batch to what it made of it: suspicions, changes, owners."""

from collections.abc import Container, Iterable, Sequence
from typing import Any, NamedTuple

from tame.bench.metrics import detection
from tame.bench.record import NOBODY
from tame.types import Truth

COMMITS = ("switched", "recruited")


class Said(NamedTuple):
    """What a learner said about a batch."""

    step: int
    change: str
    expert: int
    since: int | None = None


class Episode(NamedTuple):
    """A suspicion or a change without one: when it began and when it was sure (None: never)."""

    alarm: int
    commit: int | None


def episodes(events: Iterable[Said], present: Container[int] = ()) -> list[Episode]:
    """Return the episodes of a run; `present` are the experts there were after it.

    A suspicion goes on while batches are held (nobody learns them) and while a newcomer is on
    probation. It ends with a switch, a recruit, a withdrawal, or as if nothing had been; a
    newcomer still on probation at the end of the stream was recruited if it is there after it.

    >>> told = [(3, "suspected", -1), (4, "suspected", 1), (5, "none", 1), (9, "recruited", 1)]
    >>> episodes([Said(*one) for one in told])
    [Episode(alarm=3, commit=9)]
    """
    found: list[Episode] = []
    begun: int | None = None
    held, step, expert = False, 0, NOBODY
    for step, change, expert, _ in events:
        if change == "suspected":
            begun = step if begun is None else begun
        elif change in COMMITS:
            found.append(Episode(step if begun is None else begun, step))
            begun = None
        elif begun is not None and (change == "withdrawn" or held):
            found.append(Episode(begun, None))
            begun = None
        held = change == "suspected" and expert == NOBODY
    if begun is None:
        return found
    return [*found, Episode(begun, step if expert in present else None)]


def noticing(truth: Truth, events: Sequence[Said], present: Container[int] = ()) -> dict[str, Any]:
    """Return what of the true changes was noticed, how soon, and when it was sure.

    Only what led to a switch or a recruit counts, as found or as false; `withdrawn` is the number
    of suspicions that came to nothing.
    """
    found = episodes(events, present)
    sure = [(one.alarm, one.commit) for one in found if one.commit is not None]
    alarms, commits = [alarm for alarm, _ in sure], [commit for _, commit in sure]
    return {**detection(truth, alarms, commits), "withdrawn": len(found) - len(sure)}


def learners(events: Sequence[Said]) -> list[int]:
    """Return which expert each batch was given to in the end, -1 where none.

    What is dated back belongs to the expert of the change from that step on; what a withdrawn
    newcomer learned belongs to nobody.

    >>> told = [(0, "none", 0), (1, "none", 0), (2, "switched", 1, 1)]
    >>> learners([Said(*one) for one in told])
    [0, 1, 1]
    """
    owners = [event.expert for event in events]
    if not events:
        return owners
    first = events[0].step
    for place, event in enumerate(events):
        if event.change == "withdrawn":
            dropped = owners[place - 1]
            owners = [NOBODY if owner == dropped else owner for owner in owners]
        if event.change in (*COMMITS, "withdrawn") and event.since is not None:
            begin = max(0, event.since - first)
            expert = event.expert if event.expert != NOBODY else owners[place - 1]
            owners[begin : place + 1] = [expert] * (place + 1 - begin)
    return owners
