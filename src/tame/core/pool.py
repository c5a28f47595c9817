"""The experts, one of them active."""

from tame.core.expert import Expert
from tame.core.network import Blueprint
from tame.core.settings import Settings
from tame.engine.lesson import Lesson
from tame.types import State


class ExpertPool:
    """Holds every expert ever recruited; ids count up and are never reused."""

    def __init__(self, plan: Blueprint, settings: Settings) -> None:
        self.plan = plan
        self._settings = settings
        self._next = 0
        self.experts: list[Expert] = []
        self.active = self.recruit()

    def familiar(self, lesson: Lesson) -> Expert | None:
        """Return an inactive expert that knows the batch, or None; trains nothing."""
        others = [expert for expert in self.experts if expert is not self.active]
        readings = [expert.measure(lesson, keep=False) for expert in others]
        found = self._settings.matcher.find(others, readings)
        return None if found is None else others[found]

    def switch(self, expert: Expert) -> Expert:
        """Make a known expert the active one."""
        self.active.network.forget()
        self.active = expert
        return expert

    def recruit(self) -> Expert:
        """Add a new expert and make it the active one."""
        if self.experts:
            self.active.network.forget()
        self.active = Expert(self._next, self.plan, self._settings)
        self.experts.append(self.active)
        self._next += 1
        return self.active

    def state_dict(self) -> State:
        return {
            "next": self._next,
            "active": self.active.id,
            "experts": [expert.state_dict() for expert in self.experts],
        }

    def load_state_dict(self, state: State) -> None:
        self.experts = []
        for kept in state["experts"]:
            expert = Expert(kept["id"], self.plan, self._settings)
            expert.load_state_dict(kept)
            self.experts.append(expert)
        self._next = state["next"]
        self.active = next(e for e in self.experts if e.id == state["active"])
