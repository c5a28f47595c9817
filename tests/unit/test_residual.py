"""The net residual: its stages, and what does not fit them."""

from typing import Any

import pytest
import torch

from tame.errors import ConfigError
from tame.nets import resolve


def test_residual_has_the_stages_it_is_told():
    net: Any = resolve({"name": "residual", "widths": [8, 12], "depths": [1, 2]})((1, 16, 16), 4)
    x = torch.rand(2, 1, 16, 16)
    assert net(x).shape == (2, 4)
    projected = [block.projected is not None for block in net if hasattr(block, "projected")]
    assert projected == [False, True, False]
    assert net[:4](x).shape == (2, 12, 8, 8)


def test_a_block_that_computes_nothing_passes_on_what_it_was_given():
    net: Any = resolve({"name": "residual", "widths": [8], "depths": [1]})((3, 8, 8), 2)
    torch.nn.init.zeros_(net[1].body[-1].weight)
    x = torch.rand(2, 8, 8, 8)
    assert torch.equal(net[1](x), x)


@pytest.mark.parametrize("net", [{"widths": [8], "depths": [1, 2]}, {"depths": [2, 0, 1]}])
def test_stages_of_residual_that_do_not_fit_are_refused(net: dict[str, Any]):
    with pytest.raises(ConfigError, match="widths and depths"):
        resolve({"name": "residual", **net})


def test_images_too_small_for_residual_are_refused():
    with pytest.raises(ConfigError, match="8 pixels or more, not"):
        resolve("residual")((1, 6, 6), 2)
