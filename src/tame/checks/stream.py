"""What every stream must do."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from itertools import islice, pairwise

import torch

from tame.checks.failure import generators_untouched, require
from tame.core.intake import INTEGERS, NUMBERS
from tame.types import Batch, Stream, Truth

Check = Callable[[Stream], None]


def check_stream(stream: Stream) -> None:
    """Run every check on a stream (it is read several times: give a short one)."""
    for _, check in stream_checks():
        check(stream)


def stream_checks() -> Iterator[tuple[str, Check]]:
    """Yield every check of a stream with its name.

    >>> len(dict(stream_checks()))
    10
    """
    yield from ((check.__name__, check) for check in CHECKS)


def check_length(stream: Stream) -> None:
    """Fail unless `len` is the number of batches, one or more."""
    count = sum(1 for _ in stream.batches())
    require(count == len(stream) > 0, f"len is {len(stream)}, but {count} batches came")


def check_same_content_again(stream: Stream) -> None:
    """Fail if a second reading differs, or a global generator is touched."""
    with generators_untouched("the stream"):
        pairs = zip(stream.batches(), stream.batches(), strict=True)
        for number, (one, two) in enumerate(pairs):
            require(_same(one, two), f"batch {number} was different the second time")


def check_starts_anywhere(stream: Stream) -> None:
    """Fail unless `batches(start)` is the tail of `batches()`."""
    whole = list(stream.batches())
    for start in sorted({0, 1, len(whole) // 2, len(whole) - 1, len(whole)}):
        tail = list(stream.batches(start=start))
        count = len(whole) - start
        require(len(tail) == count, f"from {start} on {len(tail)} batches came, not {count}")
        same = all(_same(one, two) for one, two in zip(whole[start:], tail, strict=True))
        require(same, f"batches(start={start}) is not the tail of batches()")


def check_batches_plain(stream: Stream) -> None:
    """Fail if a batch is more than inputs and labels: it could tell a segment."""
    require([f.name for f in fields(Batch)] == ["x", "y"], "a Batch holds more than x and y")
    for number, batch in enumerate(stream.batches()):
        require(type(batch) is Batch, f"batch {number} is a {type(batch).__name__}, not a Batch")
        require(len(batch) > 0, f"batch {number} is empty")
        whole = batch.y.dtype in INTEGERS and batch.y.shape == (len(batch),)
        require(whole, f"batch {number} has labels {batch.y.dtype} of {tuple(batch.y.shape)}")
        require(int(batch.y.min()) >= 0, f"batch {number} has a negative label")


def check_inputs_alike(stream: Stream) -> None:
    """Fail unless all samples have one shape and dtype, bytes or finite floats."""
    first = next(stream.batches())
    kind = first.x.dtype
    require(kind in NUMBERS, f"inputs are {kind}, not bytes or floats")
    for number, batch in enumerate(stream.batches()):
        alike = batch.x.shape[1:] == first.x.shape[1:] and batch.x.dtype == kind
        require(alike, f"batch {number} has samples of another shape or dtype than the first")
        finite = kind == torch.uint8 or bool(torch.isfinite(batch.x).all())
        require(finite, f"batch {number} holds NaN or infinity")


def check_batch_is_the_callers(stream: Stream) -> None:
    """Fail if overwriting a batch changes the stream."""
    before = [Batch(b.x.clone(), b.y.clone()) for b in islice(stream.batches(), 3)]
    for batch in islice(stream.batches(), 3):
        batch.x.zero_()
        batch.y.zero_()
    for part in stream.held_out():
        part.x.zero_()
        part.y.zero_()
    again = list(islice(stream.batches(), 3))
    require(all(map(_same, before, again)), "overwriting a batch changed the stream")
    kept = any(bool(part.x.any()) for part in stream.held_out())
    require(kept, "overwriting held-out samples changed the stream")


def check_truth_describes_segments(stream: Stream) -> None:
    """Fail unless every segment has a start, and an origin with a name and labels."""
    truth = stream.truth()
    require(len(truth.origins) == len(truth.starts) > 0, "origins and starts do not match")
    require(truth.starts[0] == 0, f"the first segment starts at {truth.starts[0]}, not 0")
    rising = all(a <= b for a, b in pairwise(truth.starts))
    require(rising and truth.starts[-1] < len(stream), f"starts {truth.starts} are out of order")
    for table, what in ((truth.names, "name"), (truth.labels, "labels")):
        bare = set(truth.origins) - set(table)
        require(not bare, f"origins {sorted(bare)} have no {what}")


def check_truth_describes_batches(stream: Stream) -> None:
    """Fail unless a batch's composition adds up, and fits its labels and the starts."""
    truth = stream.truth()
    for number, batch in enumerate(stream.batches()):
        made = truth.composition(number)
        count = sum(made.values())
        require(count == len(batch), f"batch {number} of {len(batch)} is said to hold {count}")
        allowed = {label for origin in made for label in told_labels(truth, origin)}
        strange = set(batch.y.tolist()) - allowed
        require(not strange, f"batch {number} has labels {sorted(strange)} of no origin in it")
        now, ever = (set(), set(truth.origins)) if truth.blurry else _begun(truth, number)
        require(now <= set(made) <= ever, f"batch {number} holds {set(made)}, but {now} start")


