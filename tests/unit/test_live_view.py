"""What a run says where nobody sees its bars: a log, a pipe, a service."""

import io
import math
import signal

import pytest
from rich.console import Console

from tame.cli import live, log_lines
from tame.types import Change, Observation


def shown(*, terminal: bool, batches: int = 3) -> str:
    """Return all that a short run and its consolidation put out."""
    out = io.StringIO()
    with live.LiveView(Console(file=out, force_terminal=terminal, width=120)) as view:
        view.phase("stream", batches, 0)
        for step in range(batches):
            view.step(Observation(step, 0.5, 0.5, 5.0, 0))
        view.phase("consolidate", 1, 0)
        view.progress("training the selector", 1, 2)
        view.progress("training the selector", 2, 2)
    return out.getvalue()


def test_a_log_is_told_how_far_the_stream_and_the_consolidation_have_come(monkeypatch):
    monkeypatch.setattr(log_lines, "SILENCE", 0.0)
    monkeypatch.setattr(live, "PAUSE", 0.0)
    lines = shown(terminal=False).splitlines()
    assert any(line.startswith("batch 2 of 3: loss 0.500") for line in lines)
    assert "training the selector: 1 of 2" in lines


def test_a_change_is_told_with_what_the_detector_held_against_its_threshold():
    out = io.StringIO()
    with live.LiveView(Console(file=out, width=120)) as view:
        view.step(Observation(3, 2.5, 31.0, 7.0, -1, Change.SUSPECTED, 3))
        view.step(Observation(4, 2.5, 2.5, math.nan, 1, Change.RECRUITED, 3))
    assert "batch 3: loss 2.500, detector at 31.00 of 7.00: suspected\n" in out.getvalue()
    assert "batch 4: loss 2.500: recruited expert 1\n" in out.getvalue()


def test_a_log_is_told_no_more_than_once_a_minute():
    assert "of 2" not in shown(terminal=False)
    assert "batch 2" not in shown(terminal=False)


@pytest.mark.parametrize("silence", [0.0, 60.0])
def test_a_terminal_has_bars_instead(monkeypatch, silence):
    monkeypatch.setattr(log_lines, "SILENCE", silence)
    found = shown(terminal=True)
    assert "training the selector: 1 of 2" not in found
    assert "training the selector" in found


@pytest.mark.parametrize("phase", ["stream", "consolidate"])
def test_ctrl_c_is_a_request_where_a_run_can_save_and_the_second_one_ends_it(phase):
    out = io.StringIO()
    with live.LiveView(Console(file=out)) as view:
        view.phase(phase, 10, 0)
        assert not view.stop_asked()
        signal.raise_signal(signal.SIGINT)
        assert view.stop_asked()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert "stopping after this batch" in out.getvalue()


def test_ctrl_c_ends_an_evaluation_at_once():
    with live.LiveView(Console(file=io.StringIO())) as view:
        view.phase("evaluate", 0, 0)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
