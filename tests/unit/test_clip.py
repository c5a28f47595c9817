"""A gradient is shortened to `clip`: a converged expert is not thrown off by one odd sample."""

import pytest
import torch
from torch import nn
from worlds import lesson, small_tame

from tame import Batch, Training, load
from tame.bench.experiment import resolve
from tame.bench.preparation import prepare
from tame.core.blueprint import Blueprint
from tame.core.network import Network
from tame.errors import ConfigError

CPU = torch.device("cpu")


def moved(clip: float, scale: float) -> float:
    """Return how far one plain step at rate 1 carries the weights."""
    training = Training(rate=1.0, momentum=0.0, weight_decay=0.0, clip=clip)
    plan = Blueprint(lambda shape, outputs: nn.Linear(shape[0], outputs), (3,), training, 0, CPU)
    network = Network(plan, 2, ("one",))
    before = torch.cat([p.detach().flatten().clone() for p in network.net.parameters()])
    network.learn(lesson(torch.full((4, 3), scale), torch.tensor([0, 0, 0, 1]), 2))
    after = torch.cat([p.detach().flatten() for p in network.net.parameters()])
    return float((after - before).norm())


def test_a_long_gradient_is_shortened_and_a_short_one_is_not():
    assert moved(clip=1.0, scale=100.0) == pytest.approx(1.0, rel=1e-4)
    assert moved(clip=0.0, scale=100.0) > 10
    assert moved(clip=1.0, scale=0.1) == pytest.approx(moved(clip=0.0, scale=0.1))


def test_a_negative_length_is_refused():
    with pytest.raises(ValueError, match="clip"):
        Training(clip=-1.0)
    with pytest.raises(ConfigError, match="clip"):
        resolve("embedded-split", [{"training": {"clip": -1.0}}])


@pytest.mark.parametrize(("clip", "alarms"), [(1.0, 0), (0.0, 1)])
def test_one_odd_sample_does_not_read_as_a_shift(clip: float, alarms: int):
    """LeNet on the embedded split, seed 112: unclipped, an expert is thrown off at batch 37."""
    paper = {"conduct": "immediate", "detector": "deviation"}
    experiment = resolve("embedded-lenet", [{"seed": 112, "training": {"clip": clip}, **paper}])
    prepare(experiment)
    learner = experiment.learner()
    batches = experiment.open_stream().batches()
    seen = [learner.observe(next(batches)) for _ in range(60)]
    assert sum(record.change != "none" for record in seen) == alarms


def test_it_is_part_of_a_saved_learner(tmp_path):
    learner = small_tame(training=Training(clip=0.25))
    learner.observe(Batch(torch.eye(4), [0, 1, 0, 1]))
    learner.save(tmp_path / "model.tame")
    assert load(tmp_path / "model.tame").settings.training.clip == 0.25
