"""The vocabulary: what flows between streams, learners, detectors and benchmarks.

A `Batch` holds inputs and labels and nothing else. The segment a batch came from is known to the
stream's `Truth`, which only the benchmarks read: task-agnosticism is held by these types.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Flag, StrEnum, auto
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from tame.errors import InputError

ArrayLike = Tensor | np.ndarray[Any, Any]
NetMaker = Callable[[tuple[int, ...], int], nn.Module]
When = Literal["ever", "now"]
State = dict[str, Any]


def as_tensor(values: Any, name: str) -> Tensor:
    """Return numbers of any kind as a tensor, sharing memory where that is safe.

    >>> as_tensor(["a"], "x")
    Traceback (most recent call last):
    ...
    tame.errors.InputError: x cannot be read as an array of numbers: ...
    """
    if isinstance(values, np.ndarray) and not values.flags.writeable:
        values = values.copy()
    try:
        return torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{name} cannot be read as an array of numbers: {error}") from error


@dataclass(frozen=True, slots=True)
class Batch:
    """Some inputs and their labels, exactly as the source holds them.

    >>> Batch([[0.0, 1.0]], [3])
    Batch(1 x (2,) float32, labels 3)
    """

    x: Tensor
    y: Tensor

    def __init__(self, x: Any, y: Any) -> None:
        object.__setattr__(self, "x", as_tensor(x, "x"))
        object.__setattr__(self, "y", as_tensor(y, "y"))

    def __len__(self) -> int:
        return len(self.x) if self.x.ndim else 0

    def __iter__(self) -> Iterator[Tensor]:
        yield self.x
        yield self.y

    def __repr__(self) -> str:
        labels = ", ".join(str(label) for label in self.y.unique().tolist()[:8])
        kind = str(self.x.dtype).removeprefix("torch.")
        return f"Batch({len(self)} x {tuple(self.x.shape[1:])} {kind}, labels {labels})"


class Change(StrEnum):
    """What a learner decided about a batch."""

    NONE = "none"
    SUSPECTED = "suspected"
    SWITCHED = "switched"
    RECRUITED = "recruited"
    WITHDRAWN = "withdrawn"
    MERGED = "merged"


class Observation(NamedTuple):
    """What happened to one batch.

    `loss` is that of the expert active when the batch came, before the batch trained anything;
    `smoothed` is compared with `threshold` (NaN while there is none); `expert` is the one that
    then learned from the batch (-1: it is held, and nobody has yet); `since` is the step a change
    is dated to: from there on batches belong to the expert of the change, whoever learned them.
    A suspicion ends with a switch, a recruit, a withdrawal, or with a batch learned as before.
    """

    step: int
    loss: float
    smoothed: float
    threshold: float
    expert: int
    change: Change = Change.NONE
    since: int | None = None
    restarted: bool = False


class Reading(NamedTuple):
    """One batch as a detector sees it: mean loss, its standard error, how many samples.

    `unseen` counts the labels among them that the expert asked was never taught.
    """

    loss: float
    error: float = 0.0
    samples: int = 1
    unseen: int = 0


class Verdict(NamedTuple):
    """A detector's answer: was it a shift, and which statistic met which threshold."""

    shift: bool
    statistic: float
    threshold: float


class Hints(Flag):
    """What a method must be told beyond the labelled stream. TAME: nothing."""

    NOTHING = 0
    BOUNDARY = auto()
    TRAIN_TASK = auto()
    TEST_TASK = auto()
    TASK_COUNT = auto()
    TEST_GROUP = auto()


@dataclass(frozen=True)
class Hint:
    """What a learner is told beyond the labelled stream; a field it did not declare stays None.

    Before the first batch of a segment: that there is a `boundary` here, the number of the `task`
    that begins (one that returns keeps its number), and how many different `tasks` there will be.
    With samples to predict: the `task` of all of them, or `group`: of the samples in their order,
    each run of so many is known to share a task.

    >>> Hint(task=3)
    Hint(boundary=None, task=3, tasks=None, group=None)
    """

    boundary: bool | None = None
    task: int | None = None
    tasks: int | None = None
    group: int | None = None


@dataclass(frozen=True)
class Sizes:
    """What a learner weighs: parameters and bytes, counted honestly.

    `nonzero` counts every non-zero parameter that prediction uses, biases and norms included;
    `paper_count` is the paper's nominal formula (dense parameters times the fraction kept).
    """

    nonzero: int = 0
    paper_count: int = 0
    dense: int = 0
    model_bytes: int = 0
    sample_bytes: int = 0
    training_bytes: int = 0
    samples: int = 0


