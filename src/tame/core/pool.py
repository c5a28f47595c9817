"""The experts: one active, some awake, the settled ones packed on a shelf."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import overload

import numpy as np
from torch import Tensor, nn

from tame.core.expert import Expert
from tame.core.memories import join, split
from tame.core.network import Blueprint
from tame.core.packing import pack, unpack
from tame.core.probe import Known, Readings, Sleeper
from tame.core.reservoir import Reservoir
from tame.core.settings import Settings
from tame.core.shelf import Record, Shelf
from tame.engine.lesson import Lesson
from tame.engine.together import Team
from tame.nets.weights import left_blank
from tame.types import State

OPEN = 8


class ExpertPool:
    """Holds every expert ever recruited; ids count up and are never reused.

    An expert that is consolidated while it is not active is put on the shelf, packed. It is opened
    when it is asked for, and awake again once it is switched to; what is opened without that stays
    in a cache of eight, and whatever is done to it is forgotten.
    """

    def __init__(self, plan: Blueprint, settings: Settings) -> None:
        self.plan = plan
        self._settings = settings
        self._next = 0
        self._awake: dict[int, Expert] = {}
        self._memories: dict[int, Reservoir] = {}  # of those on the shelf
        self._opened: OrderedDict[int, Expert] = OrderedDict()
        self._room: int = settings.pruner.memory
        self._elsewhere: int | None = None  # bytes in the reservoirs of inactive experts
        self.shelf = self._shelf_of([])
        self.active = self.recruit()

    @property
    def ids(self) -> list[int]:
        """The ids of all experts, oldest first."""
        return sorted([*self._awake, *self._memories])

    @property
    def experts(self) -> "Roster":
        """All experts, oldest first; those on the shelf are opened as they are asked for."""
        return Roster(self)

    @property
    def awake(self) -> list[Expert]:
        """The experts that are not on the shelf, oldest first."""
        return [self._awake[number] for number in sorted(self._awake)]

    @property
    def memories(self) -> list[Reservoir]:
        """Every expert's reservoir."""
        return [*self._memories.values(), *(expert.memory for expert in self._awake.values())]

    def open(self, number: int) -> Expert:
        """Return the expert of that id, unpacked if it is on the shelf."""
        if number in self._awake:
            return self._awake[number]
        if number not in self._opened:
            memory = self._memories[number]
            found = unpack(self.shelf, number, self.plan, self._settings, memory)
            self._opened[number] = found
            while len(self._opened) > OPEN:
                self._opened.popitem(last=False)
        self._opened.move_to_end(number)
        return self._opened[number]

    def familiar(
        self, lesson: Lesson, rank: Callable[[Lesson], Tensor] | None = None
    ) -> Expert | None:
        """Return an inactive expert that knows the batch, or None; trains nothing.

        Where there are more than the settings' `shortlist`, only as many are tried: those that
        `rank` (one number for each id) puts first.
        """
        others = [number for number in self.ids if number != self.active.id]
        if rank is not None and 0 < self._settings.shortlist < len(others):
            others = self._likeliest(others, rank(lesson))
        self._widen(others, lesson.live)
        candidates = [self._candidate(number) for number in others]
        readings = Readings(candidates, lesson, self.plan)
        found = self._settings.matcher.find(candidates, readings)
        return None if found is None else self.open(others[found])

    def switch(self, expert: Expert) -> Expert:
        """Make a known expert the active one."""
        self.active.network.forget()
        if expert.id in self._memories:
            self._memories.pop(expert.id)
            self._awake[expert.id] = expert
            self._restock([])
        self.active, self._elsewhere = expert, None
        return expert

    def recruit(self) -> Expert:
        """Add a new expert and make it the active one."""
        if self._awake:
            self.active.network.forget()
        self.active = Expert(self._next, self.plan, self._settings)
        self.active.memory.thin(self._room)
        self._awake[self._next] = self.active
        self._next += 1
        self._elsewhere = None
        return self.active

    def shelve(self) -> None:
        """Put every inactive expert that has settled on the shelf; its optimiser's state goes."""
        idle = [expert for expert in self.awake if expert is not self.active]
        settled = [expert for expert in idle if expert.is_settled]
        for expert in settled:
            expert.memory.rest()
            self._memories[expert.id] = self._awake.pop(expert.id).memory
        if settled:
            self._restock([pack(expert) for expert in settled])

    def thin(self, most: int) -> None:
        """Halve every reservoir until together they take no more than so many bytes."""
        if self._elsewhere is None:
            self._elsewhere = self._weigh_others()
        while self._elsewhere + self.active.memory.nbytes() > most and self._room > 1:
            self._room //= 2
            for memory in self.memories:
                memory.thin(self._room)
            self._elsewhere = self._weigh_others()

    def state_dict(self) -> State:
        numbers = sorted(self._memories)
        return {
            "next": self._next,
            "active": self.active.id,
            "room": self._room,
            "experts": [expert.state_dict() for expert in self.awake],
            "shelf": self.shelf.state(),
            "memories": join([self._memories[number] for number in numbers]),
        }

    def load_state_dict(self, state: State) -> None:
        self._opened.clear()
        self._room = state.get("room", self._settings.pruner.memory)  # format 1 has none
        self._awake = {kept["id"]: self._restored(kept) for kept in state["experts"]}
        self._memories, self.shelf = {}, self._shelf_of([])
        if "shelf" in state:
            team = self.plan.team if len(state["shelf"]["ids"]) else Team()
            self.shelf = Shelf(_owned(state["shelf"]), self._frame, team)
            memories = split(state["memories"], self._room)
            numbers = (int(number) for number in self.shelf.ids)
            self._memories = dict(zip(numbers, memories, strict=True))
        self._next = state["next"]
        self.active, self._elsewhere = self._awake[state["active"]], None

    def _candidate(self, number: int) -> Known:
        if number in self._awake:
            return self._awake[number]
        return Sleeper(self.shelf, number, self._settings.detector.fresh())

    def _likeliest(self, others: Sequence[int], scores: Tensor) -> list[int]:
        """Return the best of them by score, oldest first."""
        places = {number: place for place, number in enumerate(self.ids)}
        values = scores.cpu().numpy()[[places[number] for number in others]]
        best = np.argsort(-values, kind="stable")[: self._settings.shortlist]
        return [others[place] for place in sorted(best.tolist())]

    def _widen(self, numbers: Sequence[int], live: int) -> None:
        """Give networks an output for every live slot, as one that learns would get it."""
        changed = []
        for number in numbers:
            if number in self._awake:
                self._awake[number].network.grow(live)
            elif self.shelf.layout(self.shelf.row(number)).slots < live:
                expert = self.open(number)
                expert.network.grow(live)
                changed.append(pack(expert))
        if changed:
            self._restock(changed)

    def _restock(self, changed: Sequence[Record]) -> None:
        """Make the shelf anew, of the experts that belong there and these in their present form."""
        new = {record.id for record in changed}
        stay = [number for number in self._memories if number in self.shelf and number not in new]
        self.shelf = self._shelf_of([*self.shelf.records(stay), *changed])
        self._opened.clear()
        self._elsewhere = None

    def _shelf_of(self, records: Sequence[Record]) -> Shelf:
        return Shelf.of(records, self._frame, self.plan.team if records else Team())

    def _frame(self, slots: int) -> nn.Module:
        with left_blank():  # it is run with weights in place of its own
            return self.plan.build(slots, "frame")

    def _restored(self, state: State) -> Expert:
        expert = Expert(state["id"], self.plan, self._settings)
        expert.memory.thin(self._room)
        expert.load_state_dict(state)
        return expert

    def _weigh_others(self) -> int:
        own = self.active.memory
        return sum(memory.nbytes() for memory in self.memories if memory is not own)


class Roster(Sequence[Expert]):
    """The experts of a pool in order, each opened when it is asked for."""

    def __init__(self, pool: ExpertPool) -> None:
        self._pool = pool
        self._ids = pool.ids

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[Expert]:
        return (self._pool.open(number) for number in self._ids)

    @overload
    def __getitem__(self, place: int) -> Expert: ...
    @overload
    def __getitem__(self, place: slice) -> list[Expert]: ...
    def __getitem__(self, place: int | slice) -> Expert | list[Expert]:
        if isinstance(place, slice):
            return [self._pool.open(number) for number in self._ids[place]]
        return self._pool.open(self._ids[place])


def _owned(state: State) -> State:
    """Return a state whose tensors no other holds."""
    return {k: v.clone() if isinstance(v, Tensor) else v for k, v in state.items()}
