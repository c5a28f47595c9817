"""Networks of one architecture in one call answer as each of them does."""

import pytest
import torch
from torch import nn

from tame.engine.together import Team, find_team, run_alone, run_together, stack
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
