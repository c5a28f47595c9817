"""The active expert as it was some batches ago, so that what it learned since can be undone."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tame.core.accounting import tensor_bytes
from tame.core.expert import Expert, as_mark
from tame.core.mark import Level, Mark
from tame.types import State

_PLAIN = {int, float, bool, str, type(None)}


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

    def add(self, taken: Snapshot) -> None:
        """Keep a snapshot, and drop what it makes too old."""
        self._kept.append(taken)
        while len(self._kept) > 1 and self._kept[1].step <= taken.step - self._horizon:
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


def take(step: int, expert: Expert, level: Level) -> Snapshot:
    """Return a snapshot of an expert that has not met the batch of this step."""
    mark = level.mark(expert.counts, expert.network.plan.training.output)
    return Snapshot(step, cloned(expert.brief()), level.state_dict(), mark)


def cloned(state: Any) -> Any:
    """Return a state in memory of its own; tensors of a kind are copied in one call, to one place.

    >>> state = {"a": torch.zeros(2), "b": [torch.ones(2), 3]}
    >>> copy = cloned(state)
    >>> state["a"].add_(1), copy
    (tensor([1., 1.]), {'a': tensor([0., 0.]), 'b': [tensor([1., 1.]), 3]})
    """
    found: dict[tuple[torch.device, torch.dtype], list[Tensor]] = {}
    _collect(state, found)
    copies = {kind: iter(_copied(tensors)) for kind, tensors in found.items()}
    return _filled(state, copies)


def _collect(state: Any, found: dict[tuple[torch.device, torch.dtype], list[Tensor]]) -> None:
    if isinstance(state, Tensor):
        found.setdefault((state.device, state.dtype), []).append(state.detach())
    elif isinstance(state, dict):
        for value in state.values():
            _collect(value, found)
    elif isinstance(state, list) and not set(map(type, state)) <= _PLAIN:
        for value in state:
            _collect(value, found)


def _filled(state: Any, copies: dict[tuple[torch.device, torch.dtype], Iterator[Tensor]]) -> Any:
    """Return a state with the copies in place of its tensors, in the order of collecting."""
    if isinstance(state, Tensor):
        return next(copies[state.device, state.dtype])
    if isinstance(state, dict):
        return {key: _filled(value, copies) for key, value in state.items()}
    if isinstance(state, list):
        plain = set(map(type, state)) <= _PLAIN
        return state.copy() if plain else [_filled(value, copies) for value in state]
    return state


def _copied(tensors: list[Tensor]) -> list[Tensor]:
    """Return copies of tensors of one kind, one behind the other in memory, laid out alike."""
    dense = [tensor if _is_dense(tensor) else tensor.contiguous() for tensor in tensors]
    room = dense[0].new_empty(sum(tensor.numel() for tensor in dense))
    begin, places = 0, []
    for tensor in dense:
        places.append(room.as_strided(tensor.size(), tensor.stride(), begin))
        begin += tensor.numel()
    torch._foreach_copy_(places, dense)
    return places


def _is_dense(tensor: Tensor) -> bool:
    """Say whether a tensor fills its memory without holes."""
    return tensor.is_contiguous() or tensor.is_contiguous(memory_format=torch.channels_last)
