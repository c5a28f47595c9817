"""Small promises: settings of nothing, numbers too large, unknown experts, broken weights."""

import pytest
import torch
from worlds import a, feed, small_method, small_tame

from tame import Batch, Inputs
from tame.config import build
from tame.errors import ConfigError, InputError


def test_settings_of_a_part_that_is_none_are_refused():
    with pytest.raises(ConfigError, match="augment' is none and has no rotation"):
        build(Inputs, {"augment": {"rotation": 3.0}})
    assert build(Inputs, {"augment": {"name": "affine", "rotation": 3}}).augment.rotation == 3.0


def test_numbers_infinite_in_single_precision_are_refused():
    learner = small_tame()
    with pytest.raises(InputError, match="infinite in single precision"):
        learner.observe(Batch(torch.full((2, 8), 1e300, dtype=torch.float64), [0, 1]))


def test_an_unknown_expert_or_moment_is_refused():
    learner = small_tame()
    feed(learner, a(2))
    with pytest.raises(InputError, match=r"no expert 7; there are \[0\]"):
        learner.predict_by(torch.zeros(1, 8), 7)
    with pytest.raises(InputError, match="'ever' or 'now', not 'nwo'"):
        learner.predict(torch.zeros(1, 8), when="nwo")


def test_broken_weights_are_reported_as_a_restart():
    learner = small_tame()
    feed(learner, a(30))
    expert = learner._pool.active
    with torch.no_grad():
        next(expert.network.net.parameters()).fill_(float("nan"))
    seen = learner.observe(a(1)[0])
    assert seen.restarted
    assert seen.change == "none"
    assert not learner.observe(a(1)[0]).restarted


def test_joint_answers_only_what_its_network_was_taught():
    learner = small_method("joint", seed=0)
    feed(learner, a(3))
    learner.consolidate()
    learner.observe(Batch(torch.randn(4, 8), [90, 91, 92, 93]))
    assert set(learner.predict(torch.randn(200, 8)).tolist()) <= {0, 1, 2, 3}


def test_joint_keeps_half_precision_samples():
    learner = small_method("joint", seed=0)
    learner.observe(Batch(torch.randn(4, 8).bfloat16(), [0, 1, 2, 3]))
    assert learner.sizes().samples == 4
