"""The tasks that HCL has found so far: their labels, and what is typical of each."""

from collections.abc import Callable, Sequence

from tame.methods.typical import Range, Typicality
from tame.types import Change, State


class Tasks:
    """Decides which task a batch belongs to: the present one, an earlier one, or a new one.

    >>> tasks = Tasks(Range(window=4, warmup=2, width=3.0))
    >>> [tasks.place([0], lambda task: [value]).value for value in (1.0, 1.2, 1.1, 9.0)]
    ['none', 'none', 'none', 'recruited']
    >>> tasks.active, tasks.pairs()
    (1, [(0, 0), (1, 0)])
    """

    def __init__(self, given: Range) -> None:
        self.active = 0
        self._range = given
        self._typical: list[Typicality] = []
        self._slots: list[list[int]] = []

    def __len__(self) -> int:
        return len(self._typical)

    def place(self, slots: Sequence[int], read: Callable[[int], list[float]]) -> Change:
        """Find the batch's task, make it the present one and remember the batch as its own."""
        change = Change.NONE
        if not self._typical:
            self._open()
        elif not self._typical[self.active].accepts(read(self.active)):
            change = self._move(slots, read)
        self._typical[self.active].add(read(self.active))
        own = self._slots[self.active]
        own += [slot for slot in dict.fromkeys(slots) if slot not in own]
        return change

    def pairs(self) -> list[tuple[int, int]]:
        """Return every task with each of its label slots."""
        return [(task, slot) for task, slots in enumerate(self._slots) for slot in slots]

    def labels(self, task: int) -> int:
        """Return how many labels a task has shown."""
        return len(self._slots[task])

    def state_dict(self) -> State:
        return {
            "active": self.active,
            "slots": [list(slots) for slots in self._slots],
            "typical": [typical.state_dict() for typical in self._typical],
        }

    def load_state_dict(self, state: State) -> None:
        self.active = state["active"]
        self._slots = [list(slots) for slots in state["slots"]]
        self._typical = [Typicality(self._range) for _ in state["typical"]]
        for typical, kept in zip(self._typical, state["typical"], strict=True):
            typical.load_state_dict(kept)

    def _move(self, slots: Sequence[int], read: Callable[[int], list[float]]) -> Change:
        """Switch to the first other task that knows the labels and finds the batch typical."""
        for task, typical in enumerate(self._typical):
            knows = task != self.active and set(slots) <= set(self._slots[task])
            if knows and typical.is_settled and typical.accepts(read(task)):
                self.active = task
                return Change.SWITCHED
        self._open()
        return Change.RECRUITED

    def _open(self) -> None:
        self.active = len(self._typical)
        self._typical.append(Typicality(self._range))
        self._slots.append([])
