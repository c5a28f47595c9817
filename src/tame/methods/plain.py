"""What every method of one network, with nothing to consolidate, answers alike."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from tame.checkpoint import save_learner
from tame.methods.single import SingleNetwork
from tame.types import (
    ArrayLike,
    Consolidation,
    Hints,
    NetMaker,
    Progress,
    Sizes,
    State,
    When,
    silent,
)


class PlainLearner(ABC):
    """Answers with one network; how that learns is for the method to say."""

    hints: ClassVar[Hints] = Hints.NOTHING
    unbounded: ClassVar[bool] = False
    net: str | Mapping[str, Any] | NetMaker
    seed: int
    settings: Any
    device: torch.device
    _single: SingleNetwork

    def _begin(
        self, net: str | Mapping[str, Any] | NetMaker, seed: int, settings: Any, device: str
    ) -> None:
        self.net = net
        self.seed = seed
        self.settings = settings
        self.device = torch.device(device)
        self._single = SingleNetwork(net, seed, settings, self.device)

    def consolidate(self, progress: Progress = silent) -> Consolidation:
        """Do nothing: there is nothing kept to consolidate."""
        progress("nothing to consolidate", 1, 1)
        return Consolidation(experts=0, sizes=self.sizes())

    def predict(self, x: ArrayLike, when: When = "ever") -> Tensor:  # noqa: ARG002 (one network)
        """Return labels, with nothing told."""
        return self._single.predict(x)

    def log_probabilities(self, x: ArrayLike) -> tuple[Tensor, Tensor]:
        """Return how likely each label is for each sample, and the label of each column."""
        return self._single.log_probabilities(x)

    def save(self, path: str | Path) -> None:
        """Write everything to one file, all or nothing."""
        save_learner(self, path)

    @abstractmethod
    def sizes(self) -> Sizes:
        """Return what the learner weighs now."""

    @abstractmethod
    def state_dict(self) -> State:
        """Return everything learning goes on from."""
