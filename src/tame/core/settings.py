"""What can be set about the learner, as small frozen values."""

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any, Literal

from tame.config import late, name_parts, part
from tame.core.conduct import Careful
from tame.core.detectors.quorum import Quorum
from tame.core.inputs import Inputs
from tame.core.matcher import FirstMatch
from tame.core.prune import Magnitude
from tame.core.routed import HardRouting
from tame.core.selector import NetworkSelector
from tame.engine.losses import Output
from tame.registry import CONDUCTS, DECISIONS, DETECTORS, MATCHERS, PRUNERS, SELECTORS, WORKERS


@dataclass(frozen=True)
class Training:
    """How a network learns from the stream, counted in its own steps.

    `warmup` steps rise linearly to `rate`, which falls by the factor `decay` at each milestone.
    A gradient longer than `clip` is shortened to it (0: never): one odd sample met by a converged
    network at full momentum can otherwise throw the weights so far that its loss reads as a shift.
    `precision` "auto" is bfloat16 for networks of over a million weights on a GPU, else float32;
    `engine` "auto" records the step as CUDA graphs on a GPU, else runs it operation by operation.
    A network whose loss over `patience` steps is no better than constant guessing never learned:
    it is given fresh weights and half its rate, at most `restarts` times (0: never).
    A newcomer starts with fresh weights or, `start` "features", with those of the expert that was
    active, but for the last layer's: what worlds have in common need not be learned again. With
    "warm" it takes the last layer too, and may go on answering for the old world: a return to that
    can then stay unnoticed. Where the active expert is pruned, weights are fresh.
    With `average` an expert answers with the mean of its weights over the last part of its way, as
    if its rate had fallen towards the end, which nobody tells; it learns on with the last ones.

    >>> Training(rate=1.0, warmup=4, milestones=(10,), decay=0.1).rate_at(1)
    0.5
    """

    optimiser: Literal["sgd", "adam"] = "sgd"
    rate: float = 0.02
    momentum: float = 0.9
    nesterov: bool = True
    weight_decay: float = 5e-4
    clip: float = 1.0
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    engine: Literal["auto", "eager", "captured"] = "auto"
    warmup: int = 0
    milestones: tuple[int, ...] = ()
    decay: float = 0.2
    start: Literal["fresh", "features", "warm"] = "features"
    output: Output = "logits"
    patience: int = 100
    restarts: int = 3
    average: bool = late(default=False)

    def __post_init__(self) -> None:
        if self.clip < 0:
            raise ValueError(f"clip is a length, 0 or more, not {self.clip}")

    def rate_at(self, step: int) -> float:
        """Return the learning rate of a network's own step number."""
        warm = min(1.0, (step + 1) / self.warmup) if self.warmup else 1.0
        return float(self.rate * warm * self.decay ** bisect_right(self.milestones, step))


@dataclass(frozen=True)
class Settings:
    """Everything about a `TAME` learner but its network and seed: one replaceable part a line.

    `reservoir_bytes` caps what all reservoirs together may take (0: no cap). When it is reached,
    the reservoir of every expert is thinned to half as many samples, still a uniform sample of what
    it saw; the selector's is counted, but keeps its size, as do batches that wait to enter them
    (`conduct`), and one sample an expert is always kept.
    After an alarm at most `shortlist` experts are tried, those the selector finds likeliest for the
    batch (0: all of them); a pool no larger is tried whole. A selector that was never trained
    ranks by the nearest mean of its remembered samples. What is not tried cannot be switched to:
    an expert outside the shortlist that knows the batch is recruited a second time.
    `workers` prune the experts where there are several to prune (none: this process, one after
    another); who does it changes no result.

    A part may be given by its name, or by a table of its name and settings.

    >>> from tame import Settings, Deviation
    >>> Settings(detector=Deviation(width=4.0)).detector.width
    4.0
    >>> Settings(detector="cusum", conduct={"probation": 16}).conduct.probation
    16
    """

    slots: int = 10
    reservoir_bytes: int = 0
    shortlist: int = 64
    inputs: Inputs = field(default_factory=Inputs)
    training: Training = field(default_factory=Training)
    detector: Any = part(DETECTORS, Quorum)
    matcher: Any = part(MATCHERS, FirstMatch)
    conduct: Any = part(CONDUCTS, Careful)
    selector: Any = part(SELECTORS, NetworkSelector)
    pruner: Any = part(PRUNERS, Magnitude)
    decision: Any = part(DECISIONS, HardRouting)
    workers: Any = part(WORKERS, lambda: None)

    def __post_init__(self) -> None:
        name_parts(self)
        if self.slots < 1:
            raise ValueError(f"slots is 1 or more, not {self.slots}")
        if self.reservoir_bytes < 0:
            raise ValueError(f"reservoir_bytes is 0 (no cap) or more, not {self.reservoir_bytes}")
        if self.shortlist < 0:
            raise ValueError(f"shortlist is 0 (all experts) or more, not {self.shortlist}")
        apart = getattr(self.selector, "inputs", None)
        if getattr(apart, "standardise", 0) and not self.inputs.standardise:
            raise ValueError("selector.inputs.standardise goes with inputs.standardise")
