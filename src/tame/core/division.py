"""Consolidation divided over ranks: each does some of the work and tells the others the outcome.

The pruning of an expert depends on that expert alone, and the selector on its own memory, so it
does not matter which rank does what. Detectors are told what to expect by one rank for all, so
that all go on to decide alike even where machines differ in the last bits.
"""

from tame.checkpoint import pack, unpack
from tame.core.consolidate import is_due
from tame.core.expert import Expert
from tame.core.pool import ExpertPool
from tame.core.selector import Selector
from tame.types import Progress, State


class Division:
    """The experts of this rank, whether it trains the selector, and how the outcome is shared."""

    def __init__(self, pool: ExpertPool, selector: Selector) -> None:
        self._pool = pool
        self._world = pool.plan.world
        self._selector = selector
        awake = pool.awake  # what is on the shelf has not changed since it was put there
        due = [expert for expert in awake if is_due(expert)]
        rest = [expert for expert in awake if not is_due(expert)]
        dealt = [*due, None, *rest]  # in turn: the work, the selector, what costs nothing
        own = [expert for place, expert in enumerate(dealt) if self._world.takes(place)]
        self.experts = [expert for expert in own if expert is not None]
        self.selects = None in own
        self._changed: list[Expert] = []

    def note(self) -> None:
        """Remember which experts have a pruned copy now: only these will be different."""
        self._changed = [expert for expert in self.experts if expert.compact is not None]

    def exchange(
        self, pruned: dict[int, int], progress: Progress, *, trained: bool
    ) -> tuple[bool, dict[int, int]]:
        """Bring every rank to the state all have reached together; return what all have done."""
        if self._world.size == 1:
            return trained, pruned
        progress("waiting for other ranks", 0, 1)
        told = self._world.exchange(pack({}, self._outcome(pruned, trained=trained)))
        progress("waiting for other ranks", 1, 1)
        states = [unpack(data, "a rank's outcome", self._pool.plan.device)[1] for data in told]
        for rank, state in enumerate(states):
            if rank != self._world.rank:
                self._take(state)
        found = {int(key): tries for state in states for key, tries in state["pruned"].items()}
        return any(state["trained"] for state in states), dict(sorted(found.items()))

    def _outcome(self, pruned: dict[int, int], *, trained: bool) -> State:
        return {
            "pruned": pruned,
            "trained": trained,
            "selector": self._selector.state_dict() if trained else None,
            "experts": {expert.id: _without_memory(expert) for expert in self._changed},
        }

    def _take(self, state: State) -> None:
        """Put another rank's outcome in place of the state before."""
        if state["trained"]:
            self._selector.load_state_dict(state["selector"], self._pool.plan)
        for expert in self._pool.awake:
            if str(expert.id) in state["experts"]:
                memory = expert.memory.state_dict()
                expert.load_state_dict({**state["experts"][str(expert.id)], "memory": memory})


def _without_memory(expert: Expert) -> State:
    """Return an expert's state but for the samples, which every rank has."""
    return {key: value for key, value in expert.state_dict().items() if key != "memory"}