@dataclass(frozen=True)
class Consolidation:
    """What one call of `consolidate` did, and what is left.

    `pruned` names the experts pruned anew and the attempts each took, `merged` those that turned
    out to be the same as another, and that other. Of budgets, `refused` counts newcomers there was
    no room for since the last time; `thinned` samples are left to an expert (0: no cap was hit).
    """

    experts: int
    pruned: Mapping[int, int] = field(default_factory=dict)
    selector_trained: bool = False
    sizes: Sizes = field(default_factory=Sizes)
    merged: Mapping[int, int] = field(default_factory=dict)
    refused: int = 0
    thinned: int = 0


class ShiftDetector(Protocol):
    """Decides, one reading at a time, whether an expert is still seeing its own data."""

    def fresh(self) -> Self: ...
    def accepts(self, reading: Reading) -> bool:
        """Say whether the reading would be ordinary; changes nothing."""
        ...

    def update(self, reading: Reading) -> Verdict:
        """Judge the reading; one that is a shift enters no baseline."""
        ...

    def rebase(self, readings: list[Reading]) -> None:
        """Forget the baseline and take these readings, known to be ordinary, instead."""
        ...

    def state_dict(self) -> State: ...
    def load_state_dict(self, state: State) -> None: ...


class Progress(Protocol):
    """Told how far long work has come."""

    def __call__(self, what: str, done: int, total: int) -> None: ...


def silent(what: str, done: int, total: int) -> None:
    """Report progress to nobody."""


class Learner(Protocol):
    """Anything that learns from a stream of batches and predicts labels."""

    hints: ClassVar[Hints]
    unbounded: ClassVar[bool]

    def observe(self, batch: Batch) -> Observation: ...
    def consolidate(self, progress: Progress = silent) -> Consolidation: ...
    def predict(self, x: ArrayLike, when: When = "ever") -> Tensor: ...
    def sizes(self) -> Sizes: ...
    def state_dict(self) -> State: ...
    def load_state_dict(self, state: State) -> None: ...


@runtime_checkable
class Informed(Protocol):
    """A learner that is told something in training: it declares BOUNDARY, TRAIN_TASK, TASK_COUNT.

    What it was told is part of its state: a learner saved and loaded is not told again.
    """

    def inform(self, hint: Hint) -> None: ...


@runtime_checkable
class AnswersTold(Protocol):
    """A learner that is told something with the samples: it declares TEST_TASK or TEST_GROUP."""

    def predict_told(self, x: ArrayLike, hint: Hint) -> Tensor:
        """Return labels, given what is known about the samples; changes nothing."""
        ...


@runtime_checkable
class HasExperts(Protocol):
    """A learner whose predictions go through experts, so that routing can be measured."""

    @property
    def expert_ids(self) -> tuple[int, ...]: ...
    def route(self, x: ArrayLike) -> Tensor: ...
    def predict_by(self, x: ArrayLike, expert: int) -> Tensor: ...


@dataclass(frozen=True)
class HeldOut:
    """Samples of one origin that no learner was trained on."""

    origin: int
    name: str
    x: Tensor
    y: Tensor


@dataclass(frozen=True)
class Truth:
    """What really happened in a stream, for the benchmarks alone.

    `origins[i]` is the distribution segment `i` was drawn from (a return repeats it), `starts[i]`
    the first batch that holds any of its samples, `names` and `labels` describe each origin; where
    labels are `local`, the stream says each one's place among its origin's.
    `settled[i]` is the first batch without any sample of the segment before (empty: every change
    is sudden); until then a change is under way. `bursts` are spans of batches (first, one past the
    last) that are spoiled without any change. `alike` names origins that are the same distribution
    as an earlier one. A `blurry` stream may hold samples of any origin at any time; `starts` then
    says where one begins to be the main one. `owners(step)`: the origin of each sample of a batch.
    """

    origins: tuple[int, ...]
    starts: tuple[int, ...]
    names: Mapping[int, str]
    labels: Mapping[int, tuple[int, ...]]
    composition: Callable[[int], Mapping[int, int]]
    local: bool = False
    settled: tuple[int, ...] = ()
    bursts: tuple[tuple[int, int], ...] = ()
    alike: Mapping[int, int] = field(default_factory=dict)
    blurry: bool = False
    owners: Callable[[int], Sequence[int]] | None = None


class Stream(Protocol):
    """A source of batches that can be started at any batch, always with the same content."""

    def __len__(self) -> int: ...
    def batches(self, start: int = 0) -> Iterator[Batch]: ...
    def truth(self) -> Truth: ...
    def held_out(self) -> list[HeldOut]: ...
