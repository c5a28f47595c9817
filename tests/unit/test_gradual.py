"""Pruning while the stream runs: what is kept, what lives, what the end makes of it."""

import pytest
import torch
from torch import nn
from worlds import QUICK, STEADY, a, b, changes, feed, small_tame

from tame import load
from tame.checks.failure import difference
from tame.core.gradual import Gradual, Thinner
from tame.core.prune import Magnitude, count_nonzero
from tame.core.thinning import count_kept, falling, open_masks, room_for, thinned
from tame.engine.fitting import Job, Samples, Teacher, fit
from tame.engine.randomness import torch_generator
from tame.engine.recipe import Recipe

NONZERO = 90
PACED = Gradual(nonzero=NONZERO, pace=10.0, every=5, memory=64, tolerance=1.0, retraining=QUICK)


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 10))


def test_exactly_so_many_of_the_largest_weights_stay():
    made = net()
    masks = thinned(made, {}, 60)
    assert count_kept(made, masks) == 60
    kept = torch.cat([made[0].weight[masks["0.weight"]], made[2].weight[masks["2.weight"]]])
    lost = torch.cat([made[0].weight[~masks["0.weight"]], made[2].weight[~masks["2.weight"]]])
    assert kept.abs().min() >= lost.abs().max()


def test_no_layer_dies():
    made = net()
    with torch.no_grad():
        made[2].weight.mul_(1e-6)
    masks = thinned(made, {}, 40)
    assert int(masks["2.weight"].sum()) == 2
    assert count_kept(made, masks) == 40


def test_what_was_pruned_does_not_come_back():
    made = net()
    first = thinned(made, {}, 60)
    second = thinned(made, first, 200)
    assert all(torch.equal(first[name], second[name]) for name in first)
    third = thinned(made, first, 30)
    assert all(not (third[name] & ~first[name]).any() for name in first)


def test_biases_are_counted():
    made = net()
    assert room_for(made, NONZERO) == NONZERO - 26
    assert room_for(made, 3) == 2
    assert room_for(made, 10**6) == 8 * 16 + 160


def test_the_schedule_falls_to_its_end():
    kept = [falling(288, 64, 1 / (1 + step / 5)) for step in range(0, 1000, 5)]
    assert kept[0] == 288
    assert kept[-1] == 64
    assert kept == sorted(kept, reverse=True)


def test_an_expert_is_pruned_while_it_learns():
    learner = small_tame(pruner=PACED)
    feed(learner, a(4))
    assert not learner._pool.active.network.masks
    feed(learner, a(STEADY - 4))
    network = learner._pool.active.network
    assert count_kept(network.net, network.masks) == falling(288, NONZERO - 26, 1 / (1 + 60 / 10))
    assert not learner._pool.active.is_pruned
    assert count_nonzero(network.net) < 110
    x, y = a(1, seed=9)[0]
    assert (learner.predict(x) == y).float().mean() > 0.9


def test_consolidation_meets_the_count_and_a_return_keeps_the_mask():
    learner = small_tame(pruner=PACED)
    feed(learner, a() + b())
    learner.consolidate()
    first = learner._pool.experts[0]
    assert first.is_pruned
    assert count_nonzero(first.network.net) == NONZERO
    before = {name: mask.clone() for name, mask in first.network.masks.items()}
    assert changes(feed(learner, a(STEADY, seed=4)))[0][1:] == ("switched", 0)
    after = learner._pool.active.network.masks
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_mask_rests_while_its_expert_does():
    learner = small_tame(pruner=PACED)
    feed(learner, a())
    before = {name: mask.clone() for name, mask in learner._pool.active.network.masks.items()}
    feed(learner, b())
    after = learner._pool.experts[0].network.masks
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_an_expert_that_had_no_time_is_finished_on_its_samples():
    late = Gradual(nonzero=NONZERO, pace=0.0, memory=200, tolerance=1.0, retraining=QUICK)
    learner = small_tame(pruner=late)
    feed(learner, a() + b())
    assert not learner._pool.experts[0].network.masks
    learner.consolidate()
    first = learner._pool.experts[0]
    assert count_nonzero(first.network.net) == NONZERO
    x, y = a(1, seed=9)[0]
    assert (learner.predict_by(x, 0) == y).float().mean() > 0.9


def test_resumed_as_never_stopped(tmp_path):
    whole, half = small_tame(pruner=PACED), small_tame(pruner=PACED)
    stream = [*a(43), *b(40)]
    feed(whole, stream)
    feed(half, stream[:27])
    half.save(tmp_path / "half.tame")
    resumed = load(tmp_path / "half.tame")
    feed(resumed, stream[27:])
    assert difference(whole.state_dict(), resumed.state_dict()) is None
    whole.consolidate()
    resumed.consolidate()
    assert difference(whole.state_dict(), resumed.state_dict()) is None


def test_one_shot_pruning_leaves_the_stream_alone():
    assert isinstance(PACED, Thinner)
    assert not isinstance(Magnitude(), Thinner)


def test_a_teacher_is_followed_where_labels_lie():
    torch.manual_seed(0)
    x = torch.randn(256, 8)
    teacher = nn.Linear(8, 2)
    wrong = 1 - teacher(x).argmax(1)
    found = {}
    for share in (0.0, 1.0):
        pupil = nn.Linear(8, 2)
        samples = Samples(x, wrong, lambda raw, _, __: raw, 2)
        job = Job(pupil, samples, torch_generator(1), teacher=Teacher(teacher, share, 2.0))
        fit([job], Recipe(epochs=30, batch=64, rate=0.5))
        found[share] = float((pupil(x).argmax(1) == wrong).float().mean())
    assert found[0.0] > 0.9
    assert found[1.0] < 0.1


def test_masks_may_change_between_batches():
    made = net()
    masks = open_masks(made, {})
    shares = []

    def between(_, done: float) -> None:
        shares.append(done)
        masks["0.weight"].zero_()

    samples = Samples(torch.randn(64, 8), torch.zeros(64).long(), lambda raw, _, __: raw, 10)
    fit([Job(made, samples, torch_generator(0), masks)], Recipe(epochs=2, batch=8), between=between)
    assert shares == [0.0, 5 / 16, 0.5, 13 / 16]
    assert not made[0].weight.any()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"sparsity": 1.0}, "sparsity lies in"),
        ({"distillation": 1.5}, "distillation lies in"),
        ({"every": 0}, "every is 1 or more"),
    ],
)
def test_refuses_what_makes_no_sense(wrong: dict[str, float], said: str):
    with pytest.raises(ValueError, match=said):
        Gradual(**wrong)


def test_gentler_keeps_more_and_slower_is_slower():
    assert Gradual(nonzero=100).gentler().nonzero == 400
    assert Gradual(sparsity=0.5).gentler().sparsity == 0.0
    assert Gradual(sparsity=0.0).gentler() is None
    assert PACED.slower().retraining.rate == QUICK.rate / 2
