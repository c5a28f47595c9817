"""After an alarm: one batched pass reads as many experts as one by one, and chooses the same."""

from typing import Any

import numpy as np
import pytest
import torch
from worlds import a, b, c, changes, feed, small_tame

from tame import Batch, NetworkSelector, Training
from tame.core import probe
from tame.core.expert import Expert
from tame.core.probe import Readings, Sleeper
from tame.engine.lesson import Lesson
from tame.engine.together import Team


@pytest.fixture
def learner():
    """Return a learner of four experts: two packed, one awake, one active."""
    learner = small_tame()
    feed(learner, a() + b() + c(30))
    learner.consolidate()
    feed(learner, c(30, seed=6))
    feed(learner, [Batch(batch.x, (batch.y + 1) % 4) for batch in a(40, seed=4)])
    assert learner._pool.shelf.ids.tolist() == [0, 1]
    assert learner.expert_ids == (0, 1, 2, 3)
    return learner


def lesson(learner: Any, batch: Batch):
    slots = learner._intake.labels.slots(batch.y)
    return Lesson(batch.x, slots, 4, learner._intake.ready, "cpu")


def candidates(learner: Any):
    pool = learner._pool
    return [pool._candidate(number, 4) for number in pool.ids if number != pool.active.id]


def test_one_pass_reads_what_each_expert_reads(learner: Any):
    asked = lesson(learner, b(1, seed=9)[0])
    found = list(Readings(candidates(learner), asked, learner._pool.plan))
    assert [type(one) for one in candidates(learner)] == [Sleeper, Sleeper, Expert]
    assert len(found) == 3
    for number, reading in enumerate(found):
        expected = learner._pool.open(number).measure(asked, keep=False)
        assert np.allclose(reading, expected, rtol=1e-5)


@pytest.mark.parametrize("team", [Team(), Team(able=True, convolves=False)], ids=["alone", "team"])
def test_labels_that_came_up_since_leave_the_reading_of_own_data_as_it_was(
    learner: Any, team: Team
):
    pool = learner._pool
    pool.plan.__dict__["team"] = team
    asked = lesson(learner, b(1, seed=9)[0])
    before = list(Readings(candidates(learner), asked, pool.plan, own=True))
    plain = list(Readings(candidates(learner), asked, pool.plan))
    assert np.allclose(before, plain, rtol=1e-5)  # all four labels were taught
    feed(learner, [Batch(10 * x, y + 4) for x, y in c(3, seed=8)])
    wide = Lesson(asked.raw, asked.slots, 8, learner._intake.ready, "cpu")
    others = [pool._candidate(number, 8) for number in (0, 1, 2)]
    after = list(Readings(others, wide, pool.plan, own=True))
    assert np.allclose([r.loss for r in after], [r.loss for r in before], rtol=1e-4)
    shifted = list(Readings(others, wide, pool.plan))
    assert all(more.loss > less.loss + 1e-3 for more, less in zip(shifted, after, strict=True))


def test_a_label_an_expert_was_never_taught_still_costs_it(learner: Any):
    feed(learner, [Batch(10 * x, y + 4) for x, y in c(3, seed=8)])
    (batch,) = b(1, seed=9)
    asked = Lesson(batch.x, batch.y + 4, 8, learner._intake.ready, "cpu")
    others = [learner._pool._candidate(number, 8) for number in (0, 1, 2)]
    found = list(Readings(others, asked, learner._pool.plan, own=True))
    assert all(reading.loss > 0.5 and reading.unseen > 0 for reading in found)


@pytest.mark.parametrize("team", [Team(), Team(able=True, convolves=False)], ids=["alone", "team"])
def test_the_expert_found_is_the_one_found_one_by_one(learner: Any, team: Team):
    pool = learner._pool
    pool.plan.__dict__["team"] = team
    unknown = [Batch(-9 * x, y) for x, y in a(1, seed=9)]
    found, expected = [], []
    for (batch,) in (a(1, seed=9), b(1, seed=9), c(1, seed=9), unknown):
        asked = lesson(learner, batch)
        others = [expert for expert in pool.experts if expert is not pool.active]
        knows = [e.id for e in others if e.detector.accepts(e.measure(asked, keep=False))]
        expected.append(knows[0] if knows else None)
        one = pool.familiar(asked)
        found.append(None if one is None else one.id)
    assert found == expected
    assert {0, 1, None} <= set(found)


