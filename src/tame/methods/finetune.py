"""Fine-tuning: one network trained on whatever comes. The lower bound: it forgets."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from tame.checkpoint import save_learner
from tame.methods.single import SingleNetwork, SingleSettings
from tame.types import (
    ArrayLike,
    Batch,
    Consolidation,
    Hints,
    NetMaker,
    Observation,
    Progress,
    Sizes,
    State,
    When,
    silent,
)


class FineTune:
    """Plain training on the stream, with no defence against forgetting.

    >>> learner = FineTune(net="mlp")
    >>> learner.observe(Batch([[0.0, 1.0]], [5])).expert, learner.predict([[0.0, 1.0]])
    (0, tensor([5]))
    """

    hints: ClassVar[Hints] = Hints.NOTHING
    unbounded: ClassVar[bool] = False
    settings_type: ClassVar[type] = SingleSettings

    def __init__(
        self,
        net: str | Mapping[str, Any] | NetMaker = "lenet",
        seed: int = 0,
        settings: SingleSettings | None = None,
        device: str = "cpu",
    ) -> None:
        self.net = net
        self.seed = seed
        self.settings = settings or SingleSettings()
        self.device = torch.device(device)
        self._single = SingleNetwork(net, seed, self.settings, self.device)

    def observe(self, batch: Batch) -> Observation:
        step = self._single.steps
        reading = self._single.learn(self._single.admit(batch))
        return Observation(step, reading.loss, math.nan, math.nan, 0)

    def consolidate(self, progress: Progress = silent) -> Consolidation:
        """Do nothing: there is nothing kept to consolidate."""
        progress("nothing to consolidate", 1, 1)
        return Consolidation(experts=0, sizes=self.sizes())

    def predict(self, x: ArrayLike, when: When = "ever") -> Tensor:  # noqa: ARG002 (one network)
        return self._single.predict(x)

    def log_probabilities(self, x: ArrayLike) -> tuple[Tensor, Tensor]:
        """Return how likely each label is for each sample, and the label of each column."""
        return self._single.log_probabilities(x)

    def sizes(self) -> Sizes:
        return self._single.sizes()

    def save(self, path: str | Path) -> None:
        """Write everything to one file, all or nothing."""
        save_learner(self, path)

    def state_dict(self) -> State:
        return self._single.state_dict()

    def load_state_dict(self, state: State) -> None:
        self._single.load_state_dict(state)
