"""What every method of one network answers alike."""

from typing import Any, TypeVar

from torch import Tensor

from tame.methods.method import Method
from tame.methods.single import SingleNetwork
from tame.types import ArrayLike, When

S = TypeVar("S", bound=Any)


class PlainLearner(Method[S]):
    """Answers with one network; how that learns is for the method to say."""

    _single: SingleNetwork

    def _set_up(self) -> None:
        self._single = SingleNetwork(self.net, self.seed, self.settings, self.device)

    def predict(self, x: ArrayLike, when: When = "ever") -> Tensor:  # noqa: ARG002 (one network)
        return self._single.predict(x)

    def log_probabilities(self, x: ArrayLike) -> tuple[Tensor, Tensor]:
        """Return how likely each label is for each sample, and the label of each column."""
        return self._single.log_probabilities(x)
