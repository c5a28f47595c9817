"""What an alarm leads to: at once and for good, or with care."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from tame.core.scene import Practice


@runtime_checkable
class Conduct(Protocol):
    """How a learner acts on alarms, as a setting."""

    def begin(self) -> "Practice":
        """Return the conduct at work, at the beginning of a stream."""
        ...


@dataclass(frozen=True)
class Immediate:
    """The paper's: an alarm switches to the expert the matcher names, or recruits, there and then.

    >>> Immediate().begin().weigh()
    (0, 0, 0)
    """

    def begin(self) -> "Practice":
        from tame.core.prompt import Prompt

        return Prompt()


@dataclass(frozen=True)
class Careful:
    """An alarm is a suspicion; what it leads to can be taken back until it is sure.

    A surprising batch is held, for up to `patience` batches in all, until an expert clearly knows
    two in a row (a switch) or all clearly refuse them. Then a newcomer learns, on probation: it is
    confirmed, after `probation` batches or more, once it is well under guessing while the experts
    that might know the data refuse it, or after `horizon` batches at the latest. If one of them
    knows `returns` batches in a row (a third of all at least) better than the newcomer, it is
    withdrawn. With every batch of its probation a newcomer takes `rehearsals` more steps, on the
    four newest.
    Batches wait for `horizon` batches before a sample of them may enter a reservoir, so that a
    change can be dated back so far, and the active expert's weights are kept every `spacing`
    batches, to undo what it learned since; what it learned between these and the change is learned
    again.
    With `most_experts` there (0: no limit) nobody is recruited any more: the expert that fits
    best takes over, and adapts. The settings' matcher is not asked: the best match is taken.
    Without `rollback` a change is dated to its alarm: what the expert that was left learned since
    it really began is neither undone nor given to the other, in part or whole.

    >>> Careful(patience=0)
    Traceback (most recent call last):
    ...
    ValueError: patience, probation, returns, horizon and spacing are 1 or more
    """

    patience: int = 3
    probation: int = 8
    returns: int = 3
    horizon: int = 32
    spacing: int = 16
    rehearsals: int = 8
    most_experts: int = 0
    rollback: bool = True

    def __post_init__(self) -> None:
        least = (self.patience, self.probation, self.returns, self.horizon, self.spacing)
        if min(least) < 1:
            raise ValueError("patience, probation, returns, horizon and spacing are 1 or more")
        if min(self.most_experts, self.rehearsals) < 0:
            raise ValueError(
                "most_experts (0: no limit) and rehearsals are 0 or more, not "
                f"{self.most_experts} and {self.rehearsals}"
            )
        if self.horizon < self.probation + self.patience:
            raise ValueError(
                f"horizon is at least probation + patience, {self.probation + self.patience}, "
                f"not {self.horizon}: what is withdrawn must not be in a reservoir yet"
            )

    def begin(self) -> "Practice":
        from tame.core.caution import Caution

        return Caution(self)
