"""The leaderboard: rows by what they were told, differences to the best, and what is left out."""

from typing import Any

import pytest

from tame.bench.leaderboard import BOTH, NOTHING, TRAINING, Board, Row, paired
from tame.bench.leaderboard_page import markdown, page


def run(seed, strict, told=(), testing=(), **more: Any):
    found = {
        "seed": seed, "accuracy": {"strict": strict, "within_segment": 0.9},
        "hints": [*told, *testing],
        "told": {"training": list(told), "testing": list(testing)}, "unbounded": False,
        "untold_accuracy": None, "expert_agreement": None, "calibration_error": 0.1,
        "parameters": {"nonzero": 10}, "macs": 100.0, "samples": 50,
        "bytes": {"model": 40, "samples": 60, "training_state": 900},
        "seconds": {"stream": 2.0, "consolidate": 1.0}, "versions": {}, "hardware": {"cpu": "a"},
    }  # fmt: skip
    return found | more


def board():
    rows = (
        Row("ours", (run(0, 0.90), run(1, 0.80), run(2, 0.85))),
        Row("theirs", (run(0, 0.88), run(1, 0.79), run(3, 0.10))),
        Row("masked", (run(0, 0.50, ["TRAIN_TASK"], ["TEST_TASK"], untold_accuracy=0.2),)),
        Row("warned", (run(0, 0.40, ["BOUNDARY"]),)),
        Row("all", (run(0, 0.99, unbounded=True),)),
    )
    return Board("split", rows)


def test_rows_are_grouped_by_what_they_were_told():
    groups = [(name, [row.name for row in rows]) for name, rows in board().groups]
    assert groups == [
        (BOTH, ["masked"]), (TRAINING, ["warned"]), (NOTHING, ["ours", "theirs", "all"]),
    ]  # fmt: skip


def test_differences_to_the_best_are_paired_by_seed_and_the_best_is_bounded():
    made = board()
    assert made.best.name == "ours"
    found = made.to_best(made.rows[1])
    # seeds 0 and 1 are common: -2 and -1 points; t(0.975, 1) = 12.706, s = 0.7071
    assert (found.mean, found.n) == (pytest.approx(-1.5), 2)
    assert found.half == pytest.approx(12.7062 * 0.5, rel=1e-4)
    assert paired(made.rows[3].runs, made.rows[1].runs, lambda r: r["seed"]).n == 1


def test_text_says_groups_intervals_and_what_was_told():
    text = markdown("small", [board()])
    assert "| *told nothing* |" in text
    assert "| ours | 3 | 85.00 ± 12.42 |" in text
    assert "| theirs | 3 | 59.00 ± 106.01 | — | 90.00 ± 0.00 | -1.50 ± 6.35 (n = 2) |" in text
    assert "| masked | 1 | 50.00 | 20.00 |" in text
    assert "task in training, task in testing |" in text
    assert "nothing; keeps everything |" in text
    assert "| 1.0 kB | 100 | 25 | 3 |" in text


def test_page_is_whole_and_escapes_names():
    made = board()
    odd = Board("a & b", (*made.rows, Row("$x_1 <b>", made.rows[0].runs)))
    html = page("small <grid>", [odd])
    assert "<b>" not in html
    assert "$x_1 &lt;b&gt;" in html
    assert "small &lt;grid&gt;" in html
    assert html.count("<svg") == 1
    for found in made.rows[0].runs:
        found["course"] = {"after_each": [0.9, 0.8]}
    assert page("small", [made]).count("<svg") == 2
    assert page("small", [Board("alone", made.rows[:1])]).count("<svg") == 1


def expert_run(seed: int, **more: Any) -> dict[str, Any]:
    made = run(seed, 0.9, experts=5, selector_accuracy=0.95)
    made["accuracy"]["oracle"] = 0.98
    made["detection"] = {"delays": [0, 1, None], "missed": 1, "false_alarms": seed}
    return made | more


def test_what_experts_and_detectors_did_stands_beside_the_accuracy():
    plain = run(0, 0.5, experts=0, detection={"delays": [], "missed": 4, "false_alarms": 0})
    rows = (Row("ours", (expert_run(0), expert_run(1))), Row("one network", (plain,)))
    text = markdown("small", [Board("split", rows)])
    part = text.split("### Experts and changes\n\n")[1].split("\n\n")[0].splitlines()
    assert part[0] == (
        "| method | n | oracle routing | selector | experts | delay | missed | false alarms |"
    )
    assert part[2:] == [
        "| *told nothing* |  |  |  |  |  |  |  |",
        "| ours | 2 | 98.00 ± 0.00 | 95.00 ± 0.00 | 5 | 0.5 ± 0.0 | 1 | 0.5 ± 6.4 |",
    ]


def test_tables_without_a_figure_are_left_out():
    text = markdown("small", [board()])
    assert "### Over time" not in text
    assert "### Experts and changes" not in text
    assert "untold" not in markdown("small", [Board("split", board().rows[:2])]).split("What")[0]


def test_what_a_page_says_in_backticks_is_code():
    html = page("small", [board()], "As `tame run` has it, 1 < 2.")
    assert "As <code>tame run</code> has it, 1 &lt; 2." in html
    assert "as `tame run has it" in page("small", [board()], "as `tame run has it")
