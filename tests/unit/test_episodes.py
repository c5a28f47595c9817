"""From what a learner said to suspicions, changes and owners."""

from tame.bench.episodes import Episode, Said, episodes, learners, noticing
from tame.types import Truth


def said(*told: tuple):
    return [Said(step, *one) for step, one in enumerate(told)]


CALM = ("none", 0)
TRIED = said(
    CALM, CALM, ("suspected", -1), ("suspected", 1, 2), ("none", 1), ("recruited", 1, 1),
)  # fmt: skip
BURST = said(CALM, ("suspected", 1, 1), ("none", 1), ("none", 1), ("withdrawn", 0, 3), CALM)
HELD = said(CALM, ("suspected", -1), CALM, CALM)


def test_a_suspicion_lasts_until_it_is_sure():
    assert episodes(TRIED) == [Episode(2, 5)]
    assert learners(TRIED) == [0, 1, 1, 1, 1, 1]


def test_what_is_withdrawn_was_nobodys():
    assert episodes(BURST) == [Episode(1, None)]
    assert learners(BURST) == [0, -1, -1, 0, 0, 0]


def test_a_suspicion_may_dissolve():
    assert episodes(HELD) == [Episode(1, None)]
    assert learners(HELD) == [0, -1, 0, 0]


def test_one_that_is_open_at_the_end_is_not_sure():
    assert episodes(TRIED[:4]) == [Episode(2, None)]
    assert episodes(TRIED[:5], {0, 1}) == [Episode(2, 4)]


def test_the_papers_conduct_is_sure_at_once():
    prompt = said(CALM, ("recruited", 1, 1), ("switched", 0, 2))
    assert episodes(prompt) == [Episode(1, 1), Episode(2, 2)]
    assert learners(prompt) == [0, 1, 0]
    assert learners([]) == []


def test_a_newcomer_confirmed_in_doubt_owns_what_it_learned():
    told = said(CALM, ("suspected", 1, 1), ("none", 1), ("recruited", -1, 1))
    assert learners(told) == [0, 1, 1, 1]


def test_alarm_and_commit_are_both_told():
    truth = Truth((0, 1), (0, 2), {}, {}, lambda step: {0: 1})  # noqa: ARG005
    found = noticing(truth, TRIED)
    expected = {"delays": [0], "false_alarms": 0, "missed": 0, "commit_delays": [3]}
    assert found == {**expected, "withdrawn": 0}
    assert noticing(truth, BURST)["withdrawn"] == 1
    assert noticing(truth, BURST)["missed"] == 1
