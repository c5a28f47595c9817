"""How well experts agree with segments, whatever both are called."""

from collections import Counter
from collections.abc import Mapping
from math import comb


def adjusted_rand(counts: Mapping[int, Mapping[int, int]]) -> float:
    """Return the adjusted Rand index (Hubert and Arabie 1985) of a contingency table.

    `counts[expert][origin]` is how many samples of an origin an expert learned. 1 is one expert an
    origin, 0 what chance would give; a table of one cell, or of singletons alone, agrees fully.

    >>> adjusted_rand({0: {0: 5}, 1: {1: 5}}), adjusted_rand({0: {0: 5, 1: 5}})
    (1.0, 0.0)
    """
    origins: Counter[int] = Counter()
    for row in counts.values():
        origins.update(row)
    pairs = sum(comb(n, 2) for row in counts.values() for n in row.values())
    by_expert = sum(comb(sum(row.values()), 2) for row in counts.values())
    by_origin = sum(comb(n, 2) for n in origins.values())
    total = comb(sum(origins.values()), 2)
    expected = by_expert * by_origin / total if total else 0.0
    most = (by_expert + by_origin) / 2
    return 1.0 if most == expected else (pairs - expected) / (most - expected)
