"""Images that slowly turn."""

import torch
from torch import Tensor
from torch.nn import functional as F

from tame.errors import ConfigError

IMAGES = 4  # count, channels, height, width


def turned(x: Tensor, degrees: float | Tensor) -> Tensor:
    """Return images turned counter-clockwise, all by one angle or each by its own.

    What comes in from outside the frame is zero.

    >>> image = torch.tensor([[[[1, 2], [3, 4]]]], dtype=torch.uint8)
    >>> turned(image, 90).tolist()
    [[[[2, 4], [1, 3]]]]
    """
    if x.ndim != IMAGES:
        raise ConfigError(f"rotation turns images, not samples of shape {tuple(x.shape[1:])}")
    angles = torch.deg2rad(torch.as_tensor(degrees, dtype=torch.float64)).expand(len(x))
    cosine, sine = angles.cos(), angles.sin()
    tall = x.shape[-2] / x.shape[-1]  # the grid's sides are both 2 long, the image's need not be
    rows = (
        torch.stack([cosine, -sine * tall, torch.zeros_like(sine)], -1),
        torch.stack([sine / tall, cosine, torch.zeros_like(sine)], -1),
    )
    theta = torch.stack(rows, 1).float()
    grid = F.affine_grid(theta, list(x.shape), align_corners=False)
    found = F.grid_sample(x.float(), grid, align_corners=False)
    return (
        found.round().clamp(0, 255).to(torch.uint8) if x.dtype == torch.uint8 else found.to(x.dtype)
    )
