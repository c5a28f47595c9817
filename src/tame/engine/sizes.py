"""Numbers of samples that come again: on a GPU every new one costs a plan for each convolution."""

import torch
from torch import Tensor


def usual(count: int, most: int) -> int:
    """Return the power of two that holds so many samples, or `most` if that is less.

    >>> usual(5, 256), usual(256, 256), usual(300, 300), usual(0, 256)
    (8, 256, 300, 0)
    """
    return max(count, min(most, 1 << (count - 1).bit_length())) if count else 0


def filled(x: Tensor, most: int) -> Tensor:
    """Return samples on a GPU with the last one repeated up to a usual number; else as they are.

    Planning a deep network of separable convolutions for a number of samples it has not met takes
    seconds, where a forward takes hundredths of one.
    """
    missing = usual(len(x), most) - len(x) if x.is_cuda else 0
    return torch.cat([x, x[-1:].expand(missing, *x.shape[1:])]) if missing else x
