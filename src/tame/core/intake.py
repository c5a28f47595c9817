"""What every learner does first: check a batch, and remember shape, dtype and labels."""

from typing import Any

import torch
from torch import Tensor

from tame.core.inputs import Inputs, InputStep
from tame.core.labels import LabelTable
from tame.errors import InputError
from tame.types import ArrayLike, Batch, State, as_tensor

NUMBERS = (torch.uint8, torch.float16, torch.bfloat16, torch.float32, torch.float64)
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


class Intake:
    """Refuses what cannot be learned from, before anything is changed.

    >>> intake = Intake(Inputs(), torch.device("cpu"))
    >>> intake.check(Batch([[0.0, float("nan")]], [0]))
    Traceback (most recent call last):
    ...
    tame.errors.InputError: x holds NaN or infinity ... in 1 of 1 samples; clean or drop them
    """

    def __init__(self, inputs: Inputs, device: torch.device) -> None:
        self.inputs = inputs
        self.device = device
        self.labels = LabelTable()
        self.shape: tuple[int, ...] = ()
        self.dtype: torch.dtype | None = None
        self.step: InputStep | None = None

    def check(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the batch, inputs where they are and labels on the host, or say what is wrong."""
        if not isinstance(batch, Batch):
            raise InputError(f"observe takes a Batch(x, y), not {type(batch).__name__}")
        x, y = batch
        if x.ndim == 0 or x.shape[0] == 0:
            raise InputError("the batch is empty; it needs at least one sample")
        labels = self._check_labels(y, x.shape[0])
        return self._check_numbers(x), labels

    def check_inputs(self, x: ArrayLike) -> Tensor:
        """Return inputs on the learner's device, or say what is wrong with them."""
        return self._check_numbers(as_tensor(x, "x")).to(self.device)

    def _check_numbers(self, x: Tensor) -> Tensor:
        x = x.detach()
        if x.dtype not in NUMBERS:
            raise InputError(f"x is {_name(x.dtype)}; it must be uint8 or floating point")
        if x.ndim < 2:  # noqa: PLR2004 (count, and at least one feature dimension)
            raise InputError(f"x has shape {tuple(x.shape)}; it must be (samples, features...)")
        if self.dtype is not None:
            self._check_same(x)
        if x.dtype != torch.uint8:
            bad = int((~torch.isfinite(x.to(torch.float32))).flatten(1).any(1).sum())
            if bad:
                raise InputError(
                    f"x holds NaN or infinity (or what is infinite in single precision) in {bad} "
                    f"of {len(x)} samples; clean or drop them"
                )
        return x

    def begin(self, x: Tensor) -> InputStep:
        """Return the input step for samples like these, without keeping anything."""
        if self.step is not None:
            return self.step
        return InputStep(self.inputs, tuple(x.shape[1:]), x.dtype).to(self.device)

    def keep(self, x: Tensor, step: InputStep, labels: list[int]) -> None:
        """Fix shape and dtype to those of the first batch, and open slots for new labels."""
        self.shape, self.dtype, self.step = tuple(x.shape[1:]), x.dtype, step
        step.follow(x)
        if labels:
            self.labels.open(labels)

    @property
    def ready(self) -> InputStep:
        """The input step, once a batch has been seen."""
        if self.step is None:
            raise InputError("nothing has been observed yet")
        return self.step

    def state_dict(self) -> State:
        trunk = None if self.step is None else self.step.trunk
        standard = None if self.step is None else self.step.standard
        gathered = {} if standard is None else {"standard": standard.state()}
        return {
            "shape": list(self.shape),
            "dtype": None if self.dtype is None else _name(self.dtype),
            "labels": self.labels.labels().tolist(),
            "trunk": None if trunk is None else dict(trunk.state_dict()),
            **gathered,
        }

    def load_state_dict(self, state: State) -> None:
        self.labels = LabelTable()
        self.shape, self.dtype, self.step = (), None, None
        if state["dtype"] is not None:
            kind: Any = getattr(torch, state["dtype"])
            empty = torch.empty(0, *state["shape"], dtype=kind)
            step = self.begin(empty)
            if step.trunk is not None:
                step.trunk.load_state_dict(state["trunk"])
            self.keep(empty, step, state["labels"])
            if step.standard is not None:
                step.standard.restore(state["standard"])

    def _check_same(self, x: Tensor) -> None:
        if tuple(x.shape[1:]) != self.shape:
            raise InputError(
                f"samples have shape {tuple(x.shape[1:])}; this learner takes {self.shape}"
            )
        if self.dtype is not None and x.dtype != self.dtype:
            raise InputError(f"x is {_name(x.dtype)}; this learner takes {_name(self.dtype)}")

    @staticmethod
    def _check_labels(y: Tensor, count: int) -> Tensor:
        if y.dtype not in INTEGERS:
            raise InputError(f"labels are {_name(y.dtype)}; they must be integers")
        if y.shape != (count,):
            raise InputError(f"{count} samples came with labels of shape {tuple(y.shape)}")
        labels = y.to("cpu", torch.int64)
        least = int(labels.numpy().min())
        if least < 0:
            raise InputError(f"label {least} is negative; labels are 0 or more")
        return labels


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
