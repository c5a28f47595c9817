"""An invertible network: affine couplings, exact inverse and exact log-determinant."""

import torch
from torch import Tensor, nn

BOUND = 2.0


class Coupling(nn.Module):
    """Moves and scales one half of the inputs by what a network finds in the other half.

        (a, b) -> (a, b * exp(s(a)) + t(a)),    log |det| = sum of s(a)

    with s bounded by a hyperbolic tangent. The inputs are first shuffled in a fixed order, and
    each scaled and moved by numbers of its own.

    >>> coupling = Coupling(4, 8, torch.tensor([2, 0, 3, 1]))
    >>> x = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
    >>> z, _ = coupling(x)
    >>> torch.allclose(coupling.inverse(z), x)
    True
    """

    order: Tensor
    back: Tensor

    def __init__(self, inputs: int, hidden: int, order: Tensor) -> None:
        super().__init__()
        self.kept = (inputs + 1) // 2
        moved = inputs - self.kept
        self.log_scale = nn.Parameter(torch.zeros(inputs))
        self.shift = nn.Parameter(torch.zeros(inputs))
        self.net = nn.Sequential(
            nn.Linear(self.kept, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 2 * moved),
        )
        last = self.net[-1]
        nn.init.zeros_(last.weight)  # type: ignore[arg-type]
        nn.init.zeros_(last.bias)  # type: ignore[arg-type]
        self.register_buffer("order", order, persistent=False)
        self.register_buffer("back", order.argsort(), persistent=False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = (x * self.log_scale.exp() + self.shift)[:, self.order]
        a, b = x[:, : self.kept], x[:, self.kept :]
        scale, shift = self._found(a)
        moved = b * scale.exp() + shift
        return torch.cat([a, moved], 1), scale.sum(1) + self.log_scale.sum()

    def inverse(self, z: Tensor) -> Tensor:
        a, moved = z[:, : self.kept], z[:, self.kept :]
        scale, shift = self._found(a)
        x = torch.cat([a, (moved - shift) * (-scale).exp()], 1)[:, self.back]
        return (x - self.shift) * (-self.log_scale).exp()

    def _found(self, a: Tensor) -> tuple[Tensor, Tensor]:
        scale, shift = self.net(a).chunk(2, 1)
        return BOUND * torch.tanh(scale / BOUND), shift


class Flow(nn.Module):
    """Couplings one after another, behind a fixed standardisation by the first samples seen.

    The orders are drawn from torch's global generator when it is built, so seed that.

    >>> flow = Flow(5, couplings=3, hidden=8)
    >>> z, log_det = flow(torch.zeros(2, 5))
    >>> z.shape, log_det.shape
    (torch.Size([2, 5]), torch.Size([2]))
    """

    centre: Tensor
    spread: Tensor

    def __init__(self, inputs: int, couplings: int, hidden: int) -> None:
        super().__init__()
        orders = [torch.randperm(inputs) for _ in range(couplings)]
        self.couplings = nn.ModuleList(Coupling(inputs, hidden, order) for order in orders)
        self.register_buffer("centre", torch.zeros(inputs))
        self.register_buffer("spread", torch.ones(inputs))

    @torch.no_grad()
    def standardise(self, x: Tensor, least: float) -> None:
        """Take these samples' means and deviations, none below `least`, as everyone's."""
        self.centre.copy_(x.mean(0))
        if len(x) > 1:
            self.spread.copy_(x.std(0).clamp(min=least))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        z = (x - self.centre) / self.spread
        log_det = -self.spread.log().sum().expand(len(x))
        for coupling in self.couplings:
            z, more = coupling(z)
            log_det = log_det + more
        return z, log_det

    def inverse(self, z: Tensor) -> Tensor:
        """Return the inputs that the flow takes to these latents."""
        for coupling in reversed(self.couplings):
            z = coupling.inverse(z)  # type: ignore[operator]
        return z * self.spread + self.centre
