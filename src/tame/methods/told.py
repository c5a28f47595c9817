"""What a method was told in training: the present task, and which labels each task has."""

from collections.abc import Iterable

import torch
from torch import Tensor

from tame.errors import InputError
from tame.types import Hint, State

UNTOLD = 0
RULED_OUT = -1e9  # in place of minus infinity, so that a wrong mask gives a large loss and no NaN


class Told:
    """The task that was told last, and the label slots seen while each task was told.

    Before anything is told there is one task, number 0.

    >>> told = Told()
    >>> told.hear(Hint(task=1))
    >>> told.see(torch.tensor([2, 0]))
    >>> told.allowed([1, 5], 3)
    tensor([[ True, False,  True],
            [ True,  True,  True]])
    """

    def __init__(self) -> None:
        self.task = UNTOLD
        self._slots: dict[int, list[int]] = {}

    def hear(self, hint: Hint) -> None:
        """Take the number of the task that begins, if it is told."""
        check_hint(hint)
        if hint.task is not None:
            self.task = hint.task

    def see(self, slots: Tensor) -> None:
        """Note the labels of a batch as labels of the present task."""
        known = self._slots.setdefault(self.task, [])
        known += [slot for slot in slots.unique().tolist() if slot not in known]

    def allowed(self, tasks: Iterable[int], live: int) -> Tensor:
        """Return for each of these tasks which slots are its labels; all, if it was never told."""
        tasks = list(tasks)
        rows = torch.zeros(len(tasks), live, dtype=torch.bool)
        for row, task in zip(rows, tasks, strict=True):
            row[self._slots.get(task, slice(None))] = True
        return rows

    def state_dict(self) -> State:
        return {"task": self.task, "slots": [[task, *s] for task, s in self._slots.items()]}

    def load_state_dict(self, state: State) -> None:
        self.task = state["task"]
        self._slots = {task: list(slots) for task, *slots in state["slots"]}


def masked(scores: Tensor, allowed: Tensor) -> Tensor:
    """Return scores with those of labels that are not allowed out of reach, as the paper does.

    `allowed` is a row for all samples or one for each, as `Told.allowed` returns them.

    >>> masked(torch.tensor([[1.0, 5.0]]), torch.tensor([[True, False]])).argmax(1)
    tensor([0])
    """
    return scores.masked_fill(~allowed.to(scores.device), RULED_OUT)


def check_hint(hint: Hint) -> None:
    """Refuse what is no hint, or a task or group that is no number."""
    if not isinstance(hint, Hint):
        raise InputError(f"a learner is told a Hint, not {type(hint).__name__}")
    for name, least in (("task", 0), ("tasks", 1), ("group", 1)):
        value = getattr(hint, name)
        whole = isinstance(value, int) and not isinstance(value, bool)
        if value is not None and not (whole and value >= least):
            raise InputError(f"{name} is a whole number, {least} or more, not {value!r}")
