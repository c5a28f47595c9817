"""What a learner must refuse, and be exactly as it was before."""

from collections.abc import Callable, Iterator

import torch

from tame.checks.failure import CheckFailed, require, require_same, snapshot
from tame.checks.material import SIZE, there_and_back, world
from tame.errors import TameError
from tame.types import Batch, Learner

Make = Callable[[int], Learner]


def check_empty_refused(make: Make) -> None:
    """Fail unless a batch without samples is refused."""
    x, y = world(1)[0]
    _require_refused(make, Batch(x[:0], y[:0]), "an empty batch")


def check_nan_refused(make: Make) -> None:
    """Fail unless NaN and infinity in the inputs are refused, by name."""
    for value in (float("nan"), float("inf"), -float("inf")):
        x, y = world(1)[0]
        x[3, 2] = value
        for text in _require_refused(make, Batch(x, y), f"{value} in x"):
            require("NaN" in text, f"{value} in x was refused without naming NaN: {text}")


def check_wrong_shape_refused(make: Make) -> None:
    """Fail unless inputs that are not (samples, features...), or change shape, are refused."""
    x, y = world(1)[0]
    _require_refused(make, Batch(x[:, 0], y), "one-dimensional x")
    _require_refused(make, Batch(torch.tensor(1.0), torch.tensor(1)), "a single number")
    _require_refused(make, Batch(x[:, :7], y), "seven features after eight", early=False)
    _require_refused(make, Batch(x[:, :, None], y), "another dimension", early=False)


def check_wrong_dtype_refused(make: Make) -> None:
    """Fail unless inputs that are no bytes or floats, or change dtype, are refused."""
    x, y = world(1)[0]
    for kind in (torch.int64, torch.complex64, torch.bool):
        _require_refused(make, Batch(x.to(kind), y), f"x of {kind}")
    for kind in (torch.float64, torch.uint8):
        _require_refused(make, Batch(x.to(kind), y), f"{kind} after float32", early=False)


def check_wrong_labels_refused(make: Make) -> None:
    """Fail unless labels that are not one whole number of 0 or more a sample are refused."""
    x, y = world(1)[0]
    for labels, what in (
        (y.float(), "labels of float32"),
        (y + 0.5, "fractional labels"),
        (y > 0, "labels that are truth values"),
        (y - 4, "negative labels"),
        (y[:-1], "one label too few"),
        (torch.cat([y, y]), "twice as many labels"),
        (y.view(SIZE, 1), "two-dimensional labels"),
    ):
        _require_refused(make, Batch(x, labels), what)


def check_not_a_batch_refused(make: Make) -> None:
    """Fail unless `observe` refuses what is not a Batch."""
    _require_refused(make, tuple(world(1)[0]), "a pair of tensors")


def check_predict_refuses(make: Make) -> None:
    """Fail unless `predict` refuses what `observe` would, changing nothing."""
    x = world(1)[0].x
    broken = x.clone()
    broken[0, 0] = float("nan")
    learner = _busy(make)
    predict: Callable[..., object] = learner.predict
    for bad, what in ((broken, "NaN in x"), (x[:, :7], "seven features"), (x.long(), "int64 x")):
        before = snapshot(learner.state_dict())
        _refusal(predict, bad, f"predict took {what}")
        require_same(before, learner.state_dict(), f"refusing {what} changed the learner")


CHECKS: tuple[Callable[[Make], None], ...] = (
    check_empty_refused,
    check_nan_refused,
    check_wrong_shape_refused,
    check_wrong_dtype_refused,
    check_wrong_labels_refused,
    check_not_a_batch_refused,
    check_predict_refuses,
)


def _require_refused(make: Make, bad: object, what: str, *, early: bool = True) -> list[str]:
    """Check that learners refuse `bad`, `early` (before any data) too; return what they say."""
    said = []
    for learner, moment in _learners(make, early=early):
        before = snapshot(learner.state_dict())
        observe: Callable[..., object] = learner.observe
        said.append(_refusal(observe, bad, f"{what} was accepted {moment}"))
        require_same(before, learner.state_dict(), f"refusing {what} {moment} changed the learner")
    return said


def _learners(make: Make, *, early: bool) -> Iterator[tuple[Learner, str]]:
    if early:
        yield make(0), "before any data"
    yield _busy(make), "in mid-stream"


def _busy(make: Make) -> Learner:
    learner = make(0)
    for batch in there_and_back()[:5]:
        learner.observe(batch)
    return learner


def _refusal(call: Callable[..., object], bad: object, message: str) -> str:
    try:
        call(bad)
    except TameError as error:
        return str(error)
    except Exception as error:
        raise CheckFailed(f"not the package's own error but {error!r}: {message}") from error
    raise CheckFailed(message)
