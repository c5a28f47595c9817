"""What a conduct may see and use while it handles one batch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, cast

from torch import Tensor

from tame.core.expert import Expert
from tame.core.inputs import InputStep
from tame.core.pool import ExpertPool
from tame.core.selector import Gatherer, Selector
from tame.engine.lesson import Lesson
from tame.types import Observation, State


@dataclass(frozen=True)
class Scene:
    """The experts and the selector at one step of the stream; `live` labels are known.

    `rank` tells how likely the selector finds each expert for a batch, by position.
    """

    step: int
    pool: ExpertPool
    selector: Selector
    inputs: InputStep
    live: int
    rank: Callable[[Lesson], Tensor]

    def lesson(self, raw: Tensor, slots: Tensor) -> Lesson:
        """Return samples that were put aside as a lesson again."""
        return Lesson(raw, slots, self.live, self.inputs, self.pool.plan.device)

    @property
    def gathers(self) -> bool:
        """Whether the selector takes statistics of what networks are given."""
        return hasattr(self.selector, "gather")  # a protocol's instance check costs more than this

    def store(self, lesson: Lesson, expert: int) -> None:
        """Let an expert and the selector remember some of what the expert learned from."""
        self.pool.open(expert).memory.add(lesson.raw, lesson.slots)
        self.remember(lesson, expert)

    def remember(self, lesson: Lesson, expert: int) -> None:
        """Let the selector take what an expert learned from."""
        self.selector.observe(lesson.raw, lesson.slots, expert)
        if self.gathers:
            cast(Gatherer, self.selector).gather(lesson.ready, lesson.slots, expert)


class Closing(NamedTuple):
    """What was decided before a consolidation.

    `merged` says which experts went into which; `refused` how many newcomers there was no room
    for since the last time.
    """

    merged: dict[int, int]
    refused: int = 0


class Practice(Protocol):
    """A conduct at work: who learns from a batch, and when something is called a change."""

    def meet(self, scene: Scene, lesson: Lesson) -> Observation:
        """Decide about a batch, and let the right expert learn from it."""
        ...

    def catch_up(self, scene: Scene) -> None:
        """Do what was put off to the next batch, before anyone looks or anything is saved."""
        ...

    def close(self, scene: Scene) -> Closing:
        """Decide whatever is open, as the experts are about to be consolidated."""
        ...

    def speaker(self, pool: ExpertPool) -> Expert:
        """Return the expert that answers for the present."""
        ...

    def preview(self, selector: Selector) -> Selector:
        """Return the selector with what is still kept from it, for predictions meanwhile."""
        ...

    def weigh(self) -> tuple[int, int, int]:
        """Return the bytes and the number of samples put aside, and the bytes of other state."""
        ...

    def state_dict(self) -> State: ...
    def load_state_dict(self, state: State) -> None: ...