def check_truth_describes_upsets(stream: Stream) -> None:
    """Fail unless gradual changes end after they start, and bursts lie in order between them."""
    truth = stream.truth()
    ends = truth.settled or truth.starts
    changes = list(zip(truth.starts, ends, strict=False))
    fits = len(ends) == len(truth.starts) and all(a <= b <= len(stream) for a, b in changes)
    require(fits, f"changes that start at {truth.starts} cannot end at {ends}")
    spans = [(0, 0), *truth.bursts, (len(stream), len(stream))]
    apart = all(a[1] <= b[0] for a, b in pairwise(spans)) and all(a < b for a, b in truth.bursts)
    require(apart, f"bursts {truth.bursts} are empty, out of order or outside the stream")
    for begin, end in truth.bursts:
        hides = any(begin < max(late, early + 1) and early < end for early, late in changes)
        require(not hides, f"the burst {begin} to {end} hides a change")
    strange = {*truth.alike, *truth.alike.values()} - set(truth.origins)
    require(not strange, f"origins {sorted(strange)} are alike, but never occur")


def check_held_out(stream: Stream) -> None:
    """Fail unless there are held-out samples of every origin, like those of the stream."""
    truth, held = stream.truth(), stream.held_out()
    first = next(stream.batches())
    require(
        sorted(part.origin for part in held) == sorted(set(truth.origins)),
        "held-out samples are not one part for every origin",
    )
    for part in held:
        require(len(part.x) == len(part.y) > 0, f"'{part.name}' has no held-out samples")
        alike = part.x.shape[1:] == first.x.shape[1:] and part.x.dtype == first.x.dtype
        require(alike, f"held-out samples of '{part.name}' are unlike the stream's")
        require(part.name == truth.names[part.origin], f"'{part.name}' is called otherwise too")
        same = set(part.y.tolist()) == set(told_labels(truth, part.origin))
        require(same, f"held-out labels of '{part.name}' are not those of its origin")


CHECKS: tuple[Check, ...] = (
    check_length,
    check_same_content_again,
    check_starts_anywhere,
    check_batches_plain,
    check_inputs_alike,
    check_batch_is_the_callers,
    check_truth_describes_segments,
    check_truth_describes_batches,
    check_truth_describes_upsets,
    check_held_out,
)


def _same(one: Batch, two: Batch) -> bool:
    return torch.equal(one.x, two.x) and torch.equal(one.y, two.y)


def _begun(truth: Truth, number: int) -> tuple[set[int], set[int]]:
    """Return the origins that start in a batch, and all that have started by then."""
    pairs = list(zip(truth.origins, truth.starts, strict=True))
    now = {origin for origin, start in pairs if start == number}
    return now, {origin for origin, start in pairs if start <= number}


def told_labels(truth: Truth, origin: int) -> Sequence[int]:
    """Return the labels a stream says for an origin: its own, or their places among them."""
    return range(len(truth.labels[origin])) if truth.local else truth.labels[origin]
