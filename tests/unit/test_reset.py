"""One network that begins anew at every alarm."""

import pytest
import torch
from worlds import NET, a, b, changes, feed

from tame import Batch
from tame.checks.failure import difference
from tame.core.detectors.quorum import Quorum
from tame.core.detectors.river import River
from tame.methods.finetune import FineTune
from tame.methods.reset import Reset, ResetSettings

QUICK = ResetSettings(detector=Quorum(burn_in=10))


def turned(batches: list[Batch]):
    return [Batch(x, (y + 1) % 4) for x, y in batches]


def test_until_an_alarm_it_is_a_single_network():
    stream = a(60)
    plain, reset = FineTune(net=NET, seed=3), Reset(net=NET, seed=3, settings=QUICK)
    feed(plain, stream)
    assert not changes(feed(reset, stream))
    assert difference(plain.state_dict(), reset.state_dict()["single"]) is None


def test_after_an_alarm_nothing_is_left_of_before():
    reset = Reset(net=NET, seed=3, settings=QUICK)
    feed(reset, a(80))
    first = reset.state_dict()["single"]["network"]
    seen = feed(reset, turned(a(60, seed=9)))
    ((_, kind, expert),) = changes(seen)
    assert (kind, expert) == ("recruited", 1)
    (late,) = (place for place, one in enumerate(seen) if one.change == "recruited")
    last = reset.state_dict()["single"]["network"]
    assert (first["steps"], last["steps"]) == (80, 60 - late)
    held = turned(a(4, seed=77))
    x, y = (torch.cat(column) for column in zip(*held, strict=True))
    assert (reset.predict(x, when="now") == y).double().mean() > 0.9


def test_river_can_raise_the_alarm():
    pytest.importorskip("river")
    reset = Reset(net=NET, settings=ResetSettings(detector=River("ADWIN")))
    assert "recruited" in [kind for _, kind, _ in changes(feed(reset, a(120) + turned(b(60))))]
