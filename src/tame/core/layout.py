"""Where each tensor of a network lies when all its weights are one long row."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn

Masks = Mapping[str, Tensor]
IMAGES = 4


class Part(NamedTuple):
    """One tensor: name, shape, whether it is stored channels last, and whether it has a mask."""

    name: str
    shape: tuple[int, ...]
    last: bool = False
    masked: bool = False


@dataclass(frozen=True)
class Layout:
    """The tensors of a network with so many output slots.

    `parts` lie in the row one after another, as they lie in memory; `others` are the names of
    tensors of other dtypes (the counters of batch norms), which are kept apart; `wide` tells
    whether the places of its weights are packed in 16 bits, not in 8.

    >>> layout = Layout.of(nn.Linear(2, 3), {}, slots=3)
    >>> layout.size, {name: value.shape for name, value in layout.views(torch.zeros(9)).items()}
    (9, {'weight': torch.Size([3, 2]), 'bias': torch.Size([3])})
    """

    slots: int
    parts: tuple[Part, ...]
    others: tuple[str, ...]
    dtype: str
    wide: bool = True

    @classmethod
    def of(cls, net: nn.Module, masks: Masks, slots: int) -> Self:
        """Return the layout of a network's saved tensors."""
        state = net.state_dict()
        dtype = next((v.dtype for v in state.values() if v.is_floating_point()), torch.float32)
        parts = tuple(
            Part(name, tuple(value.shape), _is_last(value), name in masks)
            for name, value in state.items()
            if value.dtype == dtype
        )
        others = tuple(name for name, value in state.items() if value.dtype != dtype)
        return cls(slots, parts, others, str(dtype).removeprefix("torch."))

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Self:
        """Return the layout `state` described."""
        parts = (Part(name, tuple(shape), *flags) for name, shape, *flags in state["parts"])
        return cls(
            state["slots"], tuple(parts), tuple(state["others"]), state["dtype"], state["wide"]
        )

    def state(self) -> dict[str, Any]:
        """Return the layout as plain values."""
        parts = [[part.name, list(part.shape), part.last, part.masked] for part in self.parts]
        return {
            "slots": self.slots,
            "parts": parts,
            "others": list(self.others),
            "dtype": self.dtype,
            "wide": self.wide,
        }

    @cached_property
    def size(self) -> int:
        """How many places the row has."""
        return sum(prod(part.shape) for part in self.parts)

    @cached_property
    def maskable(self) -> int:
        """How many of its places a mask decides on."""
        return sum(prod(part.shape) for part in self.parts if part.masked)

    def fitting(self, net: nn.Module) -> nn.Module:
        """Return a network that has just these tensors, or refuse it."""
        state = net.state_dict()
        own = {name: tuple(value.shape) for name, value in state.items() if name not in self.others}
        if own != {part.name: part.shape for part in self.parts} or set(self.others) - state.keys():
            raise ValueError(f"a packed network of {self.slots} slots is not the net's own kind")
        return net

    def views(self, row: Tensor) -> dict[str, Tensor]:
        """Return the tensors inside a row, or inside several rows stacked, without copying."""
        return {part.name: _shaped(piece, part) for part, piece in self._pieces(row)}

    def gather(self, net: nn.Module) -> Tensor:
        """Return a network's weights as one row."""
        state = net.state_dict()
        return torch.cat([_flat(state[part.name], part) for part in self.parts])

    def kept(self, row: Tensor, masks: Masks) -> Tensor:
        """Say which places of a network's row are kept: those in its masks, else what is not 0.

        Minus zero is not 0 here: what has no mask comes back bit for bit.
        """
        chosen = [
            _flat(masks[part.name], part) if part.masked else (piece != 0) | piece.signbit()
            for part, piece in self._pieces(row)
        ]
        return torch.cat(chosen)

    def masks(self, kept: Tensor) -> dict[str, Tensor]:
        """Return the masks again from the places that are kept."""
        masked = {part.name for part in self.parts if part.masked}
        views = self.views(kept)
        plain = torch.contiguous_format
        return {n: v.clone(memory_format=plain) for n, v in views.items() if n in masked}

    def _pieces(self, row: Tensor) -> Iterator[tuple[Part, Tensor]]:
        begin = 0
        for part in self.parts:
            end = begin + prod(part.shape)
            yield part, row[..., begin:end]
            begin = end


def _is_last(value: Tensor) -> bool:
    if value.ndim != IMAGES or value.is_contiguous():
        return False
    return value.is_contiguous(memory_format=torch.channels_last)


def _flat(value: Tensor, part: Part) -> Tensor:
    return (value.permute(0, 2, 3, 1) if part.last else value).reshape(-1)


def _shaped(piece: Tensor, part: Part) -> Tensor:
    before = piece.shape[:-1]
    if not part.last:
        return piece.view(*before, *part.shape)
    count, channels, height, width = part.shape
    return piece.view(*before, count, height, width, channels).movedim(-1, -3)
