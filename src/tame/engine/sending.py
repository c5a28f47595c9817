"""Numbers from the host to where they are needed, without waiting for the device."""

from typing import Any

import torch
from torch import Tensor


def sent(values: Any, device: torch.device) -> Tensor:
    """Return numbers as a tensor on a device; the host does not wait until it is done.

    An ordinary copy to a GPU waits for all that was asked of the GPU before.

    >>> sent([[1], [2]], torch.device("cpu"))
    tensor([[1],
            [2]])
    """
    made = torch.as_tensor(values)
    if device.type != "cuda":
        return made.to(device)
    return made.pin_memory().to(device, non_blocking=True)
