"""When a change that was noticed now really began."""

import math
from collections.abc import Sequence

from tame.core.mark import Mark
from tame.core.waiting import Waiting

ALLOWANCE = 1.0


def date(usual: Mark, learned: Sequence[Waiting], noticed: int) -> int:
    """Return the step from which on the losses exceed the usual most, in sum.

    The excess of a loss is how many deviations more than one it lies above the level. Of all
    stretches that end where the change was noticed, the one of the largest sum begins at the
    change; a later stretch leaves excess out, an earlier one takes in what is below the level.

    >>> import torch
    >>> none, losses = torch.empty(0), [0.1, 0.12, 0.1, 0.3, 0.4]
    >>> batches = [Waiting(i, none, none, 0, loss=loss) for i, loss in enumerate(losses)]
    >>> date(Mark(0.1, 0.02, 2.3, 0.0), batches, 5)
    3
    """
    begin, best, total = noticed, 0.0, 0.0
    for batch in reversed(learned):
        away = (batch.loss - usual.level) / math.hypot(usual.spread, batch.error)
        total += away - ALLOWANCE
        if total > best:
            begin, best = batch.step, total
    return begin
