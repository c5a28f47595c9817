"""TAME: task-agnostic continual learning using multiple experts (the paper's Algorithm 1)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor

from tame.checkpoint import save_learner
from tame.core.answering import Answering
from tame.core.blueprint import Blueprint
from tame.core.consolidate import settle
from tame.core.defaults import AUTO, chosen_for
from tame.core.division import Division
from tame.core.errand import prune_experts
from tame.core.given import as_device, as_seed, as_settings
from tame.core.pool import ExpertPool
from tame.core.remembering import Remembering
from tame.core.scene import Scene
from tame.core.settings import Settings
from tame.engine.lesson import Lesson
from tame.nets import resolve
from tame.types import (
    Batch,
    Consolidation,
    Hints,
    NetMaker,
    Observation,
    Progress,
    State,
    silent,
)


class TAME(Answering):
    """Learns from a stream of batches whose distribution changes without notice.

    It watches the loss of the active expert; when that deviates, it switches to an expert that
    knows the data or recruits a new one. `consolidate` trains the selector and prunes the experts;
    `predict` routes each sample to its expert. Without a `net` the first batch's shape and dtype
    decide on it, and on all settings if none are given (`tame.core.defaults`).

    >>> import torch
    >>> from tame import TAME, Batch
    >>> learner = TAME(net="mlp", seed=0)
    >>> seen = learner.observe(Batch(torch.eye(4), [0, 1, 0, 1]))
    >>> seen.step, seen.expert, learner.predict(torch.eye(4)).shape
    (0, 0, torch.Size([4]))
    """

    hints: ClassVar[Hints] = Hints.NOTHING
    unbounded: ClassVar[bool] = False
    settings_type: ClassVar[type] = Settings

    def __init__(
        self,
        net: str | Mapping[str, Any] | NetMaker = AUTO,
        seed: int = 0,
        settings: Settings | Mapping[str, Any] | None = None,
        device: str = "cpu",
    ) -> None:
        self.net = net
        self.seed = as_seed(seed)
        self.settings = as_settings(Settings, settings)
        self.device = as_device(device)
        self._make = None if net == AUTO else resolve(net)
        self._step = 0
        self._begin(self.settings, self.seed, self.device)

    def observe(self, batch: Batch) -> Observation:
        """Judge a batch by the active expert's loss, then let the right expert learn from it."""
        pool, lesson = self._admit(batch)
        seen = self._meet(self._scene(pool), lesson)
        self._keep_within(pool, self.settings.reservoir_bytes)
        self._step, self._model = self._step + 1, None
        return seen

    def _meet(self, scene: Scene, lesson: Lesson) -> Observation:
        return self._practice.meet(scene, lesson)

    def _admit(self, batch: Batch) -> tuple[ExpertPool, Lesson]:
        """Check the batch and make room for its labels; what can fail comes before any change."""
        x, y = self._intake.check(batch)
        if self._make is None:
            self._choose(x)
        step = self._intake.begin(x)
        unknown = self._intake.labels.unknown(y)
        live = len(self._intake.labels) + len(unknown)
        pool = self._pool or self._found(step.output_shape)
        if self._pool is None and isinstance(self._selector, Remembering):
            self._selector.check(x, step, pool.plan)
        pool.active.network.grow(live)
        self._pool = pool
        self._intake.keep(x, step, unknown)
        return pool, Lesson(x, self._intake.labels.slots(y), live, step, self.device)

    def _choose(self, x: Tensor) -> None:
        """Take the net that suits such samples, and the settings too if nothing was said."""
        self.net, settings = chosen_for(tuple(x.shape[1:]), x.dtype)
        self._make = resolve(self.net)
        if self.settings == Settings():
            self.settings = settings
            self._begin(settings, self.seed, self.device)

    def _found(self, shape: tuple[int, ...]) -> ExpertPool:
        settings = self.settings
        assert self._make is not None  # noqa: S101 (chosen at the first batch)
        parts = (settings.training, self.seed, self.device, settings.inputs.augment)
        return ExpertPool(Blueprint(self._make, shape, *parts), settings)

    def _keep_within(self, pool: ExpertPool, most: int) -> None:
        """Thin the experts' reservoirs when all reservoirs together reach the cap."""
        if most:
            self._catch_up()
            pool.thin(most - self._selector.nbytes()[1] - self._practice.weigh()[0])

    def consolidate(self, progress: Progress = silent) -> Consolidation:
        """Train the selector and prune the experts; the stream may go on afterwards."""
        if self._pool is None:
            return Consolidation(experts=0)
        pool, step, live = self._pool, self._intake.ready, len(self._intake.labels)
        self._model = None  # here too: experts may have been merged when it is broken off
        closing = self._practice.close(self._scene(pool))
        division = Division(pool, self._selector)
        trained = division.selects and self._selector.fit(pool.plan, step, progress)
        pruned = prune_experts(division.experts, self.settings, self._intake, progress)
        division.note()
        for expert in division.experts:
            if expert is not pool.active:
                settle(expert, step, live)
        trained, pruned = division.exchange(pruned, progress, trained=trained)
        pool.shelve()
        self._model = None
        return Consolidation(len(pool.ids), pruned, trained, self.sizes(), *closing, pool.thinned)

    def save(self, path: str | Path) -> None:
        """Write everything to one file, all or nothing; `tame.load` reads it back."""
        save_learner(self, path)

    def state_dict(self) -> State:
        self._catch_up()
        return {
            "step": self._step,
            "intake": self._intake.state_dict(),
            "selector": self._selector.state_dict(),
            "pool": None if self._pool is None else self._pool.state_dict(),
            "conduct": self._practice.state_dict(),
        }

    def load_state_dict(self, state: State) -> None:
        self._step, self._pool, self._model = state["step"], None, None
        self._intake.load_state_dict(state["intake"])
        if state["pool"] is not None:
            self._pool = self._found(self._intake.ready.output_shape)
            self._pool.load_state_dict(state["pool"])
        plan = None if self._pool is None else self._pool.plan
        self._selector.load_state_dict(state["selector"], plan)
        self._practice = self.settings.conduct.begin()
        if state.get("conduct"):  # files from before there were conducts hold none
            self._practice.load_state_dict(state["conduct"])
