"""Riemannian walk: the running Fisher of EWC and the path of SI, measured in the Fisher's metric.

Chaudhry, Dokania, Ajanthan, Torr, "Riemannian Walk for Incremental Learning" (2018). Every step
adds to `path` as in SI and the squared mean gradient to `squares`; every `interval` steps, with
w' the weights one interval before,

    gained_i <- gained_i + max(0, path_i / (F_i (w_i - w'_i)^2 / 2 + damping))
    F        <- (1 - share) F + share / interval * squares
    path, squares <- 0,   w' <- w

in this order: the score is taken with the old F. When a task ends,

    score <- (score + gained) / 2     (the first task: score <- gained),   gained <- 0
    importance <- F and score, each brought to [0, 1] over all weights, added;   w* <- w

and the penalty is strength * sum_i importance_i (w_i - w*_i)^2. The paper's class-incremental runs
also keep a few samples; this method, told the tasks, keeps none.

`form = "agem-repo"`, what the A-GEM authors' code runs: no half in the metric, `squares` is not set
to zero between intervals of a task, and the mean of the scores is added to the old score.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from torch import Tensor

from tame.methods.fisher import moving_average
from tame.methods.ledger import Ledger
from tame.methods.tasked import Tasked, TaskedLearner, TaskedSettings
from tame.methods.vectors import add_to_gradients, gradients, normalised, weights
from tame.types import Batch, Observation, Sizes, State

ZEROS = ("importance", "fisher", "squares", "path", "gained", "score")


@dataclass(frozen=True)
class RWalkSettings(TaskedSettings):
    """What can be set about the Riemannian walk: `strength` is lambda, `damping` xi.

    `interval` is 10 for MNIST and 50 for CIFAR in the authors' code.
    """

    form: Literal["original", "agem-repo"] = "original"
    strength: float = 1.0
    damping: float = 1e-3
    interval: int = 10
    share: float = 0.9

    def __post_init__(self) -> None:
        if self.damping <= 0:
            raise ValueError(f"damping is positive, not {self.damping}")
        if self.interval < 1:
            raise ValueError(f"interval is 1 or more, not {self.interval}")


class RWalk(TaskedLearner[RWalkSettings]):
    """One network; a penalty by Fisher information and by what each weight's path gained.

    >>> from tame.types import Hint
    >>> learner = RWalk(net="mlp")
    >>> _ = learner.observe(Batch([[0.0, 1.0], [1.0, 0.0]], [5, 6]))
    >>> learner.inform(Hint(boundary=True, task=1))
    >>> learner.observe(Batch([[0.0, 1.0]], [7])).step
    1
    """

    settings_type: ClassVar[type] = RWalkSettings

    def _set_up(self) -> None:
        super()._set_up()
        self._tasked = Tasked(self._single, self.settings.heads)
        self._ledger = Ledger(ZEROS, copies=["anchor", "previous"])
        self._original = self.settings.form == "original"
        self._finished = 0

    def observe(self, batch: Batch) -> Observation:
        lesson = self._tasked.admit(batch)
        self._ledger.follow(self._tasked.net)
        seen, loss = self._tasked.learn_by(lesson)
        net = self._tasked.stepping.backward(loss)
        slope, before = gradients(net), weights(net)
        add_to_gradients(net, self.penalty_slope(before))
        self._tasked.update()
        self._ledger["path"] -= slope * (weights(net) - before)
        self._ledger["squares"] += slope.square()
        if self._tasked.age % self.settings.interval == 0:
            self._measure()
        return seen

    def penalty_slope(self, at: Tensor) -> Tensor:
        """Return the gradient of the penalty at some weights."""
        away = at - self._ledger["anchor"]
        return 2 * self.settings.strength * self._ledger["importance"] * away

    def _measure(self) -> None:
        """Turn the path of an interval into a score, then bring the Fisher up to date."""
        ledger, now = self._ledger, weights(self._tasked.net)
        metric = ledger["fisher"] * (0.5 if self._original else 1.0)
        length = metric * (now - ledger["previous"]).square()
        ledger["gained"] += (ledger["path"] / (length + self.settings.damping)).clamp(min=0)
        parts = (ledger["fisher"], ledger["squares"])
        ledger["fisher"] = moving_average(*parts, self.settings.interval, self.settings.share)
        ledger["previous"] = now
        ledger.clear("path", *(["squares"] if self._original else []))

    def _finish_task(self) -> None:
        ledger = self._ledger
        gained = ledger["gained"] * (1 if self._finished else 2)
        mean = (ledger["score"] + gained) / 2
        ledger["score"] = mean if self._original else ledger["score"] + mean
        ledger["importance"] = normalised(ledger["fisher"]) + normalised(ledger["score"])
        ledger["anchor"] = weights(self._tasked.net)
        ledger["previous"] = ledger["anchor"].clone()
        ledger.clear("gained", "path", "squares")
        self._finished += 1

    def sizes(self) -> Sizes:
        sizes = self._single.sizes()
        return replace(sizes, training_bytes=sizes.training_bytes + self._ledger.nbytes())

    def state_dict(self) -> State:
        return {
            "tasked": self._tasked.state_dict(),
            "ledger": self._ledger.state_dict(),
            "finished": self._finished,
        }

    def load_state_dict(self, state: State) -> None:
        self._tasked.load_state_dict(state["tasked"])
        self._ledger.load_state_dict(state["ledger"], self.device)
        self._finished = state["finished"]
