"""A-GEM: the projection by hand, the rings, and whose gradient the reference is."""

from typing import Any

import pytest
import torch
from digits import INPUTS, kept
from torch import nn

from tame import Batch
from tame.core.settings import Training
from tame.methods.agem import AGEM, AGEMSettings, projected
from tame.methods.rings import Rings
from tame.methods.vectors import weights
from tame.types import Hint

PLAIN = Training(rate=0.1, momentum=0.0, nesterov=False, weight_decay=0.0, clip=0.0)
NEXT = Hint(boundary=True, task=1)
NET = {"name": "mlp", "hidden": [8]}


class TwoWeights(nn.Module):
    """Two logits, each an input times its own weight."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([0.3, -0.2]))

    def forward(self, x):
        return x * self.weight


def make(**settings: Any):
    parts = {"training": PLAIN, "slots": 2, "heads": "shared"} | settings
    return AGEM(net=lambda _shape, _outputs: TwoWeights(), settings=AGEMSettings(**parts))


def gradient(weight, batch):
    chances = (batch.x * weight).softmax(1)
    return (batch.x * (chances - nn.functional.one_hot(batch.y, 2))).mean(0)


def ring(slots):
    return torch.tensor(slots)


def test_violating_gradient_ends_up_square_to_the_reference():
    draws = torch.Generator().manual_seed(0)
    slope, reference = torch.randn(2, 50, generator=draws)
    slope = slope - 2 * (slope @ reference).abs() / (reference @ reference) * reference
    assert slope @ reference < 0
    found = projected(slope, reference)
    assert (found @ reference).item() == pytest.approx(0, abs=1e-5)
    along = (slope - found) / reference
    assert torch.allclose(along, along[:1].expand(50), rtol=1e-3)


def test_agreeing_gradient_is_left_as_it_is():
    slope, reference = torch.tensor([1.0, 2.0]), torch.tensor([2.0, -0.5])
    assert torch.equal(projected(slope, reference), slope)
    assert torch.equal(projected(-slope, torch.zeros(2)), -slope)


@pytest.mark.parametrize("flipped", [False, True])
def test_step_is_along_the_projected_gradient(flipped):
    """The second task repeats the first or contradicts it; only then is its gradient turned."""
    first = Batch([[1.0, 0.5], [0.3, 1.0]], [0, 1])
    second = Batch([[1.0, 0.4]], [1 if flipped else 0])
    learner = make()
    learner.observe(first)
    learner.inform(NEXT)
    before = weights(learner._tasked.net)
    slope, reference = gradient(before, second), gradient(before, first)
    learner.observe(second)
    moved = weights(learner._tasked.net) - before
    assert bool(slope @ reference < 0) == flipped
    expected = slope - min(0, slope @ reference) / (reference @ reference) * reference
    assert torch.allclose(moved, -0.1 * expected, rtol=1e-4, atol=1e-7)


def test_first_task_is_plain_training():
    learner, batch = make(), Batch([[1.0, 0.5], [0.2, 1.0]], [0, 1])
    for _ in range(3):
        before = torch.tensor([0.3, -0.2])
        if learner._single.network is not None:
            before = weights(learner._tasked.net)
        learner.observe(batch)
        expected = before - 0.1 * gradient(before, batch)
        assert torch.allclose(weights(learner._tasked.net), expected)


def test_each_memory_sample_is_judged_among_its_own_tasks_labels():
    """A task of one label cannot be answered wrongly: its gradient is nil under its own mask."""
    learner = AGEM(net=NET, settings=AGEMSettings(training=PLAIN))
    learner.observe(Batch(torch.eye(4)[:1], [0]))
    learner.inform(NEXT)
    lesson = learner._tasked.admit(Batch(torch.eye(4)[1:3], [5, 6]))
    found = learner._reference(lesson, learner._rings.others(1))
    assert found.abs().max() == 0
    learner._tasked.told.see(torch.tensor([0]))
    learner._tasked.told._slots[0] = [0, 1]
    assert learner._reference(lesson, learner._rings.others(1)).abs().max() > 0


@pytest.mark.parametrize("form", ["original", "agem-repo"])
def test_running_statistics_of_the_reference_pass(form):
    def net(_shape, outputs):
        return nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, outputs))

    learner = AGEM(net=net, settings=AGEMSettings(form=form))
    learner.observe(Batch(torch.eye(4), [0, 1, 2, 3]))
    learner.inform(NEXT)
    learner.observe(Batch(torch.eye(4), [0, 1, 2, 3]))
    passes = int(learner._tasked.net[0].num_batches_tracked)
    assert passes == (2 if form == "original" else 3)


def test_rings_keep_the_newest_of_each_label():
    rings = Rings(each=2)
    rings.add(torch.tensor([1, 2, 3]), ring([0, 0, 1]), task=0)
    rings.add(torch.tensor([4, 5]), ring([0, 0]), task=0)
    rings.add(torch.tensor([6]), ring([0]), task=1)
    x, slots, tasks = rings.rows(torch.tensor(rings.places()))
    found = sorted(zip(tasks.tolist(), slots.tolist(), x.tolist(), strict=True))
    assert found == [(0, 0, 4), (0, 0, 5), (0, 1, 3), (1, 0, 6)]
    assert rings.rows(torch.tensor(rings.places(besides=0)))[0].tolist() == [6]


def test_rings_share_a_budget_evenly_and_keep_within_it():
    rings = Rings(capacity=12)
    for label in range(5):
        rings.add(torch.arange(40), torch.full((40,), label), task=label % 2)
        counts = [len(places) for places in rings._rings.values()]
        assert len(rings) == sum(counts) == 12
        assert max(counts) - min(counts) <= 2 or label == 0
        assert sorted(place for places in rings._rings.values() for place in places) == list(
            range(12)
        )
    x, slots, _ = rings.rows(torch.tensor(rings.places()))
    assert int(x[slots == 4].min()) >= 38


def test_more_labels_than_room():
    rings = Rings(capacity=3)
    rings.add(torch.arange(8), torch.arange(8), task=0)
    assert len(rings) == 3
    assert rings.rows(torch.tensor(rings.places()))[0].tolist() == [5, 6, 7]


def test_rings_are_rebuilt_from_their_state():
    rings, other = Rings(capacity=5), Rings(capacity=5)
    rings.add(torch.arange(9), torch.arange(9) % 2, task=3)
    other.load_state_dict(rings.state_dict())
    for part in (rings, other):
        part.add(torch.arange(20, 24), torch.arange(4) % 3, task=3)
    assert rings.places() == other.places()
    assert torch.equal(rings._x[:5], other._x[:5])


def test_memory_in_bytes_bounds_the_bytes():
    learner = AGEM(net=NET, settings=AGEMSettings(memory_bytes=1000))
    for _ in range(5):
        learner.observe(Batch(torch.rand(20, 4), torch.arange(20) % 3))
    sizes = learner.sizes()
    assert sizes.sample_bytes <= 1000
    assert sizes.samples == 1000 // (16 + 8) // 3 * 3  # three rings with equal shares


@pytest.mark.parametrize("form", ["original", "agem-repo"])
def test_forgets_less_than_plain_training(form):
    parts = {"inputs": INPUTS, "heads": "shared", "form": form}
    held = kept(AGEM, AGEMSettings(**parts))
    free = kept(AGEM, AGEMSettings(memory=1, reference=1, each=1, **(parts | {"form": "original"})))
    assert held > free + 0.03


@pytest.mark.parametrize("name", ["memory", "reference", "each"])
def test_impossible_settings_are_refused(name):
    with pytest.raises(ValueError, match=f"{name} is 1 or more, not 0"):
        AGEMSettings(**{name: 0})


@pytest.mark.parametrize("given", [{"capacity": 12}, {"each": 3}])
def test_where_samples_of_other_tasks_are_is_known_without_looking_again(given):
    rings, draws = Rings(**given), torch.Generator().manual_seed(0)
    for step in range(60):
        task = step // 12 % 4
        slots = torch.randint(0, 3, (5,), generator=draws)
        rings.add(torch.arange(5) + 5 * step, slots, task)
        for asked in (task, (task + 1) % 4):
            assert rings.others(asked).tolist() == rings.places(besides=asked)
