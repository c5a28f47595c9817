"""`precision` of a recipe: what the network computes in while it learns, and afterwards."""

import pytest
import torch
from torch import Tensor, nn

from tame.bench.experiment import resolve
from tame.engine.fitting import Job, Samples, fit
from tame.engine.recipe import Recipe
from tame.errors import ConfigError


class Told(nn.Module):
    """A linear layer that keeps the type of every output it gave."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(12, 2)
        self.types: list[torch.dtype] = []

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.layer(x)
        self.types.append(found.dtype)
        return found


def learnt(precision: str) -> tuple[Told, float]:
    """Return a network that learnt which half of a sample is the larger, and its accuracy."""
    torch.manual_seed(0)
    net = Told()
    x = torch.rand(400, 12, generator=torch.Generator().manual_seed(1))
    y = (x[:, :6].sum(1) > x[:, 6:].sum(1)).long()
    samples = Samples(x, y, lambda raw, augment, odds: raw, 2)  # noqa: ARG005
    recipe = Recipe(epochs=20, batch=40, rate=0.5, weight_decay=0.0, precision=precision)
    fit([Job(net, samples, torch.Generator().manual_seed(2))], recipe)
    with torch.no_grad():
        right = (net.layer(x).argmax(1) == y).float().mean()
    return net, float(right)


@pytest.mark.parametrize(
    ("precision", "dtype"),
    [("auto", torch.float32), ("float32", torch.float32), ("bfloat16", torch.bfloat16)],
)
def test_a_recipe_says_what_a_network_computes_in_and_its_weights_stay_single(precision, dtype):
    net, right = learnt(precision)
    assert set(net.types) == {dtype}
    assert {value.dtype for value in net.parameters()} == {torch.float32}
    assert right > 0.97


def test_auto_on_a_processor_is_single_precision_to_the_bit():
    auto, single = learnt("auto")[0], learnt("float32")[0]
    assert torch.equal(auto.layer.weight, single.layer.weight)
    assert not torch.equal(auto.layer.weight, learnt("bfloat16")[0].layer.weight)


def test_a_precision_that_is_not_known_is_refused():
    named = {"selector": {"training": {"precision": "half"}}}
    with pytest.raises(ConfigError, match=r"selector\.training\.precision.*half"):
        resolve("embedded-split", [named])
