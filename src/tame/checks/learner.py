"""What every learner must do; see `learner_checks` for the whole list."""

import inspect
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from tame.checks import refusal, repetition, telling
from tame.checks.failure import (
    difference,
    generators_untouched,
    require,
    require_same,
    size,
    snapshot,
)
from tame.checks.material import SIZE, clone, identity, there_and_back, world
from tame.types import Batch, Learner, When

Make = Callable[[int], Learner]
Check = Callable[[Make], None]

LONG = 200
SLACK = 0.02
ENOUGH = 0.9


def check_learner(make: Make) -> None:
    """Run every check on learners that `make(seed)` returns.

    They must take vectors of eight floats, learn four clear classes within some sixty batches of
    sixteen, and be full (if they keep samples) after 3,200 of them.
    """
    for _, check in learner_checks():
        check(make)


def learner_checks() -> Iterator[tuple[str, Check]]:
    """Yield every check of a learner with its name.

    >>> next(learner_checks())[0]
    'check_input_untouched'
    """
    parts = (CHECKS, refusal.CHECKS, repetition.CHECKS, telling.CHECKS)
    yield from ((check.__name__, check) for checks in parts for check in checks)


def check_input_untouched(make: Make) -> None:
    """Fail if `observe` or `predict` changes the tensors it is given."""
    learner = make(0)
    for batch in world(3):
        given = clone(batch)
        given.x.requires_grad_()
        learner.observe(given)
        learner.predict(given.x)
        require(torch.equal(given.x, batch.x), "observe or predict changed the inputs")
        require(torch.equal(given.y, batch.y), "observe changed the labels")
        require(given.x.grad is None, "observe left a gradient in the inputs")


def check_batch_may_be_reused(make: Make) -> None:
    """Fail if overwriting a batch that was handed over reaches the learner."""
    learner, other = make(0), make(0)
    for batch in world(5):
        given = clone(batch)
        learner.observe(given)
        given.x.fill_(7.0)
        given.y.fill_(0)
        other.observe(batch)
    require_same(
        learner.state_dict(), other.state_dict(), "the learner holds on to the caller's memory"
    )


def check_predict_pure(make: Make) -> None:
    """Fail if `predict` changes anything or gives two answers."""
    learner = make(0)
    for moment in _moments(learner):
        before = snapshot(learner.state_dict())
        for when in _whens():
            x = world(1, seed=9)[0].x
            first, second = learner.predict(x, when=when), learner.predict(x, when=when)
            require(torch.equal(first, second), f"predict differs from itself {moment}")
        require_same(before, learner.state_dict(), f"predict changed the learner {moment}")


def check_predict_samples_apart(make: Make) -> None:
    """Fail if a sample's label depends on the samples that come with it."""
    learner = _taught(make)
    x = world(1, seed=9)[0].x
    together = learner.predict(x)
    alone = torch.cat([learner.predict(x[i : i + 1]) for i in range(len(x))])
    require(torch.equal(together, alone), "a sample is labelled differently alone")


def check_predicts_before_any_data(make: Make) -> None:
    """Fail unless every label is -1 before anything was observed."""
    for when in _whens():
        found = make(0).predict(world(1)[0].x, when=when)
        require(found.tolist() == [-1] * SIZE, f"predict before any data gave {found.tolist()}")


def check_predicts_at_every_moment(make: Make) -> None:
    """Fail unless `now` and `ever` answer with known labels, whatever has happened so far."""
    learner = make(0)
    for moment in _moments(learner):
        for when in _whens():
            found = learner.predict(world(1, seed=9)[0].x, when=when)
            _require_labels(found, range(-1, 4), f"predict(when='{when}') {moment}")


def check_predict_empty(make: Make) -> None:
    """Fail unless no samples get no labels."""
    learner = _taught(make)
    for when in _whens():
        found = learner.predict(world(1)[0].x[:0], when=when)
        require(found.shape == (0,), f"predicting no samples gave shape {tuple(found.shape)}")


def check_one_sample_at_a_time(make: Make) -> None:
    """Fail unless batches of a single sample are learned and predicted."""
    learner = make(0)
    for batch in world(30, size=1):
        learner.observe(batch)
    learner.consolidate()
    _require_labels(learner.predict(world(1)[0].x[:1]), range(4), "after single samples, predict")


def check_generators_untouched(make: Make) -> None:
    """Fail if a global generator of torch, numpy or Python is seeded or drawn from."""
    with generators_untouched("the learner"):
        _taught(make)


def check_observe_takes_a_batch_only(make: Make) -> None:
    """Fail if `observe` takes more than a batch: nothing tells a learner where it came from."""
    taken = list(inspect.signature(make(0).observe).parameters.values())
    single = len(taken) == 1 and taken[0].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    require(single, f"observe takes {[str(one) for one in taken]}, not a batch and nothing else")


