"""Notices a network that never learned: it would blind its detector for good."""

import numpy as np
from torch import Tensor

from tame.engine.losses import Output, guessing_loss
from tame.types import Reading, State

MARGIN = 0.99


def is_guess(loss: float, counts: np.ndarray, form: Output) -> bool:
    """Say whether a mean loss is no better than a constant answer's, on labels of such counts.

    >>> is_guess(0.69, np.array([1, 1]), "logits"), is_guess(0.3, np.array([1, 1]), "logits")
    (True, False)
    """
    return not loss < MARGIN * guessing_loss(counts, form)


class Trial:
    """Compares the loss over `patience` batches with what constant guessing would cost.

    The first `warmup` batches, whose rate is still rising, are not counted. For logits that is the
    entropy of the labels seen meanwhile. A network that once did better by more than one per cent
    has learned, and is not looked at again; nor is one that saw a single label, where there is
    nothing to tell apart.
    """

    def __init__(self, patience: int, output: Output, warmup: int = 0) -> None:
        self.patience = patience
        self.warmup = warmup
        self.output: Output = output
        self.learned = False
        self.reset()

    def reset(self) -> None:
        """Start counting anew."""
        self._batches = -self.warmup
        self._loss = 0.0
        self._counts = np.zeros(0, dtype=np.int64)

    def wait(self, batches: int) -> None:
        """Leave so many more batches out at the beginning: it may be sure of wrong answers."""
        self._batches -= batches

    def add(self, reading: Reading, slots: Tensor, live: int) -> bool:
        """Take one batch's loss and labels; return True when the network never learned."""
        if self.learned:
            return False
        if self._batches < 0:
            self._batches += 1
            return False
        counts = np.bincount(slots.cpu().numpy(), minlength=live)
        counts[: len(self._counts)] += self._counts
        self._counts = counts
        self._loss += reading.loss
        self._batches += 1
        if self._batches < self.patience:
            return False
        single = int((self._counts > 0).sum()) == 1
        mean = self._loss / self._batches
        failed = not single and is_guess(mean, self._counts, self.output)
        self.learned = not failed
        self.reset()
        return failed

    def state_dict(self) -> State:
        return {
            "learned": self.learned,
            "batches": self._batches,
            "loss": self._loss,
            "counts": self._counts.tolist(),
        }

    def load_state_dict(self, state: State) -> None:
        self.learned = state["learned"]
        self._batches = state["batches"]
        self._loss = state["loss"]
        self._counts = np.array(state["counts"], dtype=np.int64)
