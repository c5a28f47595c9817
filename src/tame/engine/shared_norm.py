"""Batch norm over a batch that lies in pieces on several ranks, on any device."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from tame.engine.world import World

NARROW = (torch.float16, torch.bfloat16)


class SharedNorm(TorchFunctionMode):
    """Inside it, batch norm takes its statistics over all ranks.

    The networks themselves are left as they are: what is saved, copied or pruned knows nothing of
    ranks. `copies` is how many ranks hold the same rows; samples are counted once.
    """

    def __init__(self, world: World, copies: int) -> None:
        super().__init__()
        self._world = world
        self._copies = copies

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[Any],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        call = self._normalise if func is F.batch_norm else func
        return call(*args, **(kwargs or {}))

    def _normalise(  # noqa: PLR0913, PLR0917 (torch's)
        self,
        input: Tensor,  # noqa: A002 (torch's)
        running_mean: Tensor | None,
        running_var: Tensor | None,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        training: bool = False,  # noqa: FBT001, FBT002 (torch's)
        momentum: float = 0.1,
        eps: float = 1e-5,
    ) -> Tensor:
        """Do what `torch.nn.functional.batch_norm` does, over the whole batch."""
        running = (running_mean, running_var)
        if not training:
            return F.batch_norm(input, *running, weight, bias, training, momentum, eps)
        wide = input.float() if input.dtype in NARROW else input
        mean, variance, count = self._statistics(wide)
        _follow(running, (mean, variance * count / (count - 1)), momentum)
        form = (1, -1, *[1] * (input.ndim - 2))
        found = (wide - mean.view(form)) * torch.rsqrt(variance + eps).view(form)
        if weight is not None:
            found = found * weight.view(form)
        if bias is not None:
            found = found + bias.view(form)
        return found.to(input.dtype)

    def _statistics(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return mean and variance of each channel, and over how many numbers."""
        axes = [axis for axis in range(x.ndim) if axis != 1]
        number = x.new_full((1,), x.numel() // x.shape[1])
        total = _total(torch.cat([x.sum(axes), number]), self._world)
        mean, number = total[:-1] / total[-1], total[-1].detach()
        away = x - mean.view(1, -1, *[1] * (x.ndim - 2))
        variance = _total((away * away).sum(axes), self._world) / number
        return mean, variance, number / self._copies


class _Total(torch.autograd.Function):
    """A sum over the ranks; so is its gradient, since every rank's loss depends on it."""

    @staticmethod
    def forward(context: Any, values: Tensor, world: World) -> Tensor:
        context.world = world
        return world.add_up(values.clone())

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return context.world.add_up(gradient.clone(memory_format=torch.contiguous_format)), None


def _total(values: Tensor, world: World) -> Tensor:
    found: Tensor = _Total.apply(values, world)  # type: ignore[no-untyped-call]
    return found


@torch.no_grad()
def _follow(
    running: tuple[Tensor | None, Tensor | None], now: tuple[Tensor, Tensor], momentum: float
) -> None:
    for kept, value in zip(running, now, strict=True):
        if kept is not None:
            kept.mul_(1 - momentum).add_(value.to(kept.dtype), alpha=momentum)
