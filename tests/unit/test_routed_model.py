"""The final model is one plain module that does what the learner does."""

import copy
from typing import Any

import pytest
import torch
from torch import nn
from worlds import a, b, c, changes, feed, small_tame

from tame import Batch, NetworkSelector, RoutedModel
from tame.checks.material import world
from tame.core.routed import CHUNK


@pytest.fixture(scope="module")
def learner():
    """Return a learner of three experts, the third one newer than its selector."""
    learner = small_tame()
    feed(learner, a() + b())
    learner.consolidate()
    feed(learner, c())
    return learner


@pytest.fixture
def samples():
    return torch.cat([batch.x for batch in a(4, seed=7) + b(4, seed=8) + c(4, seed=9)])


def test_predicts_what_the_learner_predicts(learner: Any, samples: torch.Tensor):
    assert isinstance(learner.model, RoutedModel)
    assert torch.equal(learner.model.predict(samples), learner.predict(samples))
    assert torch.equal(learner.model.route(samples), learner.route(samples))
    assert torch.equal(learner.predict(samples, "now"), learner.predict_by(samples, 2))


def test_all_three_experts_are_asked(learner: Any, samples: torch.Tensor):
    assert learner.route(samples).unique().tolist() == [0, 1, 2]


def test_order_of_samples_makes_no_difference(learner: Any, samples: torch.Tensor):
    order = torch.randperm(len(samples), generator=torch.Generator().manual_seed(0))
    assert torch.equal(learner.predict(samples[order]), learner.predict(samples)[order])
    assert torch.equal(learner.route(samples[order]), learner.route(samples)[order])


def test_grouping_gives_each_sample_its_own_experts_answer(learner: Any, samples: torch.Tensor):
    routed = learner.route(samples)
    expected = torch.empty_like(routed)
    for expert in learner.expert_ids:
        expected[routed == expert] = learner.predict_by(samples[routed == expert], expert)
    assert torch.equal(learner.predict(samples), expected)


def test_more_samples_than_a_chunk(learner: Any, samples: torch.Tensor):
    many = samples.repeat(CHUNK // len(samples) + 2, 1)
    assert len(many) > CHUNK
    parts = torch.cat([learner.predict(part) for part in many.split(50)])
    assert torch.equal(learner.predict(many), parts)


def test_scores_are_log_probabilities_by_label(learner: Any, samples: torch.Tensor):
    scores = learner.model(samples)
    assert scores.shape == (len(samples), 4)
    assert torch.allclose(scores.exp().sum(1), torch.ones(len(samples)), atol=1e-5)
    assert torch.equal(learner.model.labels[scores.argmax(1)], learner.predict(samples))


def test_is_a_plain_module(learner: Any, samples: torch.Tensor):
    model = copy.deepcopy(learner.model)
    assert isinstance(model, nn.Module)
    assert model.eval() is model
    expected = learner.predict(samples)
    assert torch.equal(model.predict(samples), expected)
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    assert {"owners", "seen", "labels"} <= kept.keys()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert not torch.equal(model.predict(samples), expected)
    model.load_state_dict(kept)
    assert torch.equal(model.predict(samples), expected)


def test_a_copy_stays_when_the_learner_goes_on(samples: torch.Tensor):
    learner = small_tame()
    feed(learner, a(30))
    model, before = copy.deepcopy(learner.model), learner.model(samples)
    feed(learner, a(30, seed=5))
    assert torch.equal(model(samples), before)
    assert not torch.equal(learner.model(samples), before)


def test_training_mode_makes_no_difference_to_predict(learner: Any, samples: torch.Tensor):
    model = copy.deepcopy(learner.model).train()
    assert torch.equal(model.predict(samples), learner.predict(samples))


def test_before_any_selector_the_nearest_mean_routes():
    learner = small_tame(selector=NetworkSelector(memory=500))
    apart = [Batch(4 * batch.x, batch.y) for batch in world(62, offset=4, seed=3)]
    assert changes(feed(learner, a(150) + apart[:60])) == [(150, "recruited", 1)]
    x = torch.cat([batch.x for batch in a(2, seed=7) + apart[60:]])
    assert learner.route(x).tolist() == [0] * 32 + [1] * 32


def test_newcomer_is_routed_to_before_the_selector_knows_it(learner: Any):
    """Labels 1 and 2 of the third world have inputs that no other world has."""
    fresh = c(4, seed=11)
    routed = torch.cat([learner.route(batch.x) for batch in fresh])
    own = torch.isin(torch.cat([batch.y for batch in fresh]), torch.tensor([1, 2]))
    assert (routed[own] == 2).float().mean() > 0.9
