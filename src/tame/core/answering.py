"""What a learner with experts answers at any moment: labels, routes, sizes."""

from typing import get_args

import torch
from torch import Tensor

from tame.core.accounting import weigh
from tame.core.assemble import assemble, assemble_alone
from tame.core.intake import Intake
from tame.core.pool import ExpertPool
from tame.core.routed import RoutedModel
from tame.core.scene import Practice, Scene
from tame.core.selector import Selector
from tame.core.settings import Settings
from tame.engine.lesson import Lesson
from tame.errors import InputError
from tame.types import ArrayLike, Sizes, When

UNLIKELY = -1e9  # in place of minus infinity, so that one odd sample rules nobody out


class Answering:
    """Holds what has been learned (intake, experts, selector) and answers from it."""

    settings: Settings
    device: torch.device
    _intake: Intake
    _pool: ExpertPool | None
    _selector: Selector
    _practice: Practice
    _model: RoutedModel | None
    _step: int

    def _begin(self, settings: Settings, seed: int, device: torch.device) -> None:
        self._intake = Intake(settings.inputs, device)
        self._pool = None
        self._selector = settings.selector.fresh(seed)
        self._practice = settings.conduct.begin()
        self._model = None

    def predict(self, x: ArrayLike, when: When = "ever") -> Tensor:
        """Return a label for each raw sample; before anything was observed, -1.

        `ever` routes every sample through the selector; `now` trusts the expert of the present
        (in doubt, the one that knows best what is held), which is right when a label has changed
        its meaning. Until a selector has been trained (and for experts it does not know yet)
        samples go to the expert with the nearest remembered mean.
        """
        x = self._intake.check_inputs(x)
        if when not in get_args(When):
            raise InputError(f"when is 'ever' or 'now', not {when!r}")
        if self._pool is None:
            return torch.full((len(x),), -1, device=self.device)
        if when == "ever":
            return self.model.predict(x)
        expert = self._practice.speaker(self._pool)
        return (self._model or assemble_alone(self._intake, expert)).predict(x, expert.id)

    @property
    def model(self) -> RoutedModel:
        """The input step, router and experts of this moment as one module (shared, not a copy)."""
        if self._model is None:
            self._catch_up()
            selector = self._practice.preview(self._selector)
            self._model = assemble(self._intake, self._pool, selector, self.settings.decision)
        return self._model

    @property
    def expert_ids(self) -> tuple[int, ...]:
        """The ids of all experts, oldest first."""
        return () if self._pool is None else tuple(self._pool.ids)

    def route(self, x: ArrayLike) -> Tensor:
        """Return the id of the expert each raw sample would be sent to."""
        return self.model.route(self._intake.check_inputs(x))

    def predict_by(self, x: ArrayLike, expert: int) -> Tensor:
        """Return the labels one expert gives, whatever the selector says."""
        return self.model.predict(self._intake.check_inputs(x), expert)

    @torch.no_grad()
    def log_probabilities(self, x: ArrayLike) -> tuple[Tensor, Tensor]:
        """Return how likely each label is for each sample, and the label of each column."""
        model = self.model.eval()
        return model(self._intake.check_inputs(x)), model.labels

    def remembered(self, expert: int) -> tuple[Tensor, Tensor]:
        """Return the raw samples in an expert's reservoir, and the label each was learned by."""
        if self._pool is None or expert not in self._pool.ids:
            raise InputError(f"there is no expert {expert}, but {list(self.expert_ids)}")
        self._catch_up()
        columns = self._pool.open(expert).memory.columns()
        raw, slots = columns or (torch.empty(0), torch.empty(0, dtype=torch.int64))
        return raw, self._intake.labels.labels()[slots.long().cpu()]

    def sizes(self) -> Sizes:
        """Return what the learner weighs now."""
        self._catch_up()
        return weigh(self._pool, self._selector, self._practice.weigh(), self._intake.step)

    def _catch_up(self) -> None:
        if self._pool is not None:
            self._practice.catch_up(self._scene(self._pool))

    def _scene(self, pool: ExpertPool) -> Scene:
        intake, world = self._intake, pool.plan.world

        def rank(asked: Lesson) -> Tensor:
            return world.as_first(self._rank(asked).cpu())

        live = len(intake.labels)
        return Scene(self._step, pool, self._selector, intake.ready, live, rank)

    @torch.no_grad()
    def _rank(self, lesson: Lesson) -> Tensor:
        """Return how likely the selector finds each expert for a batch, by position."""
        router = self._selector.router(self._intake.ready, self.expert_ids)
        scores: Tensor = router(lesson.near, lesson.ready)
        return scores.double().clamp(min=UNLIKELY).mean(0)
