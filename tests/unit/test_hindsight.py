"""A change that raised no alarm is found by asking the expert as it was before."""

import pytest
from test_careful import careful, part
from worlds import feed

from tame.core.detectors.quorum import Quorum
from tame.core.hindsight import FEWEST, reread, second_look
from tame.core.waiting import Waiting

ODD, USUAL = 1.0, 0.05


@pytest.fixture(scope="module")
def learner():
    """Return a learner that knows world 0."""
    made = careful()
    feed(made, part(0, 120, 0))
    assert made._practice._ledger._ring.oldest.mark.level < 2 * USUAL
    return made


def learned(learner, turn: int, losses: list[float]) -> list[Waiting]:
    """Return batches of a world as learned from step 120 on, read like this at the time."""
    slots = learner._intake.labels.slots
    return [
        Waiting(120 + step, x, slots(y), 0, loss=loss, error=0.01)
        for step, ((x, y), loss) in enumerate(zip(part(turn, len(losses), 9), losses, strict=True))
    ]


def looked(learner, batches: list[Waiting]):
    scene, ring = learner._scene(learner._pool), learner._practice._ledger._ring
    return second_look(scene, batches, ring, ring.oldest.mark)


def test_another_world_that_was_soon_learned_is_found(learner):
    batches = learned(learner, 1, [ODD, *[USUAL] * 5])
    found = looked(learner, batches)
    assert (len(found.readings), found.began) == (6, 120)
    assert min(reading.loss for reading in found.readings) > ODD / 2


def test_one_odd_batch_is_no_change(learner):
    assert looked(learner, learned(learner, 0, [ODD, *[USUAL] * 5])) is None


def test_it_takes_a_batch_that_stood_out_and_some_after_it(learner):
    assert looked(learner, learned(learner, 1, [USUAL] * 6)) is None
    assert looked(learner, learned(learner, 1, [ODD, *[USUAL] * (FEWEST - 2)])) is None
    assert looked(learner, []) is None


def test_looking_changes_nothing(learner):
    batches = learned(learner, 1, [ODD, *[USUAL] * 5])
    assert looked(learner, batches) == looked(learner, batches)
    scene, ring = learner._scene(learner._pool), learner._practice._ledger._ring
    assert len(reread(scene, ring.oldest.expert, batches[:2])) == 2


@pytest.mark.parametrize("seed", range(3))
def test_a_change_that_no_detector_sees_and_that_is_soon_learned_is_noticed_and_dated(seed: int):
    learner = careful(seed)
    feed(learner, part(0, 120, seed))
    expert = learner._pool.active
    expert.detector = Quorum(quorum=1e9)  # deaf
    ledger, scene = learner._practice._ledger, learner._scene(learner._pool)
    for step, (x, y) in enumerate(part(1, 8, seed + 60)):  # each learned so often that it is known
        lesson = scene.lesson(x, learner._intake.labels.slots(y))
        batch = Waiting(120 + step, lesson.raw, lesson.slots, -1)
        reading = expert.measure(lesson)
        ledger.learn(expert, batch.read_as(reading), lesson, reading)
        for _ in range(40):
            expert.repeat(lesson)
        learner._step += 1
    assert ledger._level.readings()[-1].loss < ODD
    seen = feed(learner, part(1, 40, seed + 61))
    (recruited,) = (one for one in seen if one.change == "recruited")
    assert recruited.since == 120
    assert learner.expert_ids == (0, 1)
