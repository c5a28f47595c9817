"""Networks of one architecture in one call answer as each of them does."""

import pytest
import torch
from torch import nn

from tame.engine.together import (
    Team,
    Unfolding,
    find_team,
    run_alone,
    run_together,
    stack,
    unfolding,
)
from tame.nets import resolve


def nets(name: str, count: int = 3):
    torch.manual_seed(0)
    return [resolve(name)((1, 28, 28), 4).eval() for _ in range(count)]


class Counting(nn.Module):
    """A net whose way depends on its numbers, so that many cannot be run at once."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) if float(self.inner.weight.sum()) > 0 else -self.inner(x)


@pytest.mark.parametrize("name", ["lenet", "mlp"])
@pytest.mark.parametrize("shared", [True, False])
@torch.no_grad()
def test_together_is_one_by_one(name: str, shared: bool):  # noqa: FBT001 (a case)
    made = nets(name)
    x = torch.rand(*(() if shared else (3,)), 5, 1, 28, 28)
    found = run_together(made[0], stack(made), x, shared=shared)
    each = [net(x if shared else x[place]) for place, net in enumerate(made)]
    assert torch.allclose(found, torch.stack(each), atol=1e-5)


@torch.no_grad()
def test_alone_takes_the_weights_it_is_given():
    first, second = nets("mlp", 2)
    x = torch.rand(4, 1, 28, 28)
    assert torch.equal(run_alone(first, second.state_dict(), x), second(x))
    assert not torch.equal(first(x), second(x))


def test_teams_are_found_by_trying():
    x = torch.rand(3, 1, 28, 28)
    assert find_team(nets("lenet", 2), x) == Team(able=True, convolves=True, on_gpu=False)
    assert find_team(nets("mlp", 2), x) == Team(able=True, convolves=False, on_gpu=False)
    torch.manual_seed(0)
    assert not find_team([Counting(), Counting()], torch.rand(3, 3)).able


def test_large_networks_are_run_alone():
    large = [nn.Linear(1001, 1000), nn.Linear(1001, 1000)]
    assert not find_team(large, torch.rand(2, 1001)).able


@pytest.mark.parametrize(
    ("options", "shape", "as_matrices"),
    [
        ({"kernel_size": 3}, (2, 7, 9), True),
        ({"kernel_size": (3, 2), "stride": (1, 2), "padding": (0, 1)}, (2, 6, 5), True),
        ({"kernel_size": 5, "padding": 2, "bias": False}, (2, 8, 8), True),
        ({"kernel_size": 5, "padding": 2}, (2, 64, 64), True),  # too much: by torch's own
        ({"kernel_size": 3, "groups": 2}, (2, 6, 6), False),
        ({"kernel_size": 3, "dilation": 2}, (2, 6, 6), False),
        ({"kernel_size": 3, "padding": "same"}, (2, 6, 6), False),
        ({"kernel_size": 3, "padding": 1, "padding_mode": "circular"}, (2, 6, 6), False),
    ],
)
def test_convolutions_as_products_of_matrices_are_the_same(options, shape, as_matrices):
    nets = [nn.Sequential(nn.Conv2d(2, 4, **options)) for _ in range(3)]
    twin = unfolding(nets[0])
    assert isinstance(twin[0], Unfolding) == as_matrices
    x = torch.rand(3, 5, *shape)
    found = run_together(twin, stack(nets), x, shared=False)
    for net, part, one in zip(nets, x, found, strict=True):
        assert torch.allclose(net(part), one, atol=1e-5)
    assert type(nets[0][0]) is nn.Conv2d
    assert unfolding(nets[0]) is twin


def test_the_twin_is_in_training_or_not_as_the_network_is():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Dropout())
    for training in (True, False, True):
        net.train(training)
        net[1].eval()
        twin = unfolding(net)
        assert [part.training for part in twin.modules()] == [training, training, False]
