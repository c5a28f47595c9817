"""What happened in a run, in plain words, and how numbers are written."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from tame.bench.record import Record

DASH = "—"  # where there is no number
_ANNOUNCING = {"boundary", "train task", "train_task"}
_LISTED = 12
_MINUTE = 60
_THOUSAND = 1000


def headline(record: Record) -> str:
    """Return one sentence that says what came and what the learner made of it."""
    result = record.result
    told = {str(hint).lower() for hint in result["hints"]}
    manner = "announced" if told & _ANNOUNCING else "unannounced"
    came = f"{counted(len(result['segments']), 'segment')} came {manner}"
    if not record.has_experts:
        return f"{came}; {result['method']} is one model without experts."
    deeds = [_recruits(result), *_switches(result), noticed(result["detection"])]
    deeds.append(counted(result["detection"]["false_alarms"], "false alarm"))
    return f"{came}; {', '.join([*deeds, *_restarts(result), *budget(result)])}."


def noticed(detection: Mapping[str, Any]) -> str:
    """Return how many of the changes were noticed, and how soon.

    >>> noticed({"delays": [0, 1], "missed": 1})
    '2 of 3 changes noticed, delays 0 1'
    """
    delays = [delay for delay in detection["delays"] if delay is not None]
    changes = len(delays) + detection["missed"]
    if not changes:
        return "there was no change to notice"
    found = f"{len(delays)} of {counted(changes, 'change')} noticed"
    if not delays:
        return found
    return f"{found}, {'delay' if len(delays) == 1 else 'delays'} {listed(delays)}"


def listed(delays: Sequence[float | None]) -> str:
    """Return delays one by one, or their range where they are many.

    >>> listed([0, 1, 0])
    '0 1 0'
    """
    known = [delay for delay in delays if delay is not None]
    if not known:
        return DASH
    if len(known) <= _LISTED:
        return " ".join(f"{delay:g}" for delay in known)
    if min(known) == max(known):
        return f"all {known[0]:g}"
    return f"{min(known):g} to {max(known):g} (mean {sum(known) / len(known):.1f})"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(0, "false alarm"), counted(1, "expert"), counted(1200, "batch")
    ('no false alarm', '1 expert', '1,200 batches')
    """
    if number <= 1:
        return f"{number or 'no'} {noun}"
    return f"{number:,} {noun}{'es' if noun.endswith('ch') else 's'}"


def percent(share: float | None) -> str:
    """Return a share of one as a percentage, or a dash.

    >>> percent(0.975), percent(None)
    ('97.5 %', '—')
    """
    return DASH if share is None or not math.isfinite(share) else f"{100 * share:.1f} %"


def whole(number: float | None) -> str:
    """Return a count with its thousands set apart, or a dash."""
    return DASH if number is None or not math.isfinite(number) else f"{number:,.0f}"


def size(count: float | None) -> str:
    """Return a number of bytes as people say it.

    >>> size(999), size(1_234_567)
    ('999 B', '1.2 MB')
    """
    if count is None or not math.isfinite(count):
        return DASH
    if count < _THOUSAND:
        return f"{count:.0f} B"
    power = min(int(math.log(count, _THOUSAND)), 4)
    return f"{count / _THOUSAND**power:.1f} {' kMGT'[power]}B"


def duration(seconds: float | None) -> str:
    """Return a time as people say it.

    >>> duration(0.42), duration(83)
    ('0.42 s', '1 min 23 s')
    """
    if seconds is None or not math.isfinite(seconds):
        return DASH
    if seconds < _MINUTE:
        return f"{seconds:.3g} s"
    hours, rest = divmod(round(seconds), _MINUTE**2)
    minutes = f"{rest // _MINUTE} min {rest % _MINUTE} s"
    return f"{hours} h {minutes}" if hours else minutes


def plain(value: object) -> str:
    """Return any value of a JSON file as text."""
    if value is None:
        return DASH
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _recruits(result: Mapping[str, Any]) -> str:
    number = result["experts"] or 0
    were = "was" if number == 1 else "were"
    # Where experts have left again, the number at the end is not the number recruited.
    left = any(shift["change"] == "withdrawn" for shift in result["shifts"])
    left |= bool(result.get("merged"))
    return f"{counted(number, 'expert')} {were} {'kept' if left else 'recruited'}"


def _switches(result: Mapping[str, Any]) -> list[str]:
    number = sum(shift["change"] == "switched" for shift in result["shifts"])
    return [f"{counted(number, 'switch')} to a known expert"] if number else []


def budget(result: Mapping[str, Any]) -> list[str]:
    """Return what a budget on experts or bytes has cost, if it was reached.

    >>> budget({"budget": {"refused": 2, "thinned": 500}})
    ['no room for 2 newcomers', '500 samples an expert left by a cap on bytes']
    """
    spent = result.get("budget") or {}
    refused, thinned = spent.get("refused", 0), spent.get("thinned", 0)
    told = []
    if refused:
        told.append(f"no room for {counted(refused, 'newcomer')}")
    if thinned:
        told.append(f"{counted(thinned, 'sample')} an expert left by a cap on bytes")
    return told


def _restarts(result: Mapping[str, Any]) -> list[str]:
    number = result.get("restarts") or 0
    return [counted(number, "restart")] if number else []
