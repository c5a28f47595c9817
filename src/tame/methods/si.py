"""Synaptic intelligence: a weight matters by how much its own movement lowered the loss.

Zenke, Poole, Ganguli, "Continual Learning Through Synaptic Intelligence" (2017). Every step, with
g the gradient of the loss without penalty, and the movement that of the real update:

    path_i <- path_i - g_i * (w_i after - w_i before)

When a task ends, with w* the weights at the end of the task before (at first the initial ones):

    importance_i <- importance_i + path_i / ((w_i - w*_i)^2 + damping),   path <- 0,   w* <- w

and the penalty is strength * sum_i importance_i (w_i - w*_i)^2. A sum below zero would push a
weight away from w*, so it counts as zero, as in the authors' own program. `form = "agem-repo"`,
what the A-GEM authors' code runs, adds no task's share below zero.

Importances reach hundreds, and a step of plain gradient descent down so steep a penalty lands
farther beyond w* than it started from it: the weights are infinite within ten steps. So a step
never passes w*: no weight's penalty is steeper than (w_i - w*_i) / rate.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from torch import Tensor

from tame.methods.ledger import Ledger
from tame.methods.tasked import Tasked, TaskedLearner, TaskedSettings
from tame.methods.vectors import add_to_gradients, gradients, weights
from tame.types import Batch, Observation, Sizes, State


@dataclass(frozen=True)
class SISettings(TaskedSettings):
    """What can be set about synaptic intelligence: `strength` is c, `damping` xi."""

    form: Literal["original", "agem-repo"] = "original"
    strength: float = 0.1
    damping: float = 1e-3

    def __post_init__(self) -> None:
        if self.damping <= 0:
            raise ValueError(f"damping is positive, not {self.damping}")


class SI(TaskedLearner[SISettings]):
    """One network; a penalty keeps the weights whose movement paid in the tasks before.

    >>> from tame.types import Hint
    >>> learner = SI(net="mlp")
    >>> _ = learner.observe(Batch([[0.0, 1.0], [1.0, 0.0]], [5, 6]))
    >>> learner.inform(Hint(boundary=True, task=1))
    >>> learner.observe(Batch([[0.0, 1.0]], [7])).step
    1
    """

    settings_type: ClassVar[type] = SISettings

    def _set_up(self) -> None:
        super()._set_up()
        self._tasked = Tasked(self._single, self.settings.heads)
        self._ledger = Ledger(["importance", "path"], copies=["anchor"])

    def observe(self, batch: Batch) -> Observation:
        lesson = self._tasked.admit(batch)
        self._ledger.follow(self._tasked.net)
        seen, loss = self._tasked.learn_by(lesson)
        net = self._tasked.stepping.backward(loss)
        slope, before = gradients(net), weights(net)
        add_to_gradients(net, self.penalty_slope(before))
        self._tasked.update()
        self._ledger["path"] -= slope * (weights(net) - before)
        return seen

    def penalty_slope(self, at: Tensor) -> Tensor:
        """Return the gradient of the penalty at some weights."""
        away = at - self._ledger["anchor"]
        steepness = 2 * self.settings.strength * self._ledger["importance"]
        return steepness.clamp(max=1 / self._tasked.stepping.rate) * away

    def _finish_task(self) -> None:
        now = weights(self._tasked.net)
        moved = (now - self._ledger["anchor"]).square()
        gained = self._ledger["path"] / (moved + self.settings.damping)
        if self.settings.form == "agem-repo":
            gained = gained.clamp(min=0)
        self._ledger["importance"] = (self._ledger["importance"] + gained).clamp(min=0)
        self._ledger["anchor"] = now
        self._ledger.clear("path")

    def sizes(self) -> Sizes:
        sizes = self._single.sizes()
        return replace(sizes, training_bytes=sizes.training_bytes + self._ledger.nbytes())

    def state_dict(self) -> State:
        return {"tasked": self._tasked.state_dict(), "ledger": self._ledger.state_dict()}

    def load_state_dict(self, state: State) -> None:
        self._tasked.load_state_dict(state["tasked"])
        self._ledger.load_state_dict(state["ledger"], self.device)
