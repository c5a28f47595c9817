"""Many small networks of one architecture in one call.

That pays where starting an operation costs more than the operation: on a GPU, for networks of
linear layers, and where each network has a few samples only. On a processor a batched convolution
of more samples takes two to four times as long as the convolutions one by one. On a GPU it is one
kernel a network; so there small convolutions of few samples are products of matrices instead.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn import functional as F

from tame.engine.eager import LARGE

Weights = Mapping[str, Tensor]
FEW = 4
CONVOLUTION = nn.modules.conv._ConvNd  # noqa: SLF001 (the common base of convolutions)

ENOUGH = 256  # samples that are worth a kernel
UNFOLDED = 2**14  # numbers a sample
_twins: WeakKeyDictionary[nn.Module, nn.Module] = WeakKeyDictionary()


class Unfolding(nn.Conv2d):
    """A convolution as one product of matrices, where what it multiplies is not too much."""

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:  # noqa: A002 (torch's name)
        above, beside = (int(width) for width in self.padding)
        (high, wide), (down, across) = self.kernel_size, self.stride
        height = (input.shape[2] + 2 * above - high) // down + 1
        width = (input.shape[3] + 2 * beside - wide) // across + 1
        found: Tensor
        if height * width * weight[0].numel() > UNFOLDED:
            found = super()._conv_forward(input, weight, bias)
            return found
        x = F.pad(input, (beside, beside, above, above))
        x = x.unfold(2, high, down).unfold(3, wide, across)
        columns = x.permute(0, 1, 4, 5, 2, 3).flatten(4).flatten(1, 3)
        found = weight.flatten(1) @ columns
        found = found if bias is None else found + bias.unsqueeze(1)
        return found.view(*found.shape[:2], height, width)


def unfolding(net: nn.Module) -> nn.Module:
    """Return a network like this one that convolves by products of matrices where it can.

    >>> net, x = nn.Conv2d(1, 2, 3, padding=1), torch.rand(4, 1, 5, 5)
    >>> torch.allclose(unfolding(net)(x), net(x), atol=1e-6)
    True
    """
    if net not in _twins:
        _twins[net] = copy.deepcopy(net)
        for module in _twins[net].modules():
            if _is_plain(module):
                module.__class__ = Unfolding
    for own, other in zip(net.modules(), _twins[net].modules(), strict=True):
        other.training = own.training
    return _twins[net]


def _is_plain(module: nn.Module) -> bool:
    """Say whether this is a convolution with nothing special about it."""
    if type(module) is not nn.Conv2d or isinstance(module.padding, str):
        return False
    return (module.groups, module.dilation, module.padding_mode) == (1, (1, 1), "zeros")


def run_alone(net: nn.Module, weights: Weights, x: Tensor) -> Tensor:
    """Return what a network would answer with these weights in place of its own."""
    outputs: Tensor = functional_call(net, dict(weights), (x,))
    return outputs


def run_together(net: nn.Module, stacked: Weights, x: Tensor, *, shared: bool) -> Tensor:
    """Return (networks, samples, outputs): each on samples of its own, or all on the shared ones.

    >>> nets = [nn.Linear(2, 3), nn.Linear(2, 3)]
    >>> x = torch.rand(5, 2)
    >>> found = run_together(nets[0], stack(nets), x, shared=True)
    >>> torch.allclose(found[1], nets[1](x), atol=1e-6)
    True
    """

    def run(weights: Weights, part: Tensor) -> Tensor:
        return run_alone(net, weights, part)

    samples = x.shape[0 if shared else 1]
    net = unfolding(net) if x.is_cuda and samples < ENOUGH else net
    outputs: Tensor = vmap(run, in_dims=(0, None if shared else 0))(dict(stacked), x)
    return outputs


def stack(nets: Sequence[nn.Module]) -> dict[str, Tensor]:
    """Return the saved tensors of networks, stacked by name."""
    states = [net.state_dict() for net in nets]
    return {name: torch.stack([state[name] for state in states]) for name in states[0]}


class Team(NamedTuple):
    """Whether networks of one architecture can be run together, and when it pays."""

    able: bool = False
    convolves: bool = True
    on_gpu: bool = False

    def pays(self, samples: int) -> bool:
        """Say whether to run networks together that have so many samples each.

        >>> Team(able=True).pays(2), Team(able=True).pays(128), Team(True, False).pays(128)
        (True, False, True)
        """
        return self.able and (self.on_gpu or not self.convolves or samples <= FEW)


def find_team(nets: Sequence[nn.Module], x: Tensor) -> Team:
    """Find out by trying: small networks that together answer `x` as each of them does."""
    first = nets[0]
    if sum(p.numel() for p in first.parameters()) > LARGE:
        return Team()
    convolves = any(isinstance(module, CONVOLUTION) for module in first.modules())
    return Team(_agree(nets, x), convolves, x.is_cuda)


@torch.no_grad()
def _agree(nets: Sequence[nn.Module], x: Tensor) -> bool:
    expected = torch.stack([net.eval()(x) for net in nets])
    try:
        found = run_together(nets[0], stack(nets), x, shared=True)
    except Exception:  # noqa: BLE001 (a net of one's own raises whatever it runs into)
        return False
    alike = found.shape == expected.shape and found.dtype == expected.dtype
    return alike and torch.allclose(found, expected, rtol=1e-3, atol=1e-4)
