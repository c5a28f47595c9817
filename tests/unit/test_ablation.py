"""The studies that turn parts of a preset off can all be run, and their blind detector is blind."""

import tomllib
from pathlib import Path

import ablation
import ablation_table
import pytest
import variants
from blind import Blind

from tame.bench.experiment import resolve
from tame.registry import DETECTORS
from tame.types import Reading

pytestmark = pytest.mark.usefixtures("registered")
STUDIES = tomllib.loads(ablation.STUDIES.read_text())


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the blind detector be known during a test."""
    monkeypatch.setattr(DETECTORS, "_table", dict(DETECTORS.entries()))
    ablation.register()


@pytest.mark.parametrize("study", STUDIES)
def test_every_variant_makes_a_learner_and_differs_from_the_preset(study: str):
    own = ablation.STUDIES.with_name(f"{study}.toml")
    preset = str(own) if own.exists() else study
    plain = variants.held_back(preset, [])
    assert "held-back:" in str(plain.stream.data)
    assert ablation.tries(ablation.parser().parse_args([preset])).keys() > {ablation.BASE}
    for name, change in STUDIES[study].items():
        made = variants.held_back(preset, [change])
        made.learner()
        assert made != plain, name
        assert made.stream == plain.stream, name


def test_a_study_goes_on_where_its_file_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    quick = ["--set", "stream.lengths=[3]", "--set", "selector.training.epochs=1"]
    told = ["embedded-split", "--seeds", "1", "--out", str(tmp_path / "found.json")]
    tried = ["--try", "blind:detector.name=blind;conduct=immediate"]
    asked = ablation.parser().parse_args([*told, *quick, *tried])
    rows = {"as it is": [{"seed": 0}]}
    assert [list(run["forms"]) for run in ablation.missing(asked, rows)] == [["blind"]]
    ablation.compare(asked)
    assert set(ablation.known(asked)) == {"as it is", "blind"}
    assert list(ablation.missing(asked, ablation.known(asked))) == []
    assert "blind, n = 1" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="holds another study: embedded-split"):
        ablation.known(ablation.parser().parse_args(told))


def test_a_decision_is_read_off_the_run_as_it_is_and_is_what_a_run_of_its_own_gives():
    quick = ["--set", "stream.lengths=[200]", "--set", "selector.training.epochs=1"]
    told = ["embedded-split", "--seeds", "1", *quick, "--try", "hard:decision=hard"]
    (run,) = ablation.missing(ablation.parser().parse_args(told), {})
    assert list(run["forms"]) == ["as it is", "hard"]
    together = ablation.measured(**run)
    alone = ablation.measured(run["preset"], {"hard": run["forms"]["hard"]})["hard"]
    assert {**together["hard"], "seconds": 0} == {**alone, "seconds": 0}
    assert together["hard"]["strict"] != together["as it is"]["strict"]


MOMENTS = (
    'selector={name="moments", net={name="mlp", hidden=[16]}, memory=300, '
    'training={epochs=1, augment="none"}}'
)


def test_so_is_the_share_of_the_selectors_network():
    quick = ["--set", "stream.lengths=[60]", "--set", MOMENTS]
    told = ["embedded-split", "--seeds", "1", *quick, "--try", "sums:selector.share=0.0"]
    (run,) = ablation.missing(ablation.parser().parse_args(told), {})
    assert list(run["forms"]) == ["as it is", "sums"]
    alone = ablation.measured(run["preset"], {"sums": run["forms"]["sums"]})["sums"]
    together = ablation.measured(**run)
    assert {**together["sums"], "seconds": 0} == {**alone, "seconds": 0}
    assert together["sums"]["strict"] != together["as it is"]["strict"]


def test_boundaries_at_random_are_others_for_every_seed():
    asked = ablation.parser().parse_args(["split-mnist"])
    forms = [run["forms"].items() for run in ablation.missing(asked, {})]
    found = [changes for form in forms for name, changes in form if "random" in name]
    detectors = [variants.held_back("split-mnist", changes).settings.detector for changes in found]
    assert detectors == [Blind(850, seed) for seed in range(3)]


def test_a_blind_detector_alarms_by_chance_and_goes_on_from_its_state():
    one = Blind(every=10, seed=1)
    alarms = sum(one.update(Reading(0.0)).shift for _ in range(2000))
    assert 150 < alarms < 250
    other = one.fresh()
    other.load_state_dict(one.state_dict())
    said = [[each.update(Reading(9.9)).shift for _ in range(50)] for each in (one, other)]
    assert said[0] == said[1]
    assert not any(Blind().update(Reading(9.9)).shift for _ in range(100))


def test_the_blind_detector_leaves_one_expert():
    changes = [{"detector": {"name": "blind"}, "conduct": "immediate", "stream": {"lengths": [5]}}]
    experiment = resolve("embedded-split", changes)
    learner = experiment.learner()
    for batch in experiment.open_stream():
        learner.observe(batch)
    assert len(learner.expert_ids) == 1


def test_the_table_tells_differences_seed_by_seed():
    run = {"oracle": 0.9, "selector": None, "nonzero": 1200, "missed": 1, "false_alarms": 2}
    base = [run | {"seed": seed, "strict": 0.5 + seed / 10, "experts": 5} for seed in (0, 1)]
    other = [run | {"seed": seed, "strict": 0.4 + seed / 10, "experts": seed} for seed in (1, 0)]
    *_, plain, changed = ablation_table.lines({"as it is": base, "changed": other})
    assert plain.endswith("| 90.00 ± 0.00 | — | 1,200 | 5 | 2 | 4 | 2 |")
    assert changed.startswith("| changed | 45.00 ± 63.53 | -10.00 ± 0.00 | 90.00 ± 0.00 |")
    assert changed.endswith("| 1,200 | 0 to 1 | 2 | 4 | 2 |")
