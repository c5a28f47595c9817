"""Whether what a learner did about its alarms was right: whom it took back, whom it recruited."""

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tame.bench.episodes import COMMITS, Said, episodes, learners
from tame.bench.metrics import change_points, in_burst, same_as
from tame.bench.record import NOBODY
from tame.types import Truth


class Commit(NamedTuple):
    """A switch or a recruit for good: suspected at `alarm`, sure at `step`, to `expert`."""

    alarm: int
    step: int
    recruited: bool
    expert: int
    known: dict[int, int]  # the experts there were before, and the origin each stood for


def decisions(truth: Truth, events: Sequence[Said], present: Collection[int]) -> dict[str, Any]:
    """Return delays in samples, and which commitments were wrong; `present` as in `noticing`.

    The samples of a delay are those of all batches from the change to the alarm, both included.
    A switch is wrong if its expert stands for another origin than that of the last segment begun
    by then; a recruit is wrong if an expert there was already stands for that. An expert stands
    for what taught it most before the alarm. `expert_error` is how many experts there are too
    many (both None without experts), and `leaks` how many changes bring up a label that the
    segment before did not have.
    """
    found = list(commits(truth, events, present))
    wrong = [commit for commit in found if is_wrong(truth, commit)]
    firsts = list(_firsts(truth, found))
    kinds = len({same_as(truth, origin) for origin in truth.origins})
    return {
        "sample_delays": [_samples(truth, start, one.alarm) for start, one in firsts],
        "commit_sample_delays": [_samples(truth, start, one.step) for start, one in firsts],
        "wrong_reuse": sum(not commit.recruited for commit in wrong) if present else None,
        "wrong_recruits": sum(commit.recruited for commit in wrong) if present else None,
        "expert_error": len(present) - kinds if present else None,
        "leaks": leaks(truth),
    }


def commits(truth: Truth, events: Sequence[Said], present: Collection[int]) -> Iterator[Commit]:
    """Yield every switch and recruit, with what the experts stood for before it."""
    sure = [one for one in episodes(events, present) if one.commit is not None]
    places = [place for place, event in enumerate(events) if event.change in COMMITS]
    if len(places) < len(sure):  # a newcomer that stayed, on probation when the stream ended
        places.append(len(events) - 1)
    origins = sorted(set(truth.origins))
    shown = (truth.composition(event.step) for event in events)
    made = np.array([[counts.get(origin, 0) for origin in origins] for counts in shown])
    for episode, place in zip(sure, places, strict=True):
        event, owners = events[place], np.array(learners(events[: place + 1]))
        before = min(episode.alarm, episode.alarm if event.since is None else event.since)
        before -= events[0].step
        taught = {one: made[:before][owners[:before] == one].sum(0) for one in set(owners[:before])}
        known = {int(one): same_as(truth, origins[int(n.argmax())]) for one, n in taught.items()}
        known.pop(NOBODY, None)
        expert = event.expert if event.expert != NOBODY else int(owners[-1])
        yield Commit(episode.alarm, event.step, event.change != "switched", expert, known)


def is_wrong(truth: Truth, commit: Commit) -> bool:
    """Say whether a commitment contradicts the truth."""
    place = sum(start <= commit.step for start in truth.starts) - 1
    origin = same_as(truth, truth.origins[place])
    if commit.recruited:
        return origin in commit.known.values()
    return commit.known.get(commit.expert) != origin


def leaks(truth: Truth) -> int:
    """Return at how many changes a label comes up that the segment before did not have.

    >>> labels = {0: (0, 1), 1: (1, 2), 2: (1,)}
    >>> leaks(Truth((0, 1, 2), (0, 5, 9), {}, labels, lambda step: {}))
    1
    """
    told = {
        origin: set(range(len(labels)) if truth.local else labels)
        for origin, labels in truth.labels.items()
    }
    return sum(bool(told[after] - told[before]) for before, after in pairwise(truth.origins))


def _firsts(truth: Truth, found: Sequence[Commit]) -> Iterator[tuple[int, Commit]]:
    """Yield the start of every change that was noticed, and the first commitment inside it."""
    calm = [commit for commit in found if not in_burst(truth, commit.alarm)]
    for start, _, end in change_points(truth):
        inside = [commit for commit in calm if start <= commit.alarm < end]
        if inside:
            yield start, inside[0]


def _samples(truth: Truth, start: int, step: int) -> int:
    return sum(sum(truth.composition(one).values()) for one in range(start, step + 1))
