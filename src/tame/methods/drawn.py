"""A network that answers by the mean of several, drawn around its weights."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.func import functional_call

from tame.engine.randomness import torch_generator


class Averaged(nn.Module):
    """The mean probability of networks whose weights are means plus spread times noise.

    The noise follows from the seed, so that the same samples always get the same answer.

    >>> net = nn.Linear(1, 2)
    >>> spreads = {name: torch.zeros_like(p) for name, p in net.named_parameters()}
    >>> x = torch.ones(1, 1)
    >>> torch.allclose(Averaged(net, spreads, 3, 0, 2)(x), net(x).softmax(1))
    True
    """

    def __init__(
        self, net: nn.Module, spreads: Mapping[str, Tensor], draws: int, seed: int, live: int
    ) -> None:
        super().__init__()
        self.net = net
        self._spreads = spreads
        self._draws = draws
        self._seed = seed
        self._live = live

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        generator = torch_generator(self._seed)
        total = torch.zeros(len(x), self._live, device=x.device)
        for _ in range(self._draws):
            weights = {
                name: torch.addcmul(
                    mean,
                    self._spreads[name],
                    torch.randn(mean.shape, generator=generator).to(mean.device),
                )
                for name, mean in self.net.named_parameters()
            }
            total += functional_call(self.net, weights, (x,))[:, : self._live].softmax(1)
        return total / self._draws
