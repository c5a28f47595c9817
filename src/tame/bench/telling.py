"""Telling learners what their class declares in `hints`, and nothing else."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from tame.errors import ConfigError
from tame.types import AnswersTold, ArrayLike, Hint, Hints, Informed, Truth

TRAINING = Hints.BOUNDARY | Hints.TRAIN_TASK | Hints.TASK_COUNT
TESTING = Hints.TEST_TASK | Hints.TEST_GROUP
GROUP = 20  # samples known to share a task, as many as iTAML's authors take


class Telling:
    """Tells a learner before the first batch of each segment what it has declared.

    A checkpoint is never taken between telling and the batch, so that a resumed run tells again
    exactly what the saved learner has not heard.

    >>> truth = Truth((0, 1, 0), (0, 5, 9), {}, {}, lambda step: {})
    >>> Telling(Hints.TRAIN_TASK, truth).hints(9)
    [Hint(boundary=None, task=0, tasks=None, group=None)]
    >>> Telling(Hints.NOTHING, truth).hints(0)
    []
    """

    def __init__(self, declared: Hints, truth: Truth) -> None:
        self._declared = declared & TRAINING
        self._truth = truth

    def inform(self, learner: Any, step: int) -> None:
        """Tell the learner what it has declared, if a segment begins with this step's batch."""
        for hint in self.hints(step):
            _require(learner, Informed, "inform").inform(hint)

    def hints(self, step: int) -> list[Hint]:
        """Return what is told before a batch: a hint for each segment that begins with it."""
        if not self._declared:
            return []
        begun = [place for place, start in enumerate(self._truth.starts) if start == step]
        return [self._hint(place) for place in begun]

    def _hint(self, place: int) -> Hint:
        origins = self._truth.origins
        return Hint(
            boundary=True if Hints.BOUNDARY in self._declared else None,
            task=origins[place] if Hints.TRAIN_TASK in self._declared else None,
            tasks=len(set(origins)) if Hints.TASK_COUNT in self._declared else None,
        )


def answers(learner: Any, x: ArrayLike, origin: int) -> Tensor:
    """Return the labels of samples of one origin, by what the learner is told at test time.

    Groups known to share a task are drawn from all samples, as in iTAML's code.
    """
    declared = told_in_testing(learner)
    if not declared:
        found: Tensor = learner.predict(x)
        return found
    hint = Hint(
        task=origin if Hints.TEST_TASK in declared else None,
        group=GROUP if Hints.TEST_GROUP in declared else None,
    )
    ask = _require(learner, AnswersTold, "predict_told").predict_told
    if hint.group is None:
        labels: Tensor = ask(x, hint)
        return labels
    mixed = _mixed(len(x))
    labels = ask(torch.as_tensor(x)[mixed], hint)
    return labels[mixed.argsort().to(labels.device)]


def _mixed(count: int) -> Tensor:
    """Return an order that is always the same; neighbours in a data set can be alike."""
    return torch.from_numpy(np.random.Generator(np.random.PCG64(0)).permutation(count))


def told_in_testing(learner: Any) -> Hints:
    """Return what a learner declares that it is told with the samples to predict."""
    declared: Hints = getattr(learner, "hints", Hints.NOTHING)
    return declared & TESTING


def told(declared: Hints) -> dict[str, list[str | None]]:
    """Return what a method is told, as `result.json` has it.

    >>> told(Hints.BOUNDARY | Hints.TEST_TASK)
    {'training': ['BOUNDARY'], 'testing': ['TEST_TASK']}
    """
    return {
        "training": [hint.name for hint in declared & TRAINING],
        "testing": [hint.name for hint in declared & TESTING],
    }


def _require(learner: Any, kind: type, name: str) -> Any:
    if not isinstance(learner, kind):
        raise ConfigError(f"{type(learner).__name__} declares hints, but has no method '{name}'")
    return learner
