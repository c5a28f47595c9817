"""Experts that answer with the mean of their weights."""

from typing import Any

import pytest
import torch
from worlds import a, b, changes, feed, small_tame

from tame import TAME, Training, load
from tame.core.average import EVERY, Average
from tame.core.gradual import Gradual
from tame.loading import completed


def averaging(**more: Any) -> TAME:
    return small_tame(training=Training(average=True, start="fresh"), **more)


def test_the_mean_is_of_the_last_part_of_the_way_however_long_it_is():
    for looks in (20, 200):
        net = torch.nn.Linear(1, 1, bias=False)
        average = Average(net)
        for look in range(looks):
            net.weight.data.fill_((look + 1) / looks)
            average.add(net)
        assert average.net.weight.item() == pytest.approx(0.9, abs=0.01)


def test_numbers_that_are_only_counted_are_those_of_now():
    net = torch.nn.BatchNorm1d(2)
    average = Average(net)
    net(torch.rand(4, 2))
    average.add(net)
    assert int(average.net.num_batches_tracked) == 1


def test_it_answers_with_the_mean_and_learns_on_with_the_last_weights():
    plain, made = small_tame(training=Training(start="fresh")), averaging()
    losses = [[seen.loss for seen in feed(learner, a(60))] for learner in (plain, made)]
    assert losses[0] == losses[1]
    network = made._pool.active.network
    assert made._pool.active.answers is network.mature is not network.net
    pairs = zip(network.mature.parameters(), network.net.parameters(), strict=True)
    same = [torch.equal(one, other) for one, other in pairs]
    assert not any(same)
    x, y = a(1, seed=9)[0]
    assert (made.predict(x) == y).float().mean() > 0.9


def test_of_the_two_sets_of_weights_one_answers_and_one_is_kept_to_learn_on():
    plain, made = small_tame(training=Training(start="fresh")), averaging()
    for learner in (plain, made):
        feed(learner, a(60))
    one, other = plain.sizes(), made.sizes()
    assert other.model_bytes == one.model_bytes
    live = sum(p.nbytes for p in made._pool.active.network.net.state_dict().values())
    assert other.training_bytes == one.training_bytes + live


def test_before_the_first_look_the_last_weights_answer():
    made = averaging()
    feed(made, a(EVERY - 1))
    network = made._pool.active.network
    assert network.mature is network.net


def test_a_learner_saved_and_loaded_goes_on_as_the_same(tmp_path):
    made = averaging()
    feed(made, a(32))
    made.save(tmp_path / "model.tame")
    again = load(tmp_path / "model.tame")
    x = a(1, seed=9)[0].x
    for learner in (made, again):
        feed(learner, a(23, seed=3))
    assert torch.equal(made.model(x), again.model(x))


def test_new_labels_leave_the_mean_as_it_was():
    made = averaging()
    feed(made, a(40))
    network = made._pool.active.network
    x = a(1, seed=9)[0].x
    before = network.mature(x)
    network.grow(4 * network.slots)
    assert torch.allclose(network.mature(x)[:, : before.shape[1]], before, atol=1e-5)
    assert network.mature(x).shape[1] >= 4 * before.shape[1]


def test_the_mean_lies_inside_the_masks():
    made = averaging(pruner=Gradual(nonzero=60, every=5, pace=2.0))
    feed(made, a(80))
    network = made._pool.active.network
    assert network.masks
    state = network.mature.state_dict()
    assert all(not state[name][~mask].any() for name, mask in network.masks.items())


def test_a_pruned_expert_was_pruned_from_the_mean():
    made = averaging()
    assert changes(feed(made, a() + b())) == [(60, "recruited", 1)]
    mature = made._pool.open(0).network.mature.state_dict()
    made.consolidate()
    settled = made._pool.open(0).network.net.state_dict()
    assert all(value.shape == settled[name].shape for name, value in mature.items())
    x, y = a(1, seed=9)[0]
    assert (made.predict_by(x, 0) == y).float().mean() > 0.9


def test_files_from_before_there_were_means_have_none():
    assert "average" not in completed(TAME, {"training": {"rate": 0.1}})["training"]
    assert not Training().average
