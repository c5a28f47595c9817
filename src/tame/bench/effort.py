"""What one prediction costs in multiplications, counted while it happens."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tame.bench.telling import GROUP, answers
from tame.types import HeldOut

FLOPS = 2  # a multiplication and an addition


def macs_per_prediction(learner: Any, held: Sequence[HeldOut]) -> float | None:
    """Return the multiply-accumulates of convolutions and matrix products, mean over samples.

    Twenty samples of each origin are predicted, by all that the learner is told: work a method
    shares among them (or does anew for them, as adaptation) counts in equal parts. Zeros that are
    multiplied count as they are computed.
    """
    from torch.utils.flop_counter import FlopCounterMode

    samples = 0
    with _quiet(), FlopCounterMode(display=False) as counter:
        for part in held:
            answers(learner, part.x[:GROUP], part.origin)
            samples += len(part.x[:GROUP])
    return counter.get_total_flops() / FLOPS / samples if samples else None


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep torch from logging about optional packages its counter could use."""
    logger = logging.getLogger("torch.utils.flop_counter")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before
