"""A consolidation broken off costs nothing that was learned, and is done the next time."""

from typing import Any

import pytest
import torch
from worlds import NET, QUICK, a, b, c, feed, small_method, small_tame

from tame import NetworkSelector
from tame.checkpoint import pack, unpack
from tame.checks.failure import difference
from tame.core.class_selector import ClassSelector
from tame.core.gradual import Gradual
from tame.core.moment_selector import MomentSelector
from tame.engine.journal import Journal

SELECTORS = {
    "network": NetworkSelector(memory=64, training=QUICK, retraining=QUICK),
    "classes": ClassSelector(net=NET, memory=64, enough=1.01, nonzero=200, training=QUICK),
    "moments": MomentSelector(net=NET, memory=64, training=QUICK),
}
MADE = {
    **{name: lambda one=one: small_tame(selector=one) for name, one in SELECTORS.items()},
    "gradual": lambda: small_tame(pruner=Gradual(sparsity=0.5, memory=64, retraining=QUICK)),
    "joint": lambda: small_method("joint", 0),
    "gdumb": lambda: small_method("gdumb", 0),
}


class BrokenOffError(Exception):
    """What stops a series whose notes were just saved."""


def taught(name: str) -> Any:
    """Return a learner that has consolidated once and has learned more since."""
    learner = MADE[name]()
    feed(learner, a() + b())
    learner.consolidate()
    feed(learner, c())
    return learner


def after(moment: int) -> Any:
    """Return a progress that is Ctrl-C the so-manyth time something is told."""
    left = iter(range(1, 1000))

    def told(*_: object) -> None:
        if next(left) == moment:
            raise KeyboardInterrupt

    return told


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("moment", [1, 3])
def test_the_next_consolidation_does_it_all(name, moment):
    learner, wanted = taught(name), taught(name)
    with pytest.raises(KeyboardInterrupt):
        learner.consolidate(after(moment))
    learner.consolidate()
    wanted.consolidate()
    x = torch.cat([batch.x for batch in a(1) + b(1) + c(1)])
    assert torch.equal(learner.predict(x), wanted.predict(x))
    assert difference(learner.state_dict(), wanted.state_dict()) is None


@pytest.mark.parametrize("name", SELECTORS)
def test_until_then_samples_are_routed_as_before(name):
    learner = taught(name)
    x = torch.cat([batch.x for batch in a(1) + b(1)])
    kept = learner.state_dict()["selector"]
    with pytest.raises(KeyboardInterrupt):
        learner.consolidate(after(1))
    assert difference(learner.state_dict()["selector"], kept) is None
    assert set(learner.predict(x).tolist()) >= {0, 1}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("moment", [1, 9, 40])
def test_with_notes_it_goes_on_at_the_batch_it_had_come_to(name, moment):
    whole, wanted = consolidated(name)
    saved: list[bytes] = []

    def save(notes: dict[str, Any]) -> None:
        saved.append(pack({}, notes))
        raise BrokenOffError

    with pytest.raises(BrokenOffError):
        consolidated(name, save=save, stop_at=moment)
    left, found = consolidated(name, held=unpack(saved[0], "notes")[1])
    assert difference(found, wanted) is None
    assert left == whole - (moment - 1)


def consolidated(name: str, stop_at: int = 0, **journal: Any) -> tuple[int, Any]:
    """Consolidate with a journal; return how many batches were trained on, and the state."""
    learner, batches = MADE[name](), [0]
    feed(learner, a() + b())

    def due() -> bool:
        batches[0] += 1
        return batches[0] == stop_at

    with Journal(due=due, **journal).open():
        learner.consolidate()
    return batches[0], learner.state_dict()
