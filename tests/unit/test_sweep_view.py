"""What a grid says while its cells are at work: lines in a log, a table in a terminal."""

import io

import pytest
from rich.console import Console

from tame.cli import log_lines, sweep_view


def shown(*, terminal: bool) -> str:
    """Return all that a grid of three cells put out, of which one ended."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=120)
    with sweep_view.SweepView(["one", "two", "three"], console) as view:
        view.begun("one")
        view.begun("two")
        view.progress("one", "stream", 12, 100)
        view.ended("one", "done", "")
        view.progress("two", "training the [selector]", 1, 60)
    return out.getvalue()


def test_a_log_is_told_how_far_each_cell_at_work_has_come(monkeypatch):
    monkeypatch.setattr(log_lines, "SILENCE", 0.0)
    lines = shown(terminal=False).splitlines()
    begun = lines.index("  one: stream 12/100")
    assert lines[begun - 1 : begun + 2] == [
        "3 cells: none ended yet",
        "  one: stream 12/100",
        "  two: starting",
    ]
    assert lines[-2:] == ["3 cells: 1 done", "  two: training the [selector] 1/60"]


def test_a_log_is_told_no_more_than_once_a_minute_but_every_end():
    assert shown(terminal=False) == "done one (0 s)\n"


@pytest.mark.parametrize("silence", [0.0, 60.0])
def test_a_terminal_has_a_table_instead(monkeypatch, silence):
    monkeypatch.setattr(log_lines, "SILENCE", silence)
    monkeypatch.setattr(sweep_view, "PAUSE", 0.0)
    found = shown(terminal=True)
    assert "stream 12/100" not in found
    assert "12/100" in found
