"""What is read off each run, and how it is summed up over runs: mean, 95 % interval, n."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from tame.bench.paper.published import formula_count
from tame.bench.paper.results import Group
from tame.bench.wording import DASH

Run = dict[str, Any]
Measure = Callable[[Run], float | None]

_CONFIDENCE = 0.95
_THOUSAND, _MILLION = 1_000, 1_000_000


class Spread(NamedTuple):
    """A mean, the half width of its 95 % interval (none for a single value), and how many."""

    mean: float
    half: float | None
    n: int


def spread(values: Sequence[float]) -> Spread | None:
    """Return mean and Student's 95 % interval, or nothing where there are no values.

    >>> spread([1.0, 3.0])
    Spread(mean=2.0, half=12.706..., n=2)
    """
    from scipy.special import stdtrit

    n = len(values)
    if not n:
        return None
    mean = math.fsum(values) / n
    if n == 1:
        return Spread(mean, None, 1)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    quantile = float(stdtrit(n - 1, (1 + _CONFIDENCE) / 2))
    return Spread(mean, quantile * deviation / math.sqrt(n), n)


def measured(group: Group | None, measure: Measure) -> Spread | None:
    """Return a measure over the runs of a group; runs without it do not count."""
    found = [measure(run) for run in group.runs] if group else []
    return spread([value for value in found if value is not None])


def difference(group: Group | None, other: Group | None, measure: Measure) -> Spread | None:
    """Return how much larger a measure is in `group`, seed by seed, over the seeds of both."""
    if group is None or other is None:
        return None
    against = {run["seed"]: measure(run) for run in other.runs}
    pairs = [(measure(run), against.get(run["seed"])) for run in group.runs]
    return spread([a - b for a, b in pairs if a is not None and b is not None])


def strict(run: Run) -> float | None:
    """Return the share given the right label of all, in per cent."""
    return _hundred(run["accuracy"].get("strict"))


def within(run: Run) -> float | None:
    """Return the share given the right label within its segment, in per cent."""
    return _hundred(run["accuracy"].get("within_segment"))


def oracle(run: Run) -> float | None:
    """Return the share right when each sample goes to its segment's own expert, in per cent."""
    return _hundred(run["accuracy"].get("oracle"))


def selector(run: Run) -> float | None:
    """Return the share of samples sent to an expert of their segment, in per cent."""
    return _hundred(run.get("selector_accuracy"))


def experts(run: Run) -> float | None:
    """Return how many experts there are."""
    return _count(run.get("experts"))


def delay(run: Run) -> float | None:
    """Return the mean number of batches from a change to its alarm."""
    known = [late for late in run["detection"].get("delays", []) if late is not None]
    return sum(known) / len(known) if known else None


def noticed(run: Run) -> float:
    """Return how many changes raised an alarm."""
    return len(run["detection"].get("delays", []))


def missed(run: Run) -> float | None:
    """Return how many changes raised none."""
    return _count(run["detection"].get("missed"))


def false_alarms(run: Run) -> float | None:
    """Return how many alarms belong to no change."""
    return _count(run["detection"].get("false_alarms"))


def restarts(run: Run) -> float | None:
    """Return how many experts were given fresh weights because they never learned."""
    return _count(run.get("restarts"))


def repeats(run: Run) -> float | None:
    """Return how often a pruning was repeated, over all experts."""
    attempts = run.get("pruning_attempts")
    return None if attempts is None else sum(max(0, times - 1) for times in attempts.values())


def nonzero(run: Run) -> float | None:
    """Return how many parameters of the predicting networks are not zero."""
    return _count(run["parameters"].get("nonzero"))


def nominal(run: Run) -> float | None:
    """Return the parameters of the networks as they really are, times the fraction kept."""
    return _count(run["parameters"].get("paper_count"))


def formula(group: Group) -> Spread | None:
    """Return the paper's formula for the experts found; nothing where other rates were used."""
    if any("sparsity" in change for change in group.changes) or group.method != "tame":
        return None
    counts = [formula_count(group.data, run["experts"] or 0) for run in group.runs]
    return spread([count for count in counts if count is not None])


def distinct(run: Run) -> int:
    """Return how many distributions the stream really held."""
    return len({segment["origin"] for segment in run["segments"]})


def changes(run: Run) -> int:
    """Return how often the distribution really changed."""
    return sum(a["origin"] != b["origin"] for a, b in pairwise(run["segments"]))


def share(value: Spread | None) -> str:
    """Return per cents with their interval, or a dash.

    >>> share(Spread(98.634, 0.123, 10)), share(Spread(98.6, None, 1)), share(None)
    ('98.63 ± 0.12', '98.60', '—')
    """
    return _written(value, lambda number: f"{number:.2f}")


def number(value: Spread | None) -> str:
    """Return a count; one that was the same in every run needs no interval.

    >>> number(Spread(5.0, 0.0, 10)), number(Spread(8.6, 1.113, 5))
    ('5', '8.6 ± 1.1')
    """
    if value and not value.half and value.mean == round(value.mean):
        return f"{value.mean:.0f}"
    return _written(value, lambda count: f"{count:.1f}")


def amount(value: Spread | None) -> str:
    """Return a number of parameters as the paper writes it.

    >>> amount(Spread(37020.0, 0.0, 5)), amount(Spread(9_278_000.0, None, 1))
    ('37.02K', '9.28M')
    """
    if value and not value.half:
        return _scaled(value.mean)
    return _written(value, _scaled)


def signed(value: Spread | None) -> str:
    """Return a difference in points with its interval.

    >>> signed(Spread(0.151, 0.04, 5))
    '+0.15 ± 0.04'
    """
    text = share(value)
    return f"+{text}" if value and value.mean >= 0 else text


def _written(value: Spread | None, form: Callable[[float], str]) -> str:
    if value is None:
        return DASH
    return form(value.mean) + (f" ± {form(value.half)}" if value.half is not None else "")


def _scaled(count: float) -> str:
    if abs(count) >= _MILLION:
        return f"{count / _MILLION:.2f}M"
    return f"{count / _THOUSAND:.2f}K"


def _hundred(value: float | None) -> float | None:
    return None if value is None else 100 * value


def _count(value: Any) -> float | None:
    return None if value is None else float(value)
