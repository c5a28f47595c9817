"""Named numbers about every weight of a network, which grow with it."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from tame.core.accounting import tensor_bytes
from tame.methods.vectors import Shapes, shapes, spread, weights
from tame.types import State


class Ledger:
    """One vector a name, with an entry for each weight.

    Those named in `zeros` start as zero; those in `copies` as the weights, so that what is measured
    from them starts at nothing. New weights (those of new output slots) start the same way.

    >>> ledger = Ledger(zeros=["importance"], copies=["anchor"])
    >>> ledger.follow(nn.Linear(2, 1))
    >>> ledger["importance"]
    tensor([0., 0., 0.])
    """

    def __init__(self, zeros: Iterable[str], copies: Iterable[str] = ()) -> None:
        self._zeros = tuple(zeros)
        self._copies = tuple(copies)
        self._shapes: Shapes = []
        self._vectors: dict[str, Tensor] = {}

    def __getitem__(self, name: str) -> Tensor:
        return self._vectors[name]

    def __setitem__(self, name: str, vector: Tensor) -> None:
        self._vectors[name] = vector

    def follow(self, net: nn.Module) -> None:
        """Make room for every weight the network has by now."""
        now = shapes(net)
        if now == self._shapes:
            return
        fresh = weights(net)
        starts = dict.fromkeys(self._zeros, torch.zeros_like(fresh))
        starts |= dict.fromkeys(self._copies, fresh)
        for name, start in starts.items():
            old = self._vectors.get(name)
            self._vectors[name] = (
                start.clone() if old is None else spread(old, self._shapes, start, now)
            )
        self._shapes = now

    def clear(self, *names: str) -> None:
        """Set vectors to zero."""
        for name in names:
            self._vectors[name] = torch.zeros_like(self._vectors[name])

    def nbytes(self) -> int:
        """Return the bytes of all vectors."""
        return tensor_bytes(self._vectors)

    def state_dict(self) -> State:
        return {"shapes": [list(size) for size in self._shapes], "vectors": dict(self._vectors)}

    def load_state_dict(self, state: State, device: torch.device) -> None:
        self._shapes = [torch.Size(size) for size in state["shapes"]]
        kept = state["vectors"].items()
        self._vectors = {name: value.to(device, copy=True) for name, value in kept}
