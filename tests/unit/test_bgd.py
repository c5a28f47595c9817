"""Bayesian gradient descent: the rule itself, by hand, and what surrounds it."""

import math

import pytest
import torch
from torch import nn
from worlds import a, feed

from tame import Batch
from tame.methods.bgd import BGD, BGDSettings, default_spread, posterior_step
from tame.methods.drawn import Averaged
from tame.streams.permute import Permute

NET = {"name": "mlp", "hidden": [8]}


class Quadratic(nn.Module):
    """Two logits that differ by the weight: the gradient of the loss is known."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return torch.stack([x[:, 0] * self.weight, torch.zeros(len(x))], dim=1)


def make_quadratic(_shape, _outputs):
    return Quadratic()


def test_rule_by_hand():
    mean, spread = posterior_step(
        torch.tensor([1.0, 1.0]),
        torch.tensor([0.5, 0.5]),
        torch.tensor([2.0, -2.0]),
        torch.tensor([4.0, -4.0]),
        eta=3.0,
    )
    assert mean.tolist() == pytest.approx([1 - 3 * 0.25 * 2, 1 + 3 * 0.25 * 2])
    shrunk = 0.5 * math.sqrt(1 + 1) - 0.5 * 0.25 * 4
    grown = 0.5 * math.sqrt(1 + 1) + 0.5 * 0.25 * 4
    assert spread.tolist() == pytest.approx([shrunk, grown])


def test_spread_stays_positive_under_huge_curvature():
    _, spread = posterior_step(
        torch.tensor(0.0), torch.tensor(0.1), torch.tensor(0.0), torch.tensor(1e8), eta=1.0
    )
    assert 0 < float(spread) < 1e-6


def test_step_uses_the_summed_loss_and_the_same_draw():
    """Four equal samples move the mean by the sum of their gradients, not by the mean."""
    settings = BGDSettings(spread=1e-3, draws=3, initial="net", eta=1e6)
    learner = BGD(net=make_quadratic, settings=settings)
    learner.observe(Batch([[1.0]] * 4, [0, 0, 0, 0]))  # one label only: no loss, no step
    before = learner._single.built.net.weight.item()
    learner.observe(Batch([[1.0]] * 4, [1, 1, 1, 1]))
    moved = learner._single.built.net.weight.item() - before
    assert moved == pytest.approx(-1e6 * 1e-6 * 4 * 0.5, rel=0.01)  # d/dw log(1 + e^w) at 0 is 1/2


def test_mean_product_is_of_gradients_and_their_own_noise():
    """With loss log(1 + exp(w)) per sample, E[g e] is about spread * curvature * samples."""
    settings = BGDSettings(spread=0.1, draws=4000, initial="net", eta=0.0)
    learner = BGD(net=make_quadratic, settings=settings)
    learner.observe(Batch([[1.0]] * 2, [0, 0]))
    learner._spreads["weight"].fill_(0.1)
    learner.observe(Batch([[1.0]] * 2, [1, 1]))
    product = 0.1 * 0.25 * 2
    expected = 0.1 * math.sqrt(1 + (0.05 * product) ** 2) - 0.005 * product
    assert float(learner._spreads["weight"]) == pytest.approx(expected, abs=2e-4)
    assert float(learner._spreads["weight"]) < 0.1


def test_label_trick_leaves_absent_labels_alone():
    plain = BGD(net=NET)
    trick = BGD(net=NET, settings=BGDSettings(label_trick=True))
    first, second = Batch(torch.eye(4), [0, 1, 2, 3]), Batch(torch.eye(4)[:2], [0, 1])
    moved = []
    for learner in (plain, trick):
        learner.observe(first)
        head = learner._single.built.net[-1].weight
        before = head.detach().clone()
        learner.observe(second)
        moved.append(bool((head[2:4] != before[2:4]).any()))
    assert moved == [True, False]


def test_means_are_where_the_weights_are_left():
    """After a step the network holds the means, so that predictions draw nothing."""
    learner = BGD(net=NET)
    feed(learner, a(2))
    x = a(1)[0].x
    assert torch.equal(learner.predict(x), learner.predict(x))


def test_running_statistics_count_a_batch_once():
    def make(_shape, outputs):
        return nn.Sequential(nn.BatchNorm1d(8, momentum=None), nn.Linear(8, outputs))

    learner = BGD(net=make)
    batch = a(1)[0]
    learner.observe(batch)
    norm = learner._single.built.net[0]
    assert int(norm.num_batches_tracked) == 1
    assert torch.allclose(norm.running_mean, batch.x.mean(0), atol=1e-6)


def test_new_slots_start_with_the_first_spread():
    learner = BGD(net=NET, settings=BGDSettings(slots=2, spread=0.3))
    learner.observe(Batch(torch.eye(8)[:2], [0, 1]))
    learner._spreads["3.weight"].fill_(0.1)
    learner.observe(Batch(torch.eye(8)[:3], [0, 1, 2]))
    spread = learner._spreads["3.weight"]
    assert spread.shape == (4, 8)
    assert float(spread[:2].max()) < 0.2
    assert float(spread[3].min()) > 0.2


def test_bytes_of_the_spreads_are_counted():
    learner = BGD(net=NET)
    learner.observe(a(1)[0])
    sizes = learner.sizes()
    assert sizes.training_bytes >= sizes.model_bytes == 4 * sizes.dense


def test_default_spread_is_the_papers_scale():
    assert default_spread(nn.Linear(784, 10)) == pytest.approx(0.5 / 28)


def test_average_is_over_draws_from_the_posterior():
    """E sigmoid(3 + 6 e) is 0.69, far from the mean weight's sigmoid(3) = 0.95."""
    net = Quadratic()
    net.weight.data.fill_(1.0)
    found = Averaged(net, {"weight": torch.full((1,), 2.0)}, 2000, 0, 2)(torch.tensor([[3.0]]))
    assert found.sum().item() == pytest.approx(1.0)
    assert found[0, 0].item() == pytest.approx(0.69, abs=0.03)


def test_average_of_certain_weights_is_the_answer_of_the_means():
    plain, averaged = (BGD(net=NET, settings=BGDSettings(average=n)) for n in (0, 3))
    for learner in (plain, averaged):
        feed(learner, a(10))
        for spread in learner._spreads.values():
            spread.zero_()
    x = a(1, seed=9)[0].x
    assert torch.equal(plain.predict(x), averaged.predict(x))


def test_embedded_digits_are_learned_and_partly_kept_when_pixels_are_permuted():
    learner = BGD(net={"name": "mlp", "hidden": [64]}, settings=BGDSettings(draws=4))
    stream = Permute(segments=2, passes=1, batch=32).open(seed=0)
    feed(learner, stream.batches())
    first, second = (
        float((learner.predict(part.x) == part.y).float().mean()) for part in stream.held_out()
    )
    assert second > 0.7
    assert first > 0.4


@pytest.mark.parametrize("bad", [{"draws": 0}, {"spread": 0.0}])
def test_impossible_settings_are_refused(bad):
    with pytest.raises(ValueError, match="not 0"):
        BGDSettings(**bad)
