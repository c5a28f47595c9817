"""The checks themselves: each catches the fault it is there for, and is in the list."""

import inspect
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from worlds import NET, small_settings

from tame import TAME, Batch, Deviation, Observation, Reading
from tame.checks import (
    CheckFailed,
    check_detector,
    check_stream,
    detector,
    detector_checks,
    learner,
    learner_checks,
    refusal,
    repetition,
    stream,
    stream_checks,
    telling,
)
from tame.checks.failure import difference, generators_untouched, size
from tame.errors import TameError
from tame.streams.split import Split
from tame.types import Truth, Verdict

LEARNER, DETECTOR, STREAM = (
    dict(checks()) for checks in (learner_checks, detector_checks, stream_checks)
)


@pytest.mark.parametrize(
    ("listed", "modules"),
    [
        (LEARNER, (learner, refusal, repetition, telling)),
        (DETECTOR, (detector,)),
        (STREAM, (stream,)),
    ],
)
def test_every_check_is_listed(listed: Any, modules: Any):
    whole = {"check_learner", "check_detector", "check_stream"}
    written = {
        name
        for module in modules
        for name, value in vars(module).items()
        if inspect.isfunction(value) and name.startswith("check_")
    }
    assert set(listed) == written - whole


def test_failure_is_ours_and_an_assertion():
    assert issubclass(CheckFailed, TameError)
    assert issubclass(CheckFailed, AssertionError)


def fault(check: str, **methods: Any):
    """Return a learner's fault: the check that finds it, and the methods that have it."""
    return pytest.param(check, methods, id=f"{check}-{'-'.join(methods)}")


def scribbling(self: Any, batch: Batch) -> Observation:
    batch.x.detach().mul_(2)
    return TAME.observe(self, batch)


def told(self: Any, batch: Batch, segment: int = 0) -> Observation:
    del segment
    return TAME.observe(self, batch)


def drawing(self: Any, batch: Batch) -> Observation:
    torch.rand(1)
    return TAME.observe(self, batch)


def hoarding(self: Any, batch: Batch) -> Observation:
    self.hoard = [*getattr(self, "hoard", []), batch.x]
    return TAME.observe(self, batch)


def hoard_state(self: Any):
    return TAME.state_dict(self) | {"hoard": getattr(self, "hoard", [])}


def gullible(self: Any, batch: Batch) -> Observation:
    return TAME.observe(self, Batch(batch.x.nan_to_num(), batch.y))


def hasty(self: Any, batch: Batch) -> Observation:
    self._step += 1
    try:
        return TAME.observe(self, batch)
    finally:
        self._step -= isinstance(batch, Batch) and len(batch) > 0


def coarse(self: Any, batch: Batch) -> Observation:
    x, y = batch
    return TAME.observe(self, Batch(x.float(), y.long().abs()))


def miscounting(self: Any, batch: Batch) -> Observation:
    return TAME.observe(self, batch)._replace(step=0)


def small_minded(self: Any, batch: Batch) -> Observation:
    if int(batch.y.max()) > 99:
        raise TameError("too many labels")
    return TAME.observe(self, batch)


def counting(self: Any, x: Any, when: Any = "ever"):
    self._step += 1
    return TAME.predict(self, x, when)


def comparing(self: Any, x: Any, when: Any = "ever"):
    return TAME.predict(self, torch.as_tensor(x) - torch.as_tensor(x).mean(0), when)


def guessing(self: Any, x: Any, when: Any = "ever"):
    return torch.zeros_like(TAME.predict(self, x, when))


def inventing(self: Any, x: Any, when: Any = "ever"):
    return TAME.predict(self, x, when) + 1


def restless(self: Any, progress: Any = None):
    del progress
    self._step += 1
    return TAME.consolidate(self)


def final(self: Any, batch: Batch) -> Observation:
    seen = TAME.observe(self, batch) if self._step < 100 else None
    return seen or Observation(self._step, 0.0, 0.0, 0.0, 0)


def forgetful(self: Any, state: Any):
    TAME.load_state_dict(self, state | {"step": 0})


def seedless(seed: int):
    del seed
    return TAME(net=NET, seed=0, settings=small_settings())


