"""A run killed with -9 and resumed equals one never stopped (20 times: `benchmarks/kills.py`)."""

from kills import trial
from small import SETTINGS

PLAN = {"before the first checkpoint": 1, "consolidation": 1, "checkpoint write": 1, "random": 1}


def test_killed_and_resumed_equals_never_stopped(tmp_path):
    settings = [text for text in SETTINGS if not text.startswith("selector.retraining")]
    rows = trial(PLAN, (*settings, "selector.training.epochs=80"), tmp_path)
    assert [row["problem"] for row in rows] == [""] * len(PLAN)
    assert rows[0]["killed_in"] == "no checkpoint"
    assert rows[1]["killed_in"] == "consolidate"
    assert rows[1]["goes_on_in_a_training"]