def test_packed_experts_are_asked_in_one_call(learner: Any, monkeypatch: pytest.MonkeyPatch):
    calls = []
    shelf = learner._pool.shelf
    real = shelf.ask_together

    def counting(rows: Any, x: torch.Tensor, *, shared: bool) -> torch.Tensor:
        calls.append(list(rows))
        return real(rows, x, shared=shared)

    monkeypatch.setattr(shelf, "ask_together", counting)
    list(Readings(candidates(learner), lesson(learner, b(1)[0]), learner._pool.plan))
    assert calls == [[0, 1]]


def test_a_matcher_that_stops_early_pays_for_no_more(learner: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(probe, "MANY", 1)
    readings = Readings(candidates(learner), lesson(learner, a(1)[0]), learner._pool.plan)
    assert readings[0].samples == 16
    assert len(readings._found) == 1


def test_reading_changes_nothing(learner: Any):
    before = repr(learner.state_dict())
    learner._pool.familiar(lesson(learner, b(1, seed=9)[0]), learner._rank)
    assert repr(learner.state_dict()) == before


def test_an_output_that_is_missing_reads_as_zero(learner: Any):
    """A packed expert of ten slots asked about an eleventh label is only surprised."""
    x = b(1, seed=9)[0].x
    asked = Lesson(x, torch.full((len(x),), 10), 11, learner._intake.ready, "cpu")
    pool = learner._pool
    (reading,) = Readings([pool._candidate(0, 11)], asked, pool.plan)
    with torch.no_grad():
        outputs = pool.open(0).network.net.eval()(asked.ready)
    expected = torch.cat([outputs, outputs.new_zeros(len(x), 1)], 1).logsumexp(1).mean()
    assert reading.loss == pytest.approx(float(expected), rel=1e-5)


def apart(place: int, batches: int, seed: int):
    """Return one of four worlds whose inputs lie far apart, and whose labels turn."""
    away = 12 * torch.eye(8)[2 * place]
    return [Batch(3 * x + away, (y + place) % 4) for x, y in a(batches, seed=seed)]


def shortlisted(shortlist: int, **more: Any):
    fresh = Training(start="fresh")  # or newcomers would know what they are to be surprised by
    learner = small_tame(shortlist=shortlist, training=fresh, **more)
    tried: list[list[int]] = []
    real = Readings.__init__

    def noting(self: Any, candidates: Any, *others: Any) -> None:
        tried.append([one.id for one in candidates])
        real(self, candidates, *others)

    return learner, tried, noting


@pytest.mark.parametrize("consolidated", [True, False], ids=["trained", "never trained"])
def test_a_shortlist_holds_the_likeliest_few(
    consolidated: bool,  # noqa: FBT001 (a case)
    monkeypatch: pytest.MonkeyPatch,
):
    """Trained or not, the selector ranks: without a network by the nearest remembered mean."""
    learner, tried, noting = shortlisted(1, selector=NetworkSelector(memory=400))
    worlds = [apart(place, 60, seed=place) for place in range(4)]
    for batches in worlds:
        feed(learner, batches)
    if consolidated:
        learner.consolidate()
    assert learner.expert_ids == (0, 1, 2, 3)
    monkeypatch.setattr(Readings, "__init__", noting)
    assert changes(feed(learner, apart(1, 10, seed=9))) == [(240, "switched", 1)]
    assert tried == [[1]]


def test_no_shortlist_tries_all(monkeypatch: pytest.MonkeyPatch):
    learner, tried, noting = shortlisted(0)
    feed(learner, a() + b())
    monkeypatch.setattr(Readings, "__init__", noting)
    feed(learner, c(1))
    assert tried == [[0]]
    feed(learner, c(59) + a(1, seed=5))
    assert tried[-1] == [0, 1]


def test_a_small_pool_is_tried_whole(monkeypatch: pytest.MonkeyPatch):
    learner, tried, noting = shortlisted(2)
    feed(learner, a() + b() + c())
    monkeypatch.setattr(Readings, "__init__", noting)
    feed(learner, b(1, seed=5))
    assert tried == [[0, 1]]
