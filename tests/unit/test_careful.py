"""The careful conduct: suspects, tries, dates, and takes back what was wrong."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from worlds import a, b, c, changes, feed, small_tame

import tame
from tame import TAME, Batch, Training
from tame.checks import learner_checks
from tame.checks.failure import difference
from tame.core.conduct import Careful
from tame.core.detectors.quorum import Quorum
from tame.registry import CONDUCTS

CHECKS = dict(learner_checks())
QUICK = Careful(horizon=16, probation=6, spacing=4)
FRESH = Training(start="fresh")  # a warm newcomer knows the old world's samples too, for a while


def careful(seed: int = 0, conduct: Careful = QUICK, **changes: Any) -> TAME:
    return small_tame(seed, conduct=conduct, detector=Quorum(burn_in=10), **changes)


def part(turn: int, batches: int, seed: int):
    """Return batches of a world; in each the same inputs have other labels."""
    return [Batch(batch.x, (batch.y + turn) % 4) for batch in a(batches, seed=seed)]


def noise(batches: int, seed: int):
    """Return batches whose labels mean nothing."""
    draws = torch.Generator().manual_seed(seed)
    return [
        Batch(x, torch.randint(0, 4, (len(y),), generator=draws))
        for x, y in a(batches, seed=seed + 500)
    ]


def kinds(seen: Any):
    return [change for _, change, _ in changes(seen)]


@pytest.mark.parametrize("check", CHECKS)
def test_contract(check: str):
    CHECKS[check](careful)


@pytest.mark.parametrize("seed", range(3))
def test_a_sudden_change_is_suspected_at_once_confirmed_later_and_dated_exactly(seed: int):
    learner = careful(seed)
    seen = feed(learner, part(0, 80, seed) + part(1, 60, seed + 50))
    assert seen[80].change == "suspected"
    (confirmed,) = (one for one in seen if one.change == "recruited")
    assert 80 + QUICK.probation <= confirmed.step <= 80 + QUICK.horizon
    assert confirmed.since == 80
    assert learner.expert_ids == (0, 1)


@pytest.mark.parametrize("seed", range(3))
def test_a_return_is_a_switch_within_two_batches(seed: int):
    learner = careful(seed)
    feed(learner, part(0, 80, seed) + part(1, 80, seed + 50))
    seen = feed(learner, part(0, 30, seed + 90))
    (switched,) = (one for one in seen if one.change == "switched")
    assert switched.step <= 162
    assert (switched.expert, switched.since) == (0, 160)
    assert learner.expert_ids == (0, 1)


@pytest.mark.parametrize("seed", range(3))
def test_a_burst_recruits_nobody_and_leaves_no_trace(seed: int):
    learner, stream = careful(seed), part(0, 80, seed)
    feed(learner, stream)
    counts = learner._pool.active.counts.sum()
    seen = feed(learner, noise(4, seed))
    assert seen[0].change == "suspected"
    seen = feed(learner, part(0, 30, seed + 70))
    assert "recruited" not in kinds(seen)
    assert learner.expert_ids == (0,)
    assert learner._pool.active.id == 0
    learned = sum(one.expert == 0 and one.change == "none" for one in seen) + QUICK.returns - 1
    assert learner._pool.active.counts.sum() <= counts + 16 * (learned + 1)
    learner.consolidate()
    owners = learner._selector._reservoir.columns()[2]
    assert set(owners.tolist()) == {0}
    assert learner._selector._reservoir.seen == learner._pool.active.memory.seen


def test_what_a_withdrawn_newcomer_learned_is_in_no_reservoir():
    learner = careful()
    feed(learner, part(0, 80, 0))
    bad = noise(4, 3)
    feed(learner, bad + part(0, 40, 9))
    learner.consolidate()
    memory = learner._pool.active.memory.columns()[0]
    for batch in bad:
        assert not any(torch.equal(row, other) for row in batch.x for other in memory)


def test_a_stationary_stream_is_one_expert_and_never_withdraws():
    learner = careful()
    assert changes(feed(learner, a(600))) == []


def test_an_expert_that_knows_nothing_yet_cannot_be_left():
    learner = careful(conduct=QUICK)
    seen = feed(learner, noise(60, 1))
    assert learner.expert_ids == (0,)
    assert changes(seen) == []


def test_batches_wait_before_they_enter_a_reservoir():
    learner = careful()
    feed(learner, a(20))
    memory = learner._pool.active.memory
    assert memory.seen == 16 * 3  # sixteen wait while a batch is judged, and then that one too
    sizes = learner.sizes()
    assert sizes.samples == 17 * 16 + 2 * 16 * 3
    learner.consolidate()
    assert memory.seen == 16 * 20
    assert learner._practice.weigh() == (0, 0, 0)


def test_predictions_know_a_newcomer_whose_samples_still_wait():
    learner = careful()
    feed(learner, a(80) + b(14))
    assert len(learner._pool.active.memory) == 0
    fresh = torch.cat([batch.x for batch in b(5, seed=77)])
    assert (learner.route(fresh) == 1).any()
    assert learner._selector._reservoir.columns()[2].unique().tolist() == [0]


def moments():
    """Name steps of a stream at which a conduct is calm, in doubt, or tries a newcomer."""
    learner, stream = careful(), hard_stream()
    found = {}
    for step, batch in enumerate(stream):
        practice = learner._practice
        if practice._doubt is not None:
            found.setdefault("in doubt", step)
        elif practice._probation is not None:
            found.setdefault("on probation", step)
        learner.observe(batch)
    return {**found, "calm": 50}


def hard_stream():
    """Return a world that gives way to another over some batches, noise, and a return."""
    first, second = part(0, 110, 0), part(1, 110, 1)
    blend = []
    for step in range(30):
        mine = step * 16 // 30
        x = torch.cat([second[step].x[:mine], first[80 + step].x[mine:]])
        y = torch.cat([second[step].y[:mine], first[80 + step].y[mine:]])
        blend.append(Batch(x, y))
    return first[:80] + blend + second[30:] + noise(4, 5) + part(1, 20, 7) + part(0, 30, 8)


@pytest.mark.parametrize("moment", ["calm", "in doubt", "on probation"])
def test_saved_and_resumed_at_any_moment_it_goes_on_bit_for_bit(moment: str, tmp_path: Any):
    stream, step = hard_stream(), moments()[moment]
    whole, first = careful(), careful()
    expected = feed(whole, stream)
    seen = feed(first, stream[:step])
    first.save(tmp_path / "model.tame")
    second = tame.load(tmp_path / "model.tame")
    seen += feed(second, stream[step:])
    assert repr(seen) == repr(expected)
    assert difference(whole.state_dict(), second.state_dict()) is None
    whole.consolidate()
    second.consolidate()
    assert difference(whole.state_dict(), second.state_dict()) is None


def wrongly_owned(learner: TAME) -> float:
    """Return the share of samples in the experts' reservoirs that are another world's."""
    learner.consolidate()
    wrong = total = 0
    truth = {}
    for world, batches in ((0, part(0, 110, 0)), (1, part(1, 110, 1))):
        for batch in batches:
            truth.update(
                {(row.numpy().tobytes(), int(y)): world for row, y in zip(*batch, strict=True)}
            )
    for expert in learner._pool.experts:
        raw, slots = expert.memory.columns()
        labels = learner._intake.labels.labels()[slots.long()]
        worlds = [truth[row.numpy().tobytes(), int(y)] for row, y in zip(raw, labels, strict=True)]
        wrong += sum(world != expert.id for world in worlds)
        total += len(worlds)
    return wrong / total


def test_after_a_blend_fewer_samples_are_in_the_wrong_reservoir():
    stream = hard_stream()[:160]
    prompt = small_tame(detector=Quorum(burn_in=10), training=FRESH)
    patient = careful(training=FRESH)
    for learner in (prompt, patient):
        feed(learner, stream)
    assert patient.expert_ids == (0, 1)
    assert wrongly_owned(patient) < 0.05
    if prompt.expert_ids == (0, 1):
        assert wrongly_owned(patient) <= 0.5 * wrongly_owned(prompt)


def test_without_rollback_a_change_is_dated_to_its_alarm_and_more_is_left_behind():
    stream = hard_stream()[:160]
    without = careful(conduct=replace(QUICK, rollback=False), training=FRESH)
    seen = feed(without, stream)
    (sure,) = (one for one in seen if one.change == "recruited")
    first = next(one.step for one in seen if one.change == "suspected")
    assert sure.since == first
    patient = careful(training=FRESH)
    redated = feed(patient, stream)
    assert next(one.since for one in redated if one.change == "recruited") < first
    assert without.expert_ids == patient.expert_ids == (0, 1)
    assert wrongly_owned(patient) <= 0.5 * wrongly_owned(without)


def test_redated_samples_leave_every_reservoir_uniform():
    """Over runs of other seeds, every batch of the first world is remembered about as often."""
    stream, times = hard_stream()[:140], np.zeros(80)
    where = {row.numpy().tobytes(): step for step, batch in enumerate(stream) for row in batch.x}
    for seed in range(30):
        learner = careful(seed)
        seen = feed(learner, stream)
        learner._practice.close(learner._scene(learner._pool))
        assert any(one.since is not None and one.since < one.step for one in seen)
        steps = [where[row.numpy().tobytes()] for row in learner._pool.open(0).memory.columns()[0]]
        times += np.bincount([step for step in steps if step < 80], minlength=80)
    expected = times.mean()
    assert ((times - expected) ** 2 / expected).sum() < 124  # chi-square of 79, 0.1 %


def test_a_budget_stops_recruiting_and_lets_the_closest_adapt():
    conduct = Careful(horizon=16, probation=6, spacing=4, most_experts=2)
    learner = careful(conduct=conduct)
    for turn in range(4):
        feed(learner, part(turn, 60, turn))
        assert len(learner.expert_ids) <= 2
    assert learner.consolidate().refused == 2
    assert learner.consolidate().refused == 0


def test_the_only_expert_learns_whatever_comes_and_takes_back_what_it_knew():
    learner = careful(conduct=replace(QUICK, most_experts=1))
    refused = []
    for turn, world in enumerate((0, 1, 0, 1)):
        feed(learner, part(world, 60, turn))
        x, y = part(world, 1, 99)[0]
        assert (learner.predict(x, when="now") == y).float().mean() > 0.9
        refused.append(learner._practice._refused)
    assert refused == [0, 1, 1, 2]  # as it was before, it knows the first world again at once


def test_memory_is_bounded_by_the_horizon():
    learner = careful()
    feed(learner, part(0, 80, 0) + part(1, 16, 1))
    ledger = learner._practice._ledger
    assert len(ledger.queue) <= 3 * QUICK.horizon
    assert len(ledger._ring) <= QUICK.horizon // QUICK.spacing + 2


def test_the_giver_may_change_a_batch_afterwards():
    learner, other = careful(), careful()
    for batch in a(30):
        x, y = batch.x.clone(), batch.y.clone()
        learner.observe(Batch(x, y))
        x.zero_()
        y.zero_()
        other.observe(batch)
    assert difference(learner.state_dict(), other.state_dict()) is None


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="horizon is at least"):
        Careful(horizon=8)
    with pytest.raises(ValueError, match="most_experts"):
        Careful(most_experts=-1)
    assert list(CONDUCTS) == ["immediate", "careful"]


def test_labels_and_three_worlds():
    learner = careful()
    feed(learner, a(80) + b(60) + c(60) + a(20, seed=9))
    assert len(learner.expert_ids) == 3
    assert learner._pool.active.id == 0


def test_an_expert_thrown_off_by_its_own_step_is_put_back():
    learner = careful()
    feed(learner, part(0, 80, 0))
    with torch.no_grad():
        for weight in learner._pool.active.network.net.parameters():
            weight.neg_()
    seen = feed(learner, part(0, 40, 9))
    assert seen[0].loss > 0.9
    assert {one.change for one in seen} <= {"none", "suspected"}
    assert max(one.loss for one in seen[3:]) < 0.5
    assert learner.expert_ids == (0,)


@pytest.mark.parametrize(("batches", "experts"), [(3, (0,)), (12, (0, 1))])
def test_a_consolidation_ends_a_probation(batches: int, experts: tuple[int, ...]):
    learner = careful()
    feed(learner, part(0, 80, 0) + noise(batches, 4))
    assert learner._practice._probation is not None
    learner.consolidate()
    assert learner.expert_ids == experts
    assert learner._practice._probation is None
    assert learner.predict(part(0, 1, 5)[0].x).shape == (16,)


def test_the_answer_for_now_is_the_active_experts_whether_or_not_a_model_was_made():
    learner = careful()
    feed(learner, part(0, 80, 0) + part(1, 60, 50))
    x = torch.cat([batch.x for batch in part(1, 4, 70)])
    before = learner.predict(x, when="now")
    assert learner.predict_by(x, 1).equal(before)  # makes the model
    assert learner.predict(x, when="now").equal(before)
    assert not learner.predict_by(x, 0).equal(before)


def test_a_newcomer_that_rehearses_is_sure_sooner_and_learns_no_sample_twice_for_its_reservoir():
    stream = part(0, 80, 0) + part(1, 60, 50)
    sure, kept = [], []
    for rehearsals in (0, 8):
        learner = careful(conduct=replace(QUICK, rehearsals=rehearsals))
        seen = feed(learner, stream)
        sure.append(next(one.step for one in seen if one.change == "recruited"))
        learner.consolidate()
        kept.append(learner._pool.open(1).memory.seen)
    assert sure[1] < sure[0]
    assert kept[1] == kept[0] == 60 * len(stream[0].y)
