"""River's detectors behind our protocol."""

import json
import sys
from typing import Any, get_args

import numpy as np
import pytest

from tame import Reading
from tame.checks import detector_checks
from tame.core.detectors.river import BINARY, Kind, River
from tame.errors import ConfigError

KINDS = get_args(Kind)
CHECKS = dict(detector_checks())


def losses(count: int, seed: int = 0):
    return np.random.default_rng(seed).normal(1.0, 0.1, count).tolist()


def test_absent_river_is_named(monkeypatch: Any):
    monkeypatch.setitem(sys.modules, "river", None)
    monkeypatch.setitem(sys.modules, "river.drift", None)
    chosen = River()  # a setting can be named, and a grid planned, without it
    with pytest.raises(ConfigError, match=r"pip install 'tame\[river\]'"):
        chosen.fresh()


def test_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="ADWIN, KSWIN"):
        River("ADVIN")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_rises_are_found_and_falls_are_not(kind: Any):
    pytest.importorskip("river", reason="River is not installed (tame[river])")
    options = {"sliding_window_size": 25} if kind == "FHDDM" else {}
    up, down = River(kind, options), River(kind, options)
    for loss in losses(150):
        up.update(Reading(loss))
        down.update(Reading(loss))
    assert any(up.update(Reading(loss + 1.0)).shift for loss in losses(60, 1))
    fallen = [down.update(Reading(loss / 10)) for loss in losses(60, 1)]
    assert not any(verdict.shift and verdict.statistic < 0 for verdict in fallen)


@pytest.mark.parametrize("kind", KINDS)
def test_resumed_is_bit_exact_across_a_renewal(kind: Any):
    """The object is renewed at 80 readings; saved at any time, the rest is judged the same."""
    pytest.importorskip("river", reason="River is not installed (tame[river])")
    stream = [Reading(loss) for loss in losses(200)]
    whole = River(kind, memory=40)
    verdicts, states = [], []
    for reading in stream:
        states.append(json.dumps(whole.state_dict()))
        whole.accepts(Reading(9.0))
        verdicts.append(whole.update(reading))
    for begin in (30, 97, 99, 101, 150):
        resumed = River(kind, memory=40)
        resumed.load_state_dict(json.loads(states[begin]))
        again = [resumed.update(reading) for reading in stream[begin:]]
        assert repr(again) == repr(verdicts[begin:])
        assert resumed.state_dict() == whole.state_dict()
    assert len(whole.state_dict()["shown"]) < 80


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "EDDM"])
@pytest.mark.parametrize(
    "check", ["check_accepts_pure", "check_broken_loss_is_a_shift", "check_fresh"]
)
def test_contract_that_every_kind_keeps(check: str, kind: Any):
    pytest.importorskip("river", reason="River is not installed (tame[river])")
    CHECKS[check](lambda: River(kind))


def test_options_reach_river():
    pytest.importorskip("river", reason="River is not installed (tame[river])")
    detector = River("ADWIN", {"delta": 0.5}).fresh()
    assert (detector._inner.delta, detector._inner.clock) == (0.5, 1)
    assert detector.fresh()._inner.delta == 0.5


def test_error_detectors_are_shown_whether_the_loss_is_high():
    pytest.importorskip("river", reason="River is not installed (tame[river])")
    assert [kind for kind in BINARY if not River(kind)._form(1.5)] == ["FHDDM"]
    assert [kind for kind in BINARY if River(kind)._form(0.5)] == ["FHDDM"]
    assert River()._form(1.5) == 1.5