@pytest.mark.parametrize(
    ("check", "methods"),
    [
        fault("check_input_untouched", observe=scribbling),
        fault("check_predict_pure", predict=counting),
        fault("check_predict_samples_apart", predict=comparing),
        fault("check_predicts_before_any_data", predict=guessing),
        fault("check_predicts_at_every_moment", predict=inventing),
        fault("check_generators_untouched", observe=drawing),
        fault("check_observe_takes_a_batch_only", observe=told),
        fault("check_steps_counted", observe=miscounting),
        fault("check_memory_bounded", observe=hoarding, state_dict=hoard_state),
        fault("check_batch_may_be_reused", observe=hoarding, state_dict=hoard_state),
        fault("check_learns_identity", predict=guessing),
        fault("check_consolidate_idempotent", consolidate=restless),
        fault("check_stream_goes_on", observe=final),
        fault("check_empty_refused", observe=hasty),
        fault("check_nan_refused", observe=gullible),
        fault("check_wrong_dtype_refused", observe=coarse),
        fault("check_wrong_labels_refused", observe=coarse),
        fault("check_not_a_batch_refused", observe=coarse),
        fault("check_resumed_equals_uninterrupted", load_state_dict=forgetful),
        fault("check_state_loads_by_value", load_state_dict=forgetful),
    ],
)
def test_faulty_learner_is_caught(check: str, methods: Any):
    faulty = type("Faulty", (TAME,), methods)
    with pytest.raises(CheckFailed):
        LEARNER[check](lambda seed: faulty(net=NET, seed=seed, settings=small_settings()))


def test_refused_labels_are_caught():
    faulty = type("Faulty", (TAME,), {"observe": small_minded})
    with pytest.raises(TameError, match="too many labels"):
        LEARNER["check_new_labels_accepted"](
            lambda seed: faulty(net=NET, seed=seed, settings=small_settings())
        )


def test_seed_that_makes_no_difference_is_caught():
    with pytest.raises(CheckFailed, match="the seed makes no difference"):
        LEARNER["check_same_seed_same_state"](seedless)


def test_unbounded_memory_may_be_declared():
    methods = {"observe": hoarding, "state_dict": hoard_state, "unbounded": True}
    honest = type("Honest", (TAME,), methods)
    LEARNER["check_memory_bounded"](lambda seed: honest(net=NET, seed=seed))


@dataclass
class Printed(Deviation):
    """Line 11 as printed."""

    def update(self, reading: Reading) -> Verdict:
        verdict = super().update(reading)
        self._smoothed = verdict.statistic
        return verdict


@dataclass
class SmoothedWindow(Deviation):
    """A window of smoothed losses: a test three times tighter."""

    def update(self, reading: Reading) -> Verdict:
        verdict = super().update(reading)
        if not verdict.shift:
            self._losses.values[-1] = verdict.statistic
        return verdict


@dataclass
class Learning(Deviation):
    """Learns from being asked."""

    def accepts(self, reading: Reading) -> bool:
        return not self.update(reading).shift


@dataclass
class Sharing(Deviation):
    """Its fresh copy is itself."""

    def fresh(self):
        return self


@dataclass
class Stubborn(Deviation):
    """Keeps its past when rebased."""

    def rebase(self, readings: list[Reading]) -> None:
        for reading in readings:
            self._losses.append(reading.loss)


@dataclass
class Trusting(Deviation):
    """Takes NaN for an ordinary loss."""

    def update(self, reading: Reading) -> Verdict:
        if math.isnan(reading.loss):
            return Verdict(shift=False, statistic=0.0, threshold=0.0)
        return super().update(reading)


@dataclass
class Rounding(Deviation):
    """Loses digits in its state."""

    def state_dict(self):
        state = super().state_dict()
        return state | {"losses": [round(loss, 3) for loss in state["losses"]]}


@pytest.mark.parametrize(
    ("check", "make"),
    [
        ("check_accepts_pure", Learning),
        ("check_constant_loss_never_alarms", lambda: Deviation(floor=0.0)),
        ("check_step_alarms", lambda: Deviation(width=30.0)),
        ("check_normal_noise_never_alarms", SmoothedWindow),
        ("check_exponential_noise_never_alarms", SmoothedWindow),
        ("check_shift_enters_nothing", Printed),
        ("check_broken_loss_is_a_shift", Trusting),
        ("check_state_survives_json", Rounding),
        ("check_fresh", Sharing),
        ("check_rebase", Stubborn),
    ],
)
def test_faulty_detector_is_caught(check: str, make: Any):
    with pytest.raises(CheckFailed):
        DETECTOR[check](make)


