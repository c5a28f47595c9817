"""CutMix: a patch of another image in each image, and a share of its label with it."""

import torch
from torch import Tensor

from tame.errors import ConfigError

NUMBERS = 4  # uniform ones an image: whether, how large, how far down, how far right
IMAGES = 4  # dimensions of a batch of them


def patched(x: Tensor, odds: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """Paste a patch of the image before into a `share` of images, at random.

    Patches cover up to a whole image, all areas alike but where they are cut at the rim. Returns
    the images, and what part of each is still its own.

    >>> x, own = patched(torch.eye(2).view(2, 1, 1, 2), torch.tensor([[0.0, 1.0]] * 4), 0.5)
    >>> own
    tensor([1., 1.])
    """
    if x.ndim != IMAGES:
        raise ConfigError(f"cutmix is for images; samples have shape {tuple(x.shape[1:])}")
    side = torch.where(odds[0] < share, odds[1].sqrt(), torch.zeros_like(odds[1]))
    down, across = (
        _between(odds[place], side, size) for place, size in zip((2, 3), x.shape[-2:], strict=True)
    )
    inside = down.unsqueeze(2) & across.unsqueeze(1)
    own = 1 - inside.to(x.dtype).mean((1, 2))
    return torch.where(inside.unsqueeze(1), x.roll(1, 0), x), own


def _between(centre: Tensor, side: Tensor, size: int) -> Tensor:
    """Return which of `size` places lie within half of `side` of the centre."""
    places = (torch.arange(size, device=centre.device) + 0.5) / size
    return (places - centre.unsqueeze(1)).abs() < side.unsqueeze(1) / 2
