"""The net slim: its stages, and what does not fit them."""

from typing import Any

import pytest
import torch

from tame.errors import ConfigError
from tame.nets import resolve


def make(net: Any, outputs: int = 5, shape: tuple[int, ...] = (3, 32, 32)) -> Any:
    return resolve(net)(shape, outputs)


def test_slim_has_the_stages_it_is_told():
    net = make({"name": "slim", "widths": [8, 12], "depths": [1, 2]}, outputs=4)
    x = torch.rand(2, 3, 32, 32)
    assert net(x).shape == (2, 4)
    assert [block.fits for block in net if hasattr(block, "fits")] == [True, False, True]
    assert net[:-2](x).shape == (2, 12, 16, 16)


@pytest.mark.parametrize(
    "net", [{"widths": [8], "depths": [1, 2]}, {"widths": [], "depths": []}, {"depths": [2, 0, 1]}]
)
def test_stages_of_slim_that_do_not_fit_are_refused(net: dict[str, Any]):
    with pytest.raises(ConfigError, match="widths and depths"):
        make({"name": "slim", **net})


def test_images_too_small_for_slim_are_refused():
    with pytest.raises(ConfigError, match="16 pixels or more, not"):
        make("slim", shape=(1, 12, 12))
