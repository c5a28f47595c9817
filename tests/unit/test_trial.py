"""An expert that never learned is noticed and restarted: it would blind the detector for good."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from worlds import NET, a, feed, small_tame

from tame import Batch, Reading, Training
from tame.core.trial import Trial
from tame.engine.losses import guessing_loss, sample_losses

PAIR = torch.tensor([0, 1] * 8)


class Constant(nn.Module):
    """Guesses, whatever comes in; only its bias learns."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Any):
        return self.bias.expand(len(x), -1)


def dead(_shape: tuple[int, ...], outputs: int):
    return Constant(outputs)


def first_dead(shape: tuple[int, ...], outputs: int, built: Any = None):
    """Return a constant net for the first expert, and a working one once it is restarted."""
    built.append(outputs)
    working = nn.Linear(shape[0], outputs)
    return working if built.count(10) > 1 else Constant(outputs)


def verdicts(trial: Trial, loss: float, slots: torch.Tensor = PAIR, live: int = 10, count: int = 5):
    return [trial.add(Reading(loss), slots, live) for _ in range(count)]


def test_guessing_is_noticed_after_its_patience():
    trial = Trial(5, "logits")
    assert verdicts(trial, math.log(2)) == [False] * 4 + [True]
    assert verdicts(trial, math.log(2)) == [False] * 4 + [True]


def test_warm_up_is_not_counted():
    """With its rate still rising a network is no better than guessing, and not to be blamed."""
    trial = Trial(5, "logits", warmup=3)
    assert verdicts(trial, math.log(2), count=3) == [False] * 3
    assert not any(verdicts(trial, 0.3))
    assert trial.learned
    stuck = Trial(5, "logits", warmup=3)
    assert verdicts(stuck, math.log(2), count=16) == ([False] * 7 + [True]) * 2


def test_a_little_better_than_guessing_is_learning():
    trial = Trial(5, "logits")
    assert not any(verdicts(trial, 0.98 * math.log(2)))
    assert trial.learned
    assert not any(verdicts(trial, 100.0, count=50))


def test_sigmoid_form_with_ten_outputs_guesses_at_1_6():
    """Ten live outputs of which two occur: guessing costs far more than the labels' entropy."""
    guess = guessing_loss(np.array([8, 8] + [0] * 8), "sigmoid")
    best = torch.tensor([[60.0] * 2 + [-60.0] * 8] * 16)
    assert guess == pytest.approx(float(sample_losses(best, PAIR, "sigmoid").mean()), abs=1e-4)
    assert guess > 2 * math.log(2)
    assert verdicts(Trial(5, "sigmoid"), 0.995 * guess)[-1]
    assert not verdicts(Trial(5, "sigmoid"), 0.98 * guess)[-1]
    assert verdicts(Trial(5, "logits"), 1.5)[-1]


def test_single_label_never_fails():
    single = torch.zeros(16, dtype=torch.int64)
    assert not any(verdicts(Trial(5, "logits"), 0.0, single, 1, count=20))


def test_loss_that_is_no_number_is_a_failure():
    assert verdicts(Trial(5, "logits"), math.nan)[-1]


def test_labels_that_come_late_are_counted():
    trial = Trial(2, "logits")
    trial.add(Reading(0.6), torch.zeros(4, dtype=torch.int64), 1)
    assert not trial.add(Reading(0.6), torch.tensor([0, 1, 2, 3]), 4)  # entropy 1.07 by now


def test_trial_resumes():
    one, two = Trial(5, "logits"), Trial(5, "logits")
    verdicts(one, 0.7, count=3)
    two.load_state_dict(one.state_dict())
    assert verdicts(one, 0.7) == verdicts(two, 0.7) == [False, True, False, False, False]


def test_constant_net_is_restarted_up_to_the_cap():
    learner = small_tame(net=dead, training=Training(patience=15, restarts=2))
    seen = feed(learner, a(80))
    assert [one.step for one in seen if one.restarted] == [14, 29]
    assert learner._pool.active.network.restarts == 2


def test_no_restarts_when_none_are_wanted():
    learner = small_tame(net=dead, training=Training(patience=15, restarts=0))
    assert not any(one.restarted for one in feed(learner, a(40)))


def test_restarted_net_has_fresh_weights_and_half_the_rate_and_learns():
    built = []
    learner = small_tame(
        net=lambda shape, outputs: first_dead(shape, outputs, built),
        training=Training(rate=0.1, patience=15),
    )
    seen = feed(learner, a(80))
    assert [one.step for one in seen if one.restarted] == [14]
    expert = learner._pool.active
    assert expert.network.steps == 80 - 15
    assert expert.network.optimiser.param_groups[0]["lr"] == 0.05
    assert len(expert.detector.state_dict()["losses"]) == 30
    assert expert.detector.state_dict()["seen"] == 80 - 15
    assert seen[-1].loss < 0.1


def test_stream_of_one_label_is_never_restarted():
    learner = small_tame(training=Training(patience=10))
    stream = [Batch(batch.x, torch.full_like(batch.y, 3)) for batch in a()]
    assert not any(one.restarted for one in feed(learner, stream))


def test_learning_net_is_never_restarted():
    assert not any(one.restarted for one in feed(small_tame(), a(250)))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_weights_that_are_no_numbers_begin_anew(value: float):
    learner = small_tame(net=NET)
    feed(learner, a(30))
    expert = learner._pool.active
    with torch.no_grad():
        next(expert.network.net.parameters())[0, 0] = value
    seen = feed(learner, a(120, seed=3))
    assert learner.expert_ids == (0,)
    assert expert.network.restarts == 1
    assert expert.network.is_finite()
    assert all(math.isfinite(one.loss) for one in seen)
    assert seen[-1].loss < 0.2
