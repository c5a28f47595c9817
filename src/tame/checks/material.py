"""Small streams that the checks feed to learners: vectors of eight floats."""

import torch

from tame.types import Batch

FEATURES = 8
CLASSES = 4
SIZE = 16
SEGMENT = 60


def world(batches: int, offset: int = 0, seed: int = 0, size: int = SIZE) -> list[Batch]:
    """Return batches of four clear classes; another offset gives the labels other inputs.

    >>> [len(batch) for batch in world(2)]
    [16, 16]
    """
    draws = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(batches):
        y = torch.randint(0, CLASSES, (size,), generator=draws)
        noise = 0.3 * torch.randn(size, FEATURES, generator=draws)
        found.append(Batch(2 * torch.eye(FEATURES)[(y + offset) % FEATURES] + noise, y))
    return found


def there_and_back() -> list[Batch]:
    """Return a stream that moves to another world and returns, all unannounced."""
    return world(SEGMENT) + world(SEGMENT, offset=2, seed=1) + world(SEGMENT // 2, seed=2)


def identity(batches: int, seed: int = 0) -> list[Batch]:
    """Return batches whose label is the position of the largest input: too easy to fail."""
    draws = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(batches):
        y = torch.randint(0, FEATURES, (SIZE,), generator=draws)
        x = 2 * torch.eye(FEATURES)[y] + 0.1 * torch.rand(SIZE, FEATURES, generator=draws)
        found.append(Batch(x, y))
    return found


def clone(batch: Batch) -> Batch:
    """Return a batch that shares no memory with this one."""
    return Batch(batch.x.clone(), batch.y.clone())