def check_steps_counted(make: Make) -> None:
    """Fail unless observations count 0, 1, 2, ... and date a change no later than now."""
    learner = make(0)
    for number, batch in enumerate(there_and_back()):
        seen = learner.observe(batch)
        require(seen.step == number, f"batch {number} was counted as step {seen.step}")
        dated = seen.since is None or 0 <= seen.since <= number
        require(dated, f"a change at step {number} was dated to {seen.since}")


def check_memory_bounded(make: Make) -> None:
    """Fail if the state keeps growing on a stationary stream (unless declared `unbounded`)."""
    learner = make(0)
    if learner.unbounded:
        return
    stream = world(3 * LONG)
    for batch in stream[:LONG]:
        learner.observe(batch)
    early = size(learner.state_dict())
    for batch in stream[LONG:]:
        learner.observe(batch)
    late = size(learner.state_dict())
    text = f"{early} bytes of state after {LONG} batches became {late} after {3 * LONG}"
    require(late <= early * (1 + SLACK), f"{text}; declare `unbounded` if that is meant")


def check_new_labels_accepted(make: Make) -> None:
    """Fail unless labels never seen, of any size and number, are accepted."""
    learner = make(0)
    for batch in world(5):
        learner.observe(batch)
    labels = [10**12, 7, *range(100, 120)]
    learner.observe(Batch(world(1, size=len(labels))[0].x, labels))
    known = {*range(4), *labels}
    for _ in range(2):
        _require_labels(learner.predict(world(1)[0].x), known, "after new labels, predict")
        learner.consolidate()


def check_learns_identity(make: Make) -> None:
    """Fail unless it is learned that the label is the position of the largest input."""
    learner = make(0)
    for batch in identity(150):
        learner.observe(batch)
    learner.consolidate()
    fresh = identity(10, seed=1)
    right = torch.cat([learner.predict(batch.x) == batch.y for batch in fresh])
    share = float(right.float().mean())
    require(share > ENOUGH, f"the identity stream was learned to {share:.0%} only")


def check_consolidate_idempotent(make: Make) -> None:
    """Fail if a second `consolidate` with no data in between changes a bit."""
    learner = _taught(make)
    before = snapshot(learner.state_dict())
    labels = learner.predict(world(1)[0].x)
    learner.consolidate()
    require_same(before, learner.state_dict(), "a second consolidate changed the learner")
    same = torch.equal(labels, learner.predict(world(1)[0].x))
    require(same, "a second consolidate changed predictions")


def check_stream_goes_on(make: Make) -> None:
    """Fail unless learning goes on after `consolidate`, before any data and in mid-stream."""
    learner = make(0)
    learner.consolidate()
    for number, batch in enumerate(there_and_back()):
        learner.observe(batch)
        if number % 50 == 0:
            learner.consolidate()
    before = snapshot(learner.state_dict())
    learner.observe(world(1, seed=5)[0])
    require(difference(before, learner.state_dict()), "after consolidate nothing is learned")


def check_sizes(make: Make) -> None:
    """Fail unless sizes are counted at every moment, no part larger than the whole."""
    learner = make(0)
    for moment in _moments(learner):
        sizes = learner.sizes()
        require(min(vars(sizes).values()) >= 0, f"a negative size {moment}: {sizes}")
        require(sizes.nonzero <= sizes.dense, f"more non-zero than dense {moment}: {sizes}")


CHECKS: tuple[Check, ...] = (
    check_input_untouched,
    check_batch_may_be_reused,
    check_predict_pure,
    check_predict_samples_apart,
    check_predicts_before_any_data,
    check_predicts_at_every_moment,
    check_predict_empty,
    check_one_sample_at_a_time,
    check_generators_untouched,
    check_observe_takes_a_batch_only,
    check_steps_counted,
    check_memory_bounded,
    check_new_labels_accepted,
    check_learns_identity,
    check_consolidate_idempotent,
    check_stream_goes_on,
    check_sizes,
)


def _whens() -> tuple[When, ...]:
    return ("ever", "now")


def _taught(make: Make) -> Learner:
    learner = make(0)
    for batch in there_and_back():
        learner.observe(batch)
    learner.consolidate()
    return learner


def _moments(learner: Learner) -> Iterator[str]:
    """Yield the moments of a learner's life, naming each."""
    yield "before any data"
    stream = there_and_back()
    learner.observe(stream[0])
    yield "after one batch"
    for batch in stream[1:100]:
        learner.observe(batch)
    yield "in mid-stream"
    learner.consolidate()
    yield "after consolidating"
    for batch in stream[100:]:
        learner.observe(batch)
    yield "with the stream gone on"
    learner.consolidate()
    yield "after consolidating again"


def _require_labels(found: Tensor, known: object, what: str) -> None:
    allowed = set(known)  # type: ignore[call-overload]
    require(found.dtype == torch.int64, f"{what} gave {found.dtype}, not int64")
    strange = set(found.tolist()) - allowed
    require(not strange, f"{what} gave {sorted(strange)}, labels it never saw")
