"""The checks of what a learner is told: each catches the fault it is there for."""

from typing import Any, ClassVar

import pytest
import torch
from worlds import NET

from tame.checks import CheckFailed, telling
from tame.methods.ewc import EWC, EWCSettings
from tame.methods.finetune import FineTune
from tame.types import Hint, Hints

CHECKS = {check.__name__: check for check in telling.CHECKS}
SETTINGS = EWCSettings(samples=4)


def faulty(check: str, **methods: Any):
    """Return a fault of a learner that is told its tasks, and the check that finds it."""
    return pytest.param(check, methods, id=f"{check}-{'-'.join(methods)}")


def deaf(self: Any, hint: Hint) -> None:
    del self, hint


def gullible(self: Any, hint: Any) -> None:
    self._tasked.told.task = getattr(hint, "task", 0)


def hasty(self: Any, hint: Hint) -> None:
    self._finished += 1
    EWC.inform(self, hint)


def forgetful(self: Any):
    state = EWC.state_dict(self)
    return state | {"tasked": state["tasked"] | {"age": 0}}


def drawing(self: Any, hint: Hint) -> None:
    torch.rand(1)
    EWC.inform(self, hint)


def counting(self: Any, x: Any, hint: Hint):
    self._finished += 1
    return EWC.predict_told(self, x, hint)


def inventing(self: Any, x: Any, hint: Hint):
    return EWC.predict_told(self, x, hint) + 4


@pytest.mark.parametrize(
    ("check", "methods"),
    [
        faulty("check_telling_matters", inform=deaf),
        faulty("check_wrong_hints_refused", inform=gullible),
        faulty("check_wrong_hints_refused", inform=hasty),
        faulty("check_told_and_resumed", state_dict=forgetful),
        faulty("check_told_and_resumed", inform=drawing),
        faulty("check_predict_told_pure", predict_told=counting),
        faulty("check_predict_told_pure", predict_told=inventing),
        faulty("check_hears_what_it_declares", hints=Hints.NOTHING),
        faulty("check_hears_what_it_declares", hints=Hints.BOUNDARY),
    ],
)
def test_fault_is_found(check: str, methods: Any):
    broken = type("Broken", (EWC,), methods)
    with pytest.raises(CheckFailed):
        CHECKS[check](lambda seed: broken(net=NET, seed=seed, settings=SETTINGS))


@pytest.mark.parametrize("check", CHECKS)
def test_sound_learners_pass(check: str):
    CHECKS[check](lambda seed: EWC(net=NET, seed=seed, settings=SETTINGS))
    CHECKS[check](lambda seed: FineTune(net=NET, seed=seed))


def test_a_learner_that_declares_more_than_it_hears_is_found():
    class Silent(FineTune):
        hints: ClassVar[Hints] = Hints.TRAIN_TASK

    with pytest.raises(CheckFailed, match="inform does not fit"):
        CHECKS["check_hears_what_it_declares"](lambda seed: Silent(net=NET, seed=seed))
