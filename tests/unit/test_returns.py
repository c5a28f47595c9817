"""Who is taken back: sure after two batches, asked for answers after one; and who is the same."""

import pytest
import torch
from test_careful import careful, kinds, part
from worlds import feed

from tame.core.conduct import Careful
from tame.core.doubt import Doubt
from tame.core.mark import Mark
from tame.core.merging import merge_same
from tame.core.waiting import Waiting
from tame.types import Reading, Verdict

USED_TO = Mark(level=0.01, spread=0.02, guess=0.69, least=0.0)
SURPRISED = 2.0


def nobody(_: int) -> bool:
    """Nothing looks foreign to anyone."""
    return False


def doubt(*known: float, own: float = SURPRISED) -> Doubt:
    """Return a suspicion of expert 1 in which expert 0 reads the batches held like this."""
    made = Doubt(1, Verdict(shift=True, statistic=1.0, threshold=0.5))
    for step, loss in enumerate(known):
        made.held.append(Waiting(step, torch.zeros(32, 2), torch.zeros(32), 1))
        made._note(1, USED_TO, Reading(own, 0.1, 32))
        made._note(0, USED_TO, Reading(loss, 0.01, 32))
    return made


@pytest.mark.parametrize(
    ("losses", "found"),
    [
        ((0.01,), None),  # one batch may be right by chance
        ((0.01, 0.02), 0),
        ((0.01, 0.11), None),  # clear together, but not each
        ((1.5, 0.01, 0.02), None),  # two of three, and all three together are strange
        ((0.08, 0.01, 0.02), 0),
    ],
)
def test_an_expert_is_taken_back_when_it_clearly_knows_each_of_two_batches(losses, found):
    assert doubt(*losses).returned(2, nobody, late=False) == found


@pytest.mark.parametrize(("losses", "found"), [((0.06, 0.13, 0.01), 0), ((0.2, 0.3, 0.2), None)])
def test_when_patience_is_over_all_that_is_held_decides(losses, found):
    wide = USED_TO._replace(spread=0.1)  # of an expert that is used to odd batches
    made = doubt(*losses)
    made._marks[0] = wide
    assert made.fit(0).claims
    assert made.returned(2, nobody, late=False) is None
    assert made.returned(2, nobody, late=True) == found


def test_the_best_of_those_that_are_sure_is_taken_back():
    made = doubt(0.03, 0.03)
    for _ in range(2):
        made._note(2, USED_TO, Reading(0.01, 0.01, 32))
    assert made.returned(2, nobody, late=False) == 2


def test_whoever_knows_what_is_held_answers_meanwhile():
    assert doubt(0.01).speaker() == 0
    assert doubt(SURPRISED).speaker() == 1
    assert doubt(0.02, own=0.01).speaker() == 1


@pytest.mark.parametrize("seed", range(3))
def test_a_return_is_answered_for_after_one_batch_and_committed_to_after_two(seed: int):
    learner = careful(seed)
    feed(learner, part(0, 80, seed) + part(1, 80, seed + 50))
    first, second, *rest = part(0, 12, seed + 90)
    (seen,) = feed(learner, [first])
    assert (seen.change, seen.expert, learner._pool.active.id) == ("suspected", -1, 1)
    x, y = (torch.cat(column) for column in zip(*rest, strict=True))
    right = (learner.predict(x, when="now") == y).double().mean()
    assert right > 0.8
    (seen,) = feed(learner, [second])
    assert (seen.change, seen.expert, seen.since) == ("switched", 0, 160)


@pytest.mark.parametrize("seed", range(3))
def test_one_batch_of_a_known_world_before_a_new_one_takes_nobody_back(seed: int):
    learner = careful(seed)
    feed(learner, part(0, 80, seed) + part(1, 80, seed + 50))
    seen = feed(learner, part(0, 1, seed + 90) + part(2, 60, seed + 70))
    assert "switched" not in kinds(seen)
    assert learner.expert_ids == (0, 1, 2)


def test_with_patience_for_one_batch_that_one_decides():
    learner = careful(conduct=Careful(patience=1, horizon=16, probation=6, spacing=4))
    feed(learner, part(0, 80, 0) + part(1, 80, 50))
    (seen,) = feed(learner, part(0, 1, 90))
    assert (seen.change, seen.expert) == ("switched", 0)


def two_experts(second: int):
    """Return a learner of an expert of world 0 and one of another, or of it too."""
    learner = careful()
    feed(learner, part(0, 80, 0) + part(1, 80, 50))
    learner._practice.close(learner._scene(learner._pool))
    assert learner.expert_ids == (0, 1)
    other, scene = learner._pool.open(1), learner._scene(learner._pool)
    other.memory = type(other.memory)(other.memory.capacity, 3)
    slots = learner._intake.labels.slots
    for x, y in part(second, 400, 7):
        other.repeat(scene.lesson(x, slots(y)))
    for x, y in part(second, 10, 8):
        other.memory.add(x, slots(y))
    return learner


@pytest.mark.parametrize(("second", "merged"), [(0, {1: 0}), (1, {})])
def test_experts_are_the_same_if_one_can_stand_in_for_the_other(second, merged, monkeypatch):
    learner = two_experts(second)
    monkeypatch.setattr("tame.core.merging._knows", lambda *_: True)
    assert merge_same(learner._scene(learner._pool)) == merged


def test_of_two_the_one_stays_that_can_stand_in_for_both(monkeypatch):
    learner = two_experts(1)
    monkeypatch.setattr("tame.core.merging._knows", lambda *_: True)
    monkeypatch.setattr("tame.core.merging._replaces", lambda _, expert, __: expert.id == 1)
    assert merge_same(learner._scene(learner._pool)) == {0: 1}
    assert learner.expert_ids == (1,)
    owners = learner._selector._reservoir.columns()[2]
    assert set(owners.tolist()) == {1}


def test_who_went_where_is_told_of_the_one_that_stayed_in_the_end(monkeypatch):
    learner = careful()
    feed(learner, part(0, 80, 0) + part(1, 80, 50) + part(2, 80, 60))
    learner._practice.close(learner._scene(learner._pool))
    assert learner.expert_ids == (0, 1, 2)
    monkeypatch.setattr("tame.core.merging._keeper", lambda _scene, _older, younger: younger.id)
    assert merge_same(learner._scene(learner._pool)) == {0: 2, 1: 2}
    assert learner.expert_ids == (2,)
