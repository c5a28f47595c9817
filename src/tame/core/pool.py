"""The experts: one active, some awake, the settled ones packed on a shelf."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import overload

import numpy as np
from torch import Tensor, nn

from tame.core.blueprint import Blueprint
from tame.core.expert import Expert
from tame.core.memories import Memories
from tame.core.packing import pack, unpack
from tame.core.probe import Known, Readings, Sleeper
from tame.core.settings import Settings
from tame.core.shelf import Record, Shelf
from tame.core.soundness import check_shelf
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
        self._memories = Memories()  # of those on the shelf
        self._opened: OrderedDict[int, Expert] = OrderedDict()
        self._room: int = settings.pruner.memory
        self._elsewhere: int | None = None  # bytes in the reservoirs of inactive experts
        self.shelf = self._shelf_of([])
        self.active = self.recruit()

    @property
    def ids(self) -> list[int]:
        """The ids of all experts, oldest first."""
        return sorted([*self._awake, *self.shelf.ids.tolist()])

    @property
    def experts(self) -> "Roster":
        """All experts, oldest first; those on the shelf are opened as they are asked for."""
        return Roster(self)

    @property
    def awake(self) -> list[Expert]:
        """The experts that are not on the shelf, oldest first."""
        return [self._awake[number] for number in sorted(self._awake)]

    def samples(self) -> tuple[int, int]:
        """Return the bytes and the number of all samples kept."""
        awake = [expert.memory for expert in self._awake.values()]
        held = self._memories.nbytes() + sum(memory.nbytes() for memory in awake)
        return held, self._memories.samples() + sum(map(len, awake))

    def open(self, number: int) -> Expert:
        """Return the expert of that id, unpacked if it is on the shelf."""
        if number in self._awake:
            return self._awake[number]
        if number not in self._opened:
            memory = self._memories.take(number, self._room)
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
        candidates = self.candidates(lesson, rank)
        readings = Readings(candidates, lesson, self.plan)
        found = self._settings.matcher.find(candidates, readings)
        return None if found is None else self.open(candidates[found].id)

    def candidates(
        self, lesson: Lesson, rank: Callable[[Lesson], Tensor] | None = None
    ) -> list[Known]:
        """Return the inactive experts, or those on the shortlist, ready to read the batch."""
        others = [number for number in self.ids if number != self.active.id]
        if rank is not None and 0 < self._settings.shortlist < len(others):
            others = self._likeliest(others, rank(lesson))
        return self.known(others, lesson.live)

    def known(self, numbers: Sequence[int], live: int) -> list[Known]:
        """Return the experts of these ids as candidates, with room for so many labels."""
        return [self._candidate(number, live) for number in numbers]

    def switch(self, expert: Expert) -> Expert:
        """Make a known expert the active one."""
        self.active.forget()
        self.active = self._wake(expert)
        return self.active

    def _wake(self, expert: Expert) -> Expert:
        """Take an expert off the shelf, if it is there."""
        if expert.id in self.shelf:
            self._memories.drop(expert.id)
            self.shelf = self.shelf.without(expert.id)
            self._opened.pop(expert.id, None)
        self._elsewhere = None
        return self._awake.setdefault(expert.id, expert)

    def recruit(self) -> Expert:
        """Add a new expert and make it the active one."""
        newcomer = Expert(self._next, self.plan, self._settings)
        if self._awake:
            self.active.forget()
            if newcomer.network.begin_as(self.active.network):
                newcomer.trial.wait(self.plan.training.patience // 2)
        self.active = newcomer
        self.active.memory.thin(self._room)
        self._awake[self._next] = self.active
        self._next += 1
        self._elsewhere = None
        return self.active

    def merge(self, keeper: int, other: int) -> None:
        """Let one expert take over the samples of another, which is dismissed."""
        expert, gone = self._wake(self.open(keeper)), self.open(other)
        expert.memory.absorb(gone.memory)
        counts = np.zeros(max(len(expert.counts), len(gone.counts)), dtype=np.int64)
        counts[: len(expert.counts)] += expert.counts
        counts[: len(gone.counts)] += gone.counts
        expert.counts = counts
        if self.active is gone:
            self.switch(expert)
        self.dismiss(other)

    def dismiss(self, number: int) -> None:
        """Forget an inactive expert and all it remembers; its id is not used again."""
        if number in self._awake:
            self._awake.pop(number).network.leave_bench()
        else:
            self._memories.drop(number)
            self.shelf = self.shelf.without(number)
            self._opened.pop(number, None)
        self._elsewhere = None

    def shelve(self) -> None:
        """Put every inactive expert that has settled on the shelf; its optimiser's state goes."""
        idle = [expert for expert in self.awake if expert is not self.active]
        settled = [expert for expert in idle if expert.is_settled]
        if not settled:
            return
        self.shelf = self._shelf_of([*self.shelf.records(), *map(pack, settled)])
        numbers = [expert.id for expert in settled]
        self._memories.put(numbers, [self._awake.pop(number).memory for number in numbers])
        self._elsewhere = None

    @property
    def thinned(self) -> int:
        """How many samples an expert may keep since reservoirs were thinned; 0 if none was."""
        return self._room if self._room < self._settings.pruner.memory else 0

    def thin(self, most: int) -> None:
        """Halve every reservoir until together they take no more than so many bytes."""
        if self._elsewhere is None:
            self._elsewhere = self._weigh_others()
        while self._elsewhere + self.active.memory.nbytes() > most and self._room > 1:
            self._room //= 2
            for expert in self._awake.values():
                expert.memory.thin(self._room)
            self._memories.thin(self._room)
            self._opened.clear()
            self._elsewhere = self._weigh_others()

    def state_dict(self) -> State:
        return {
            "next": self._next,
            "active": self.active.id,
            "room": self._room,
            "experts": [expert.state_dict() for expert in self.awake],
            "shelf": self.shelf.state(),
            "memories": self._memories.state(self.shelf.ids.tolist()),
        }

    def load_state_dict(self, state: State) -> None:
        self._opened.clear()
        self._room = state.get("room", self._settings.pruner.memory)  # format 1 has none
        self._awake = {kept["id"]: self._restored(kept) for kept in state["experts"]}
        self._memories, self.shelf = Memories(), self._shelf_of([])
        if "shelf" in state:
            self._restock(state)
        self._next = state["next"]
        self.active, self._elsewhere = self._awake[state["active"]], None

    def _candidate(self, number: int, live: int) -> Known:
        if number in self._awake:
            self._awake[number].network.grow(live)
            return self._awake[number]
        return Sleeper(self.shelf, number, self._settings.detector.fresh())

    def _likeliest(self, others: Sequence[int], scores: Tensor) -> list[int]:
        """Return the best of them by score, oldest first."""
        places = {number: place for place, number in enumerate(self.ids)}
        values = scores.cpu().numpy()[[places[number] for number in others]]
        best = np.argsort(-values, kind="stable")[: self._settings.shortlist]
        return [others[place] for place in sorted(best.tolist())]

    def _restock(self, state: State) -> None:
        """Take the shelf from a saved state, or refuse it; as it never changes, it is shared."""
        check_shelf(state["shelf"])
        team = self.plan.team if len(state["shelf"]["ids"]) else Team()
        self.shelf = Shelf(state["shelf"], self._frame, team)
        twice = self._awake.keys() & set(self.shelf.ids.tolist())
        if twice:
            raise ValueError(f"experts {sorted(twice)} are both awake and packed")
        self._memories = Memories.restore(state["memories"], self.shelf.ids)

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
        return self.samples()[0] - self.active.memory.nbytes()


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
