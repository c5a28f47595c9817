"""What every method is made of, however it learns: net, seed, settings, device, and a file."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from torch import Tensor

from tame.checkpoint import save_learner
from tame.core.given import as_device, as_seed, as_settings
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

S = TypeVar("S")


class Method(ABC, Generic[S]):
    """A learner that is told nothing, keeps a bounded memory and has nothing to consolidate.

    A method that differs says so; `_set_up` makes what changes while it learns.
    """

    hints: ClassVar[Hints] = Hints.NOTHING
    unbounded: ClassVar[bool] = False
    settings_type: ClassVar[type[Any]]

    def __init__(
        self,
        net: str | Mapping[str, Any] | NetMaker = "lenet",
        seed: int = 0,
        settings: S | Mapping[str, Any] | None = None,
        device: str = "cpu",
    ) -> None:
        self.net = net
        self.seed = as_seed(seed)
        self.settings: S = as_settings(self.settings_type, settings)
        self.device = as_device(device)
        self._set_up()

    @abstractmethod
    def _set_up(self) -> None:
        """Begin with nothing learned."""

    @abstractmethod
    def observe(self, batch: Batch) -> Observation:
        """Learn from a batch."""

    def consolidate(self, progress: Progress = silent) -> Consolidation:
        """Do nothing: everything is learned as it comes."""
        progress("nothing to consolidate", 1, 1)
        return Consolidation(experts=0, sizes=self.sizes())

    @abstractmethod
    def predict(self, x: ArrayLike, when: When = "ever") -> Tensor:
        """Return labels, with nothing told."""

    @abstractmethod
    def sizes(self) -> Sizes:
        """Return what the learner weighs now."""

    def save(self, path: str | Path) -> None:
        """Write everything to one file, all or nothing."""
        save_learner(self, path)

    @abstractmethod
    def state_dict(self) -> State:
        """Return everything learning goes on from."""

    @abstractmethod
    def load_state_dict(self, state: State) -> None:
        """Go on from a state."""