class Wrapped:
    """A good stream to spoil one part of."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __len__(self) -> Any:
        return len(self.inner)

    def batches(self, start: int = 0):
        return self.inner.batches(start)

    def truth(self):
        return self.inner.truth()

    def held_out(self):
        return self.inner.held_out()


class TooLong(Wrapped):
    def __len__(self) -> Any:
        return len(self.inner) + 1


class Restless(Wrapped):
    def batches(self, start: int = 0):
        for x, y in self.inner.batches(start):
            yield Batch(x + torch.randint(0, 9, ()).to(torch.uint8), y)


class FromTheStart(Wrapped):
    def batches(self, start: int = 0):
        del start
        return self.inner.batches()


class Telling(Wrapped):
    def batches(self, start: int = 0):
        for x, y in self.inner.batches(start):
            yield (x, y, 0)


class Uneven(Wrapped):
    def batches(self, start: int = 0):
        for number, (x, y) in enumerate(self.inner.batches(start)):
            yield Batch(x.float() if number else x, y)


class Shared(Wrapped):
    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.kept = list(inner.batches())

    def batches(self, start: int = 0):
        return iter(self.kept[start:])


class LateStart(Wrapped):
    def truth(self):
        truth = self.inner.truth()
        return Truth(truth.origins, (1, 2), truth.names, truth.labels, truth.composition)


class Miscounted(Wrapped):
    def truth(self):
        truth = self.inner.truth()
        return Truth(truth.origins, truth.starts, truth.names, truth.labels, lambda _: {0: 90})


class HidesAChange(Wrapped):
    def truth(self):
        return replace(self.inner.truth(), bursts=((1, 3),))


class EndsBeforeItStarts(Wrapped):
    def truth(self):
        return replace(self.inner.truth(), settled=(0, 1))


class TwiceTheSame(Wrapped):
    def truth(self):
        return replace(self.inner.truth(), bursts=((1, 2), (1, 2)))


class LikeNone(Wrapped):
    def truth(self):
        return replace(self.inner.truth(), alike={1: 7})


class NothingHeld(Wrapped):
    def held_out(self):
        return self.inner.held_out()[:1]


@pytest.mark.parametrize(
    ("check", "spoil"),
    [
        ("check_length", TooLong),
        ("check_same_content_again", Restless),
        ("check_starts_anywhere", FromTheStart),
        ("check_batches_plain", Telling),
        ("check_inputs_alike", Uneven),
        ("check_batch_is_the_callers", Shared),
        ("check_truth_describes_segments", LateStart),
        ("check_truth_describes_batches", Miscounted),
        ("check_truth_describes_upsets", HidesAChange),
        ("check_truth_describes_upsets", EndsBeforeItStarts),
        ("check_truth_describes_upsets", TwiceTheSame),
        ("check_truth_describes_upsets", LikeNone),
        ("check_held_out", NothingHeld),
    ],
)
def test_faulty_stream_is_caught(check: str, spoil: Any):
    good = Split(order=(0, 1), batch=400).open(seed=0)
    STREAM[check](Wrapped(good))
    with pytest.raises(CheckFailed):
        STREAM[check](spoil(good))


def test_whole_suites_run_the_list():
    check_stream(Split(order=(0, 1), batch=400).open(seed=0))
    with pytest.raises(CheckFailed):
        check_stream(NothingHeld(Split(order=(0, 1), batch=400).open(seed=0)))
    with pytest.raises(CheckFailed):
        check_detector(Printed)
    with pytest.raises(CheckFailed):
        learner.check_learner(seedless)


@pytest.mark.parametrize(
    ("one", "two", "place"),
    [
        ({"a": torch.zeros(2)}, {"a": torch.zeros(2)}, None),
        ({"a": torch.zeros(2)}, {"a": -torch.zeros(2)}, "state.a"),
        ({"a": torch.zeros(2)}, {"a": torch.zeros(2).double()}, "state.a"),
        ({"a": torch.zeros(2)}, {"a": torch.zeros(1, 2)}, "state.a"),
        ({"a": 0.0}, {"a": -0.0}, "state.a"),
        ({"a": 1}, {"a": 1.0}, "state.a"),
        ({"a": 1}, {"a": 1, "b": 2}, "state"),
        ([[1, 2]], [[1, 2, 3]], "state.0"),
        (torch.empty(0), torch.empty(0), None),
        (torch.tensor(3), torch.tensor(3), None),
        (torch.full((2,), math.nan), torch.full((2,), math.nan), None),
    ],
)
def test_difference_is_bit_for_bit(one: Any, two: Any, place: Any):
    assert difference(one, two) == place


def test_difference_sees_memory_formats():
    one = torch.zeros(2, 3, 4, 4)
    assert difference(one, one.contiguous(memory_format=torch.channels_last)) == "state"


@pytest.mark.parametrize(
    "touch",
    [lambda: torch.rand(1), lambda: np.random.rand(1), lambda: torch.manual_seed(5)],  # noqa: NPY002
)
def test_touched_generators_are_caught(touch: Any):
    with (
        pytest.raises(CheckFailed, match="the body touched the global"),
        generators_untouched("the body"),
    ):
        touch()


def test_size_counts_tensors_and_values():
    assert size({"a": torch.zeros(3), "b": [1, 2.0, None]}) == 3 * 4 + 3 * 8
