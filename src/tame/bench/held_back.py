"""The first segments of a stream with some training samples held back, to choose settings by."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from tame.methods.single import label_hash
from tame.types import Batch, HeldOut, Stream, Truth


class HeldBack:
    """Shows the first `segments` of a stream without a `share` of their training samples.

    Those are what it holds out: nothing of the stream's own held-out samples is ever read. Which
    samples they are follows from their content, so that they stay away in every pass.

    >>> from tame.streams.split import Split
    >>> part = HeldBack(Split(passes=2).open(0), segments=2, share=0.1)
    >>> len(part.truth().origins), len(part)
    (2, 100)
    >>> [len(held.y) for held in part.held_out()]
    [92, 79]
    """

    def __init__(self, stream: Stream, segments: int, share: float) -> None:
        self._stream = stream
        self._share = share
        whole = stream.truth()
        self._count = min(segments, len(whole.origins))
        ends = [*whole.starts[1:], len(stream)]
        self._end = ends[self._count - 1]

    def __len__(self) -> int:
        return self._end

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """Yield the batches from number `start` on, less what is held back."""
        for _, batch in self._shown(start):
            kept = ~self._is_held(batch)
            yield Batch(batch.x[kept], batch.y[kept])

    def truth(self) -> Truth:
        """Return what really happens in these segments."""
        whole, count = self._stream.truth(), self._count
        starts, settled = whole.starts[:count], whole.settled[:count]
        return replace(whole, origins=whole.origins[:count], starts=starts, settled=settled)

    def held_out(self) -> list[HeldOut]:
        """Return the samples held back, by origin, each once however often it was shown."""
        truth = self.truth()
        found: dict[int, dict[int, tuple[Tensor, Tensor]]] = {o: {} for o in truth.origins}
        for step, batch in self._shown(0):
            place = max(i for i, start in enumerate(truth.starts) if start <= step)
            held = self._is_held(batch)
            rows = Batch(batch.x[held], batch.y[held])
            marks = label_hash(rows.x, rows.y).tolist() if len(rows) else []
            known = found[truth.origins[place]]
            known |= dict(zip(marks, zip(rows.x, rows.y, strict=True), strict=True))
        return [
            HeldOut(
                origin, truth.names[origin], *map(torch.stack, zip(*kept.values(), strict=True))
            )
            for origin, kept in found.items()
            if kept
        ]

    def _shown(self, start: int) -> Iterator[tuple[int, Batch]]:
        steps = range(start, self._end)
        return zip(steps, self._stream.batches(start), strict=False)

    def _is_held(self, batch: Batch) -> Tensor:
        marks = label_hash(batch.x, batch.y).astype(np.float64) / 2.0**64
        return torch.from_numpy(marks < self._share)
