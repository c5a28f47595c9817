"""TAME told when the task changes: what detecting the change by oneself costs.

The learner is `tame` in all but one thing: it switches to the expert of the task it is told, or
recruits one for a task it has not been told before, and what its detector says is ignored. The
difference to `tame` is the price of detection; what is left to the upper bound is routing, pruning
and learning. At test time it is told nothing.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from tame.core.learner import TAME
from tame.core.pool import ExpertPool
from tame.core.scene import Scene
from tame.core.settings import Settings
from tame.engine.lesson import Lesson
from tame.methods.told import check_hint
from tame.types import Batch, Change, Hint, Hints, NetMaker, Observation, State


class Oracle(TAME):
    """Experts, one for each task that is told, and everything else as in TAME.

    >>> learner = Oracle(net="mlp")
    >>> learner.observe(Batch([[0.0, 1.0]], [5])).expert
    0
    >>> learner.inform(Hint(task=7))
    >>> seen = learner.observe(Batch([[0.0, 1.0]], [5]))
    >>> seen.expert, seen.change
    (1, <Change.RECRUITED: 'recruited'>)
    """

    hints: ClassVar[Hints] = Hints.TRAIN_TASK

    def __init__(
        self,
        net: str | Mapping[str, Any] | NetMaker = "lenet",
        seed: int = 0,
        settings: Settings | None = None,
        device: str = "cpu",
    ) -> None:
        super().__init__(net, seed, settings, device)
        self._task = 0
        self._owners: dict[int, int] = {}
        self._change = Change.NONE

    def inform(self, hint: Hint) -> None:
        """Take the number of the task that begins; its expert takes over with the next batch."""
        check_hint(hint)
        if hint.task is not None:
            self._task = hint.task

    def observe(self, batch: Batch) -> Observation:
        """Let the expert of the present task learn from a batch."""
        seen = super().observe(batch)
        change, self._change = self._change, Change.NONE
        since = None if change is Change.NONE else seen.step
        return seen._replace(change=change, since=since)

    def _admit(self, batch: Batch) -> tuple[ExpertPool, Lesson]:
        """Check the batch, then hand it to the expert of the task that was told last."""
        pool, lesson = super()._admit(batch)
        owner = self._owners.get(self._task)
        if not self._owners:
            self._owners[self._task] = pool.active.id
        elif owner is None:
            self._owners[self._task] = pool.recruit().id
            self._change = Change.RECRUITED
        elif owner != pool.active.id:
            pool.switch(pool.open(owner))
            self._change = Change.SWITCHED
        return pool, lesson

    def _meet(self, scene: Scene, lesson: Lesson) -> Observation:
        """Let the expert learn, whatever its detector says: nothing is detected here."""
        expert = scene.pool.active
        reading = expert.measure(lesson)
        verdict = expert.detector.update(reading)
        restarted = expert.train(lesson)
        scene.store(lesson, expert.id)
        seen = Observation(scene.step, reading.loss, *verdict[1:], expert.id)
        return seen._replace(restarted=restarted)

    def state_dict(self) -> State:
        owners = [list(pair) for pair in self._owners.items()]
        return {**super().state_dict(), "told": self._task, "owners": owners}

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self._task = state["told"]
        self._owners = dict(state["owners"])
        self._change = Change.NONE
