"""Features brought to one scale by the first samples of a stream."""

import torch
from torch import Tensor, nn

from tame.types import State

NOISE = 1e-6  # of its mean: a feature that moves less does not change
REACH = 3.0  # spreads that the widest of a thousand normal numbers is away from the mean
GROWTH = 4.0  # times the widest way known, at most, counts of one sample: it may be a spike
FAR = 4.0  # spreads from the mean: from there on it is the logarithm that counts


class Standard(nn.Module):
    """Takes from every feature its mean, and divides by its spread, over the first samples seen.

    `shape` is that of the statistics: one number a feature, or what is broadcast to one. They move
    while samples come in until there were `enough` of them, and then stay: what has been learned
    goes on meaning the same, whatever the stream does. The spread is a third of the widest way from
    the mean, which for a feature that is rarely anything but zero is of the order of what it then
    is. What later lies far outside is brought near by a logarithm, and still told apart. A feature
    that never changed is not divided. After the first batch a spike counts as four times the
    widest way known, however high it is.

    >>> standard = Standard((2,), enough=3)
    >>> standard.follow(torch.tensor([[299.0, 1.0], [300.0, 1.0], [301.0, 1.0]]))
    >>> standard.follow(torch.tensor([[9e9, 9e9]]))  # too late
    >>> standard(torch.tensor([[300.0, 1.0], [301.0, 2.0]]))
    tensor([[0., 0.],
            [3., 1.]])
    """

    mean: Tensor
    widest: Tensor

    def __init__(self, shape: tuple[int, ...], enough: int) -> None:
        super().__init__()
        self.enough = enough
        self.count = 0
        self.register_buffer("mean", torch.zeros(shape, dtype=torch.float64), persistent=False)
        self.register_buffer("widest", torch.zeros(shape, dtype=torch.float64), persistent=False)

    @torch.no_grad()
    def follow(self, x: Tensor) -> None:
        """Let samples count, all of a batch or none; in place, where recorded steps read."""
        if not len(x) or self.count >= self.enough:
            return
        over = [0, *(axis + 1 for axis, size in enumerate(self.mean.shape) if size == 1)]
        most = torch.where(self.widest > 0, GROWTH * self.widest, torch.inf)
        away = (x.to(self.mean.device, torch.float64) - self.mean).clamp(-most, most)
        self.count += len(x)
        moved = away.mean(over, keepdim=True)[0] * len(x) / self.count
        reached = (away - moved).abs().amax(over, keepdim=True)[0]
        self.mean.add_(moved)
        self.widest.copy_(torch.maximum(self.widest, reached))

    def forward(self, x: Tensor) -> Tensor:
        flat = self.widest <= NOISE * self.mean.abs()
        spread = (self.widest / REACH).masked_fill(flat, 1.0)
        usual = (x - self.mean.to(x.dtype)) / spread.to(x.dtype)
        far = (usual.abs() / FAR).clamp(min=1.0)
        return usual / far * (1 + far.log())

    def state(self) -> State:
        """Return what has been gathered."""
        return {"count": self.count, "mean": self.mean.clone(), "widest": self.widest.clone()}

    def restore(self, state: State) -> None:
        """Go on from what `state` returned."""
        self.count = state["count"]
        self.mean.copy_(state["mean"])
        self.widest.copy_(state["widest"])
