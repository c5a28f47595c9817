"""Elastic weight consolidation: weights that matter to earlier tasks are held where they were.

Kirkpatrick et al., "Overcoming catastrophic forgetting in neural networks" (2017). When task k
ends with weights w_k, F_k is the mean over its samples of (d log p(y|x) / dw)^2, with y drawn from
the network's own p. From then on the loss is

    cross-entropy + (strength / 2) * sum_k sum_i F_k,i (w_i - w_k,i)^2

The quadratics of all tasks add up to one, of weight F = sum_k F_k around the mean of the w_k
weighted by the F_k, which is what is stored: two vectors, however many tasks. The samples for F_k
are a uniform sample of the task, kept while it lasts and then dropped.

`form = "agem-repo"` is what the A-GEM authors' code runs, the form behind the TAME paper's table:
every batch's squared mean gradient adds to a sum; every `interval` steps

    F <- (1 - share) F + share / interval * sum,     sum <- 0

F is never reset. When a task ends, I is F brought to [0, 1] over all weights, the anchor w* the
weights of that moment, and the penalty strength * sum_i I_i (w_i - w*_i)^2, without the half.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from torch import Tensor

from tame.core.reservoir import Reservoir
from tame.engine.randomness import derive, restore_torch, torch_generator
from tame.methods.fisher import Labels, drawn, fisher, moving_average
from tame.methods.ledger import Ledger
from tame.methods.tasked import Tasked, TaskedLearner, TaskedSettings
from tame.methods.vectors import add_to_gradients, gradients, normalised, weights
from tame.types import Batch, Observation, Sizes, State

VECTORS = {"original": ("importance",), "agem-repo": ("importance", "fisher", "squares")}


@dataclass(frozen=True)
class EWCSettings(TaskedSettings):
    """What can be set about elastic weight consolidation.

    `strength` is lambda. The original form estimates the Fisher on `samples` samples a task, with
    `labels` sampled from the network or those given (the "empirical" Fisher); the other updates it
    every `interval` steps (10 for MNIST, 50 for CIFAR in the authors' code) with weight `share`.
    """

    form: Literal["original", "agem-repo"] = "original"
    strength: float = 100.0
    samples: int = 256
    labels: Labels = "sampled"
    interval: int = 10
    share: float = 0.9


class EWC(TaskedLearner[EWCSettings]):
    """One network; a quadratic penalty keeps what mattered to the tasks before.

    >>> from tame.types import Hint
    >>> learner = EWC(net="mlp")
    >>> _ = learner.observe(Batch([[0.0, 1.0]], [5]))
    >>> learner.inform(Hint(boundary=True, task=1))
    >>> _ = learner.observe(Batch([[1.0, 0.0]], [6]))
    >>> learner.predict_told([[0.0, 1.0]], Hint(task=1))
    tensor([6])
    """

    settings_type: ClassVar[type] = EWCSettings

    def _set_up(self) -> None:
        super()._set_up()
        self._tasked = Tasked(self._single, self.settings.heads)
        self._original = self.settings.form == "original"
        self._ledger = Ledger(VECTORS[self.settings.form], copies=["anchor"])
        self._finished = 0
        self._recent = self._empty()
        self._draws = torch_generator(derive(self.seed, "ewc", "labels"))

    def observe(self, batch: Batch) -> Observation:
        lesson = self._tasked.admit(batch)
        self._ledger.follow(self._tasked.net)
        seen, loss = self._tasked.learn_by(lesson)
        net = self._tasked.stepping.backward(loss)
        if not self._original:
            self._ledger["squares"] += gradients(net).square()
        add_to_gradients(net, self.penalty_slope())
        self._tasked.update()
        if self._original:
            self._recent.add(lesson.raw, lesson.slots)
        elif self._single.steps % self.settings.interval == 0:
            self._average()
        return seen

    def penalty_slope(self) -> Tensor:
        """Return the gradient of the penalty at the present weights."""
        factor = self.settings.strength * (1 if self._original else 2)
        away = weights(self._tasked.net) - self._ledger["anchor"]
        return factor * self._ledger["importance"] * away

    def _finish_task(self) -> None:
        now = weights(self._tasked.net)
        if self._original:
            self._add_quadratic(self._estimate(), now)
        else:
            self._ledger["importance"] = normalised(self._ledger["fisher"])
            self._ledger["anchor"] = now
        self._finished += 1
        self._recent = self._empty()

    def _add_quadratic(self, found: Tensor, now: Tensor) -> None:
        """Add F_k around the present weights to the quadratic of the tasks before."""
        total = self._ledger["importance"] + found
        weight = (found / total).nan_to_num()
        self._ledger["anchor"] += weight * (now - self._ledger["anchor"])
        self._ledger["importance"] = total

    def _estimate(self) -> Tensor:
        """Return the Fisher of the task that ends, on what was kept of it."""
        raw, slots = self._recent.columns()
        live, given = len(self._single.intake.labels), iter(slots.tolist())
        allowed = self._tasked.allowed(live)
        sampled = self.settings.labels == "sampled"
        return fisher(
            self._tasked.net,
            lambda x: self._tasked.scores(self._tasked.net(x)[:, :live], allowed),
            self._single.intake.ready(raw.to(self.device)),
            lambda logs: drawn(logs, self._draws) if sampled else next(given),
        )

    def _average(self) -> None:
        parts = (self._ledger["fisher"], self._ledger["squares"])
        found = moving_average(*parts, self.settings.interval, self.settings.share)
        self._ledger["fisher"] = found
        self._ledger.clear("squares")

    def _empty(self) -> Reservoir:
        seed = derive(self.seed, "ewc", "samples", self._finished)
        return Reservoir(self.settings.samples, seed)

    def sizes(self) -> Sizes:
        sizes = self._single.sizes()
        return replace(
            sizes,
            sample_bytes=self._recent.nbytes(),
            training_bytes=sizes.training_bytes + self._ledger.nbytes(),
            samples=len(self._recent),
        )

    def state_dict(self) -> State:
        return {
            "tasked": self._tasked.state_dict(),
            "ledger": self._ledger.state_dict(),
            "finished": self._finished,
            "recent": self._recent.state_dict(),
            "draws": self._draws.get_state(),
        }

    def load_state_dict(self, state: State) -> None:
        self._tasked.load_state_dict(state["tasked"])
        self._ledger.load_state_dict(state["ledger"], self.device)
        self._finished = state["finished"]
        self._recent = self._empty()
        self._recent.load_state_dict(state["recent"])
        restore_torch(self._draws, state["draws"])
