"""What is read off an accuracy matrix, by the definitions the field publishes.

`rows[i][j]` is the accuracy on origin `j` after segment `i`; origins are numbered by their first
appearance, and `first[j]` is the segment in which origin `j` came first (so where every segment is
new, `first[j]` is `j` and the matrix is the square one of the papers). T is the number of rows.
"""

from collections.abc import Sequence

Rows = Sequence[Sequence[float]]


def average_accuracy(rows: Rows) -> float:
    """Return ACC (Lopez-Paz and Ranzato 2017): the mean of the last row.

    >>> average_accuracy([[0.9, 0.1], [0.5, 0.7]])
    0.6
    """
    return _mean(rows[-1])


def backward_transfer(rows: Rows, first: Sequence[int]) -> float | None:
    """Return BWT (the same paper): mean of R[T][j] - R[first of j][j] over earlier origins.

    >>> round(backward_transfer([[0.9, 0.1], [0.5, 0.7]], [0, 1]), 6)
    -0.4
    """
    last = len(rows) - 1
    return _mean_or_none([rows[-1][j] - rows[at][j] for j, at in enumerate(first) if at < last])


def forward_transfer(rows: Rows, first: Sequence[int], chance: Sequence[float]) -> float | None:
    """Return FWT (the same paper): mean of R[just before first of j][j] - b[j].

    The papers' b is the accuracy of random weights; our learners name no label before they saw it,
    so `chance` is what such weights reach on average: a uniform guess among the labels seen.

    >>> round(forward_transfer([[0.9, 0.3], [0.5, 0.7]], [0, 1], [0.0, 0.1]), 6)
    0.2
    """
    return _mean_or_none([rows[at - 1][j] - chance[j] for j, at in enumerate(first) if at > 0])


def forgetting(rows: Rows, first: Sequence[int]) -> float | None:
    """Return forgetting (Chaudhry et al. 2018): the best earlier accuracy less the last.

    The mean over origins that came before the last row, of max over l < T of R[l][j] - R[T][j].

    >>> round(forgetting([[0.6, 0.1], [0.9, 0.7], [0.5, 0.8]], [0, 1]), 6)
    0.15
    """
    last = len(rows) - 1
    lost = [max(r[j] for r in rows[:-1]) - rows[-1][j] for j, at in enumerate(first) if at < last]
    return _mean_or_none(lost)


def average_anytime(rows: Rows, first: Sequence[int]) -> float:
    """Return the mean over rows of the mean accuracy on the origins that had come by then.

    Known as average incremental accuracy (Rebuffi et al. 2017), or AAA at the ends of segments.

    >>> average_anytime([[0.9, 0.1], [0.5, 0.7]], [0, 1])
    0.75
    """
    return _mean([_mean(known(row, first, at)) for at, row in enumerate(rows)])


def worst_dip(before: float | None, after: Sequence[float]) -> float | None:
    """Return by how much the accuracy on what was known fell at most, at any probe after a shift.

    The stability gap of De Lange et al. (2023), as a depth: 0 if it never fell.

    >>> round(worst_dip(0.9, [0.5, 0.8]), 6), worst_dip(0.9, [0.95])
    (0.4, 0.0)
    """
    return None if before is None or not after else max(0.0, before - min(after))


def known(row: Sequence[float], first: Sequence[int], segment: int) -> list[float]:
    """Return a row's accuracies on the origins that have come by the end of a segment."""
    return [value for value, at in zip(row, first, strict=True) if at <= segment]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _mean_or_none(values: Sequence[float]) -> float | None:
    return _mean(values) if values else None
