"""A training step run operation by operation, with the decision between measuring and learning.

`measure` tells the loss of a batch before it trains anything; `learn` then trains on that batch.
Where evaluation and training forward agree, measuring keeps its graph and learning pays no second
forward; every other network pays one extra forward without gradients.
"""

import torch
from torch import Tensor, nn

from tame.engine.losses import Output, read, sample_losses
from tame.engine.randomness import PrivateDraws, seeded
from tame.types import Reading

TWO_FACED = (
    nn.modules.batchnorm._NormBase,  # noqa: SLF001 (the common base of batch and instance norms)
    nn.modules.dropout._DropoutNd,  # noqa: SLF001
    nn.AlphaDropout,
    nn.RReLU,
)


class EagerStep:
    """Measures and trains one network.

    >>> net = nn.Linear(2, 2)
    >>> step = EagerStep(net, torch.optim.SGD(net.parameters(), 0.1), "logits", None)
    >>> x, y = torch.eye(2), torch.tensor([0, 1])
    >>> before = step.measure(x, y, live=2).loss
    >>> step.learn(x, y, live=2)
    >>> step.measure(x, y, live=2).loss < before
    True
    """

    def __init__(
        self,
        net: nn.Module,
        optimiser: torch.optim.Optimizer,
        output: Output,
        draws: PrivateDraws | None,
        clip: float = 0.0,
    ) -> None:
        self.net = net
        self.optimiser = optimiser
        self.output = output
        self.draws = draws
        self.clip = clip
        self._pending: Tensor | None = None

    @property
    def one_faced(self) -> bool:
        """Whether the training forward is also the evaluating one."""
        return self.draws is None

    def measure(self, x: Tensor, target: Tensor, live: int, *, keep: bool = True) -> Reading:
        """Return the loss of the batch in evaluation mode; `keep` its graph if learning follows."""
        keep = keep and self.one_faced
        self.net.train(keep)
        with torch.set_grad_enabled(keep):
            losses = sample_losses(self.net(x)[:, :live], target, self.output)
        self._pending = losses if keep else None
        return read(losses)

    def learn(self, x: Tensor, target: Tensor, live: int) -> None:
        """Train on a batch: the one just measured and kept, or any other."""
        losses, self._pending = self._pending, None
        if losses is None:
            losses = self._forward(x, target, live)
        self.optimiser.zero_grad(set_to_none=True)
        losses.mean().backward()
        if self.clip:
            nn.utils.clip_grad_norm_(self.net.parameters(), self.clip)
        self.optimiser.step()

    def forget(self) -> None:
        """Drop what measuring kept: the batch will not be learned."""
        self._pending = None

    def _forward(self, x: Tensor, target: Tensor, live: int) -> Tensor:
        self.net.train(self.one_faced or len(x) > 1)  # no batch statistics of a single sample
        if self.draws is None:
            return sample_losses(self.net(x)[:, :live], target, self.output)
        with self.draws:
            return sample_losses(self.net(x)[:, :live], target, self.output)


def is_one_faced(net: nn.Module, x: Tensor) -> bool:
    """Find out whether a network computes the same in training and in evaluation.

    Known layers (batch norm, dropout) answer at once; any other network runs both ways on a batch,
    and outputs and buffers are compared bit for bit. The network is not fit for use afterwards.
    """
    if any(isinstance(module, TWO_FACED) for module in net.modules()):
        return False
    buffers = [buffer.clone() for buffer in net.buffers()]
    with torch.no_grad(), seeded(0, x.device):
        trained = net.train()(x)
        same = all(torch.equal(a, b) for a, b in zip(buffers, net.buffers(), strict=True))
        return same and torch.equal(trained, net.eval()(x))
