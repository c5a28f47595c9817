"""How known experts read a batch: many in one call where that pays, and none before it is asked."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tame.core.blueprint import Blueprint
from tame.core.expert import Expert, as_mark, padded, unseen
from tame.core.mark import Mark
from tame.core.shelf import Shelf
from tame.engine.eager import half, wants_half
from tame.engine.lesson import Lesson
from tame.engine.losses import among_taught, read, sample_losses
from tame.engine.together import run_together, stack
from tame.types import Reading, ShiftDetector

MANY = 64


class Sleeper:
    """A packed expert as a candidate: its row on the shelf, and its detector when asked for."""

    def __init__(self, shelf: Shelf, number: int, detector: ShiftDetector) -> None:
        self.id = number
        self.shelf = shelf
        self.row = shelf.row(number)
        self._fresh = detector

    @cached_property
    def detector(self) -> ShiftDetector:
        """Its detector, as it was packed."""
        self._fresh.load_state_dict(self.shelf.rest(self.row)["detector"])
        return self._fresh

    @property
    def mark(self) -> Mark | None:
        """What losses it was used to when it was packed."""
        return as_mark(self.shelf.rest(self.row).get("mark"))

    @property
    def kind(self) -> int:
        """A number that it has in common with those it can be run with."""
        return self.shelf.kind(self.row)

    @property
    def taught(self) -> np.ndarray:
        """Which slots it has been taught."""
        taught: np.ndarray = self.shelf.taught[self.row]
        return taught


Known = Expert | Sleeper


class Readings:
    """One reading for each candidate; a matcher that stops early pays for no more than it read.

    Networks that are small, and of one architecture, read the batch in one batched call where
    that is faster (see `engine.together`); others one after another. A packed expert is not
    changed: an output it has no slot for yet reads as 0. With `own`, each is read among the labels
    it was taught, so that labels that came up since do not make its own data look strange.
    """

    def __init__(
        self, candidates: Sequence[Known], lesson: Lesson, plan: Blueprint, *, own: bool = False
    ) -> None:
        self._candidates = candidates
        self._lesson = lesson
        self._plan = plan
        self._own = own
        self._found: list[Reading] = []
        self._rest = self._groups()

    def __len__(self) -> int:
        return len(self._candidates)

    def __getitem__(self, place: int) -> Reading:
        if not 0 <= place < len(self):
            raise IndexError(place)
        while len(self._found) <= place:
            self._found += self._measure(next(self._rest))
        return self._found[place]

    def __iter__(self) -> Iterator[Reading]:
        return (self[place] for place in range(len(self)))

    def _groups(self) -> Iterator[list[Known]]:
        """Yield candidates in order, those that can be run together in one list."""
        most = MANY if self._plan.team.pays(len(self._lesson)) else 1
        for _, alike in groupby(self._candidates, key=_kind):
            found = list(alike)
            for begin in range(0, len(found), most):
                yield found[begin : begin + most]

    @torch.no_grad()
    def _measure(self, group: list[Known]) -> list[Reading]:
        first = group[0]
        if len(group) == 1 and isinstance(first, Expert) and not self._own:
            return [first.measure(self._lesson, keep=False)]
        with half(self._lesson.device, enabled=self._half):
            outputs = self._outputs(group)
        return [
            reading._replace(unseen=unseen(self._lesson, one.taught))
            for one, reading in zip(group, self._read(group, outputs), strict=True)
        ]

    def _outputs(self, group: list[Known]) -> Tensor:
        ready, first = self._lesson.ready, group[0]
        if isinstance(first, Sleeper):
            if len(group) == 1:
                return first.shelf.ask(first.row, ready).unsqueeze(0)
            rows = [one.row for one in group if isinstance(one, Sleeper)]
            return first.shelf.ask_together(rows, ready, shared=True)
        nets = [one.network.net.eval() for one in group if isinstance(one, Expert)]
        if len(nets) == 1:
            return nets[0](ready).unsqueeze(0)  # type: ignore[no-any-return]
        return run_together(nets[0], stack(nets), ready, shared=True)

    def _read(self, group: list[Known], outputs: Tensor) -> list[Reading]:
        lesson, form = self._lesson, self._plan.training.output
        missing = max(0, lesson.live - outputs.shape[-1])
        live = F.pad(outputs[..., : lesson.live], (0, missing)).to(lesson.ready.dtype)
        target = lesson.target.expand(len(live), -1)
        if self._own:
            rows = [padded(one.taught, lesson.live) for one in group]
            taught = torch.from_numpy(np.stack(rows)).to(live.device)
            live = among_taught(live, target, taught[:, None], form)
        losses = sample_losses(live.flatten(0, 1), target.flatten(), form)
        told = self._plan.world.as_first(losses.view(len(live), -1).cpu())
        return [read(row) for row in told]

    @cached_property
    def _half(self) -> bool:
        return wants_half(self._net, self._plan.training.precision)

    @property
    def _net(self) -> nn.Module:
        first = self._candidates[0]
        return first.network.net if isinstance(first, Expert) else first.shelf.frame(first.row)


def _kind(candidate: Known) -> tuple[bool, int]:
    if isinstance(candidate, Expert):
        return False, candidate.network.slots
    return True, candidate.kind
