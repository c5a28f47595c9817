"""The active expert as it was some batches ago, so that what it learned since can be undone."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tame.core.accounting import tensor_bytes
from tame.core.expert import Expert, as_mark
from tame.core.mark import Level, Mark
from tame.types import State

_NESTED = (Tensor, dict, list)


class Snapshot(NamedTuple):
    """An expert before it met the batch of a step, without its memory."""

    step: int
    expert: State
    level: State
    mark: Mark | None


class Ring:
    """Snapshots of one expert, one every `spacing` batches and none older than needed.

    Besides those of the last `horizon` batches one older is kept: the newest before them.
    """

    def __init__(self, spacing: int, horizon: int) -> None:
        self._spacing = spacing
        self._horizon = horizon
        self._kept: list[Snapshot] = []

    def __len__(self) -> int:
        return len(self._kept)

    def clear(self) -> None:
        """Forget everything: another expert is active, or this one began anew."""
        self._kept = []

    def is_due(self, step: int) -> bool:
        """Say whether it is time for a snapshot."""
        return not self._kept or step - self._kept[-1].step >= self._spacing

    def note(self, step: int, expert: Expert, level: Level) -> None:
        """Take a snapshot before the batch of this step."""
        mark = level.mark(expert.counts, expert.network.plan.training.output)
        self._kept.append(Snapshot(step, cloned(expert.brief()), level.state_dict(), mark))
        while len(self._kept) > 1 and self._kept[1].step <= step - self._horizon:
            self._kept.pop(0)

    @property
    def oldest(self) -> Snapshot | None:
        """The oldest snapshot, if there is one."""
        return self._kept[0] if self._kept else None

    def before(self, step: int) -> Snapshot | None:
        """Return the newest snapshot from before the batch of a step was learned, if any."""
        found = [kept for kept in self._kept if kept.step <= step]
        return found[-1] if found else None

    def __reversed__(self) -> Iterator[Snapshot]:
        return reversed(self._kept)

    def nbytes(self) -> int:
        """Return the bytes of all snapshots."""
        return sum(tensor_bytes(kept.expert) for kept in self._kept)

    def state_dict(self) -> State:
        return {
            "kept": [
                {**kept._asdict(), "mark": None if kept.mark is None else list(kept.mark)}
                for kept in self._kept
            ]
        }

    def load_state_dict(self, state: State) -> None:
        self._kept = [
            Snapshot(kept["step"], cloned(kept["expert"]), kept["level"], as_mark(kept["mark"]))
            for kept in state["kept"]
        ]


def cloned(state: Any) -> Any:
    """Return a state in memory of its own; all its tensors are copied in one call."""
    found: list[tuple[Tensor, Tensor]] = []
    copy = _blank(state, found)
    if found:
        torch._foreach_copy_([to for to, _ in found], [of for _, of in found])
    return copy


def _blank(state: Any, found: list[tuple[Tensor, Tensor]]) -> Any:
    """Return a state whose tensors are yet to be filled, and note what with."""
    if isinstance(state, Tensor):
        blank = torch.empty_like(state, requires_grad=False)
        found.append((blank, state.detach()))
        return blank
    if isinstance(state, dict):
        return {
            key: _blank(value, found) if isinstance(value, _NESTED) else value
            for key, value in state.items()
        }
    if isinstance(state, list):
        return [_blank(part, found) if isinstance(part, _NESTED) else part for part in state]
    return state
