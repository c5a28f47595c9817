"""Output slots are doubled when labels outnumber them; nothing learned is lost."""

import pytest
import torch
from torch import nn
from worlds import NET, a, b, changes, feed, lesson, small_tame

from tame import Batch, Training
from tame.checks.failure import difference
from tame.core.blueprint import Blueprint
from tame.core.network import Network
from tame.nets import resolve


def trained_network(optimiser: str = "sgd"):
    training = Training(optimiser=optimiser, rate=0.01)
    plan = Blueprint(resolve(NET), (8,), training, 0, torch.device("cpu"))
    network = Network(plan, 10, ("expert", 0))
    for x, y in a(20):
        network.learn(lesson(x, y, 4))
    return network


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_growth_keeps_the_old_corner_exactly(optimiser: str):
    network, untouched = trained_network(optimiser), trained_network(optimiser)
    network.grow(11)
    assert network.slots == 20
    new, old = network.state_dict(), untouched.state_dict()
    for name, value in old["net"].items():
        corner = new["net"][name][tuple(slice(n) for n in value.shape)]
        assert torch.equal(corner, value), name
    for index, entry in old["optimiser"].items():
        for key, value in entry.items():
            grown = new["optimiser"][index][key]
            corner = grown[tuple(slice(n) for n in value.shape)]
            assert torch.equal(corner, value), (index, key)
            assert grown.sum() == pytest.approx(float(value.sum()), rel=1e-5, abs=1e-6)
    assert (new["steps"], new["restarts"]) == (old["steps"], old["restarts"])


def test_growth_leaves_old_outputs_and_doubles_until_all_fit():
    network = trained_network()
    x = a(1, seed=5)[0].x
    before = network.net(x)
    network.grow(10)
    assert network.slots == 10
    network.grow(85)
    assert network.slots == 160
    assert torch.allclose(network.net(x)[:, :10], before, atol=1e-6)


def test_grown_network_goes_on_as_one_built_large():
    """With the same weights, spare slots make no difference to training."""
    small, grown = trained_network(), trained_network()
    grown.grow(20)
    for x, y in a(5, seed=4):
        small.learn(lesson(x, y, 4))
        grown.learn(lesson(x, y, 4))
    for name, value in small.net.state_dict().items():
        corner = grown.net.state_dict()[name][tuple(slice(n) for n in value.shape)]
        assert torch.allclose(corner, value, atol=1e-6), name


def test_growth_goes_on_with_the_same_draws():
    """Dropout draws what it would have drawn."""

    def make(shape: tuple[int, ...], outputs: int) -> nn.Module:
        return nn.Sequential(nn.Dropout(), nn.Linear(shape[0], outputs))

    plan = Blueprint(make, (8,), Training(), 0, torch.device("cpu"))
    network = Network(plan, 4, ("expert", 0))
    for x, y in a(3):
        network.learn(lesson(x, y, 4))
    before = network.state_dict()["draws"]
    network.grow(5)
    assert difference(before, network.state_dict()["draws"]) is None
    assert before


def test_masks_grow_open():
    network = trained_network()
    network.masks = {"3.weight": torch.zeros(10, 16, dtype=torch.bool)}
    network.grow(11)
    mask = network.masks["3.weight"]
    assert mask.shape == (20, 16)
    assert not mask[:10].any()
    assert mask[10:].all()


def test_learner_grows_past_ten_labels_and_keeps_predicting_the_old():
    learner = small_tame()
    feed(learner, a())
    x, y = a(1, seed=7)[0]
    before = learner.predict(x)
    labels = torch.arange(16)
    learner.observe(Batch(torch.rand(16, 8, generator=torch.Generator()), labels))
    assert learner._pool.active.network.slots == 20
    assert torch.equal(before, y)
    assert (learner.predict(x) == y).float().mean() > 0.8
    learner.consolidate()
    assert set(learner.predict(x).tolist()) <= set(range(16))


def test_unused_slots_are_never_predicted():
    """A label only another expert was taught is not this expert's to give."""
    learner = small_tame()
    feed(learner, a())
    new = [Batch(batch.x, batch.y + 50) for batch in b()]
    assert changes(feed(learner, new)) == [(60, "recruited", 1)]
    x = torch.randn(200, 8, generator=torch.Generator().manual_seed(0)) * 3
    assert set(learner.predict_by(x, 0).tolist()) <= {0, 1, 2, 3}
    assert set(learner.predict_by(x, 1).tolist()) <= {50, 51, 52, 53}


def test_growth_survives_saving():
    network = trained_network()
    network.grow(30)
    other = Network(network.plan, 10, ("expert", 0))
    other.load_state_dict(network.state_dict())
    assert difference(network.state_dict(), other.state_dict()) is None
