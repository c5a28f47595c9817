"""GDumb: keep a balanced memory, and train a fresh network on it only when an answer is wanted.

Prabhu, Torr, Dokania, "GDumb: A Simple Approach that Questions Our Progress in Continual Learning"
(2020). The sampler is greedy: a sample is kept if its label has fewer than capacity / labels; when
the memory is full, the label with most gives up a random one. The learner is dumb: from scratch,
on the memory alone, by SGD, one pass at a tenth of the rate and then cosine cycles of 1, 2, 4, ...
passes, each from the full rate.

It is told nothing. The paper's CutMix is `recipe.cutmix` (their program: 0.5), 0 by default. A
`codec`, which is not the paper's, keeps images in fewer bytes, as TAME's selectors can.
"""

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from tame.core.accounting import add_sizes, tensor_bytes, weigh_inputs
from tame.core.blueprint import Blueprint
from tame.core.codec import AsKept, Codec
from tame.core.inputs import Inputs
from tame.core.intake import Intake
from tame.core.prune import count_nonzero
from tame.core.settings import Training
from tame.engine.fitting import Job, Samples, fit
from tame.engine.randomness import derive, torch_generator
from tame.engine.recipe import Recipe
from tame.methods.balanced import Balanced
from tame.methods.method import Method
from tame.nets import resolve
from tame.types import (
    ArrayLike,
    Batch,
    Consolidation,
    Observation,
    Progress,
    Sizes,
    State,
    When,
    silent,
)

CHUNK = 1024
WARM = 0.1


@dataclass(frozen=True)
class GDumbSettings:
    """What can be set about GDumb: how many samples are kept, and how they are learned.

    A training has `cycles` cycles; `recipe.epochs` and `recipe.schedule` are theirs to decide. The
    paper's batch is 16 and its rate falls from 0.05 to 0.0005 in every cycle, here to 0.
    """

    slots: int = 10
    inputs: Inputs = field(default_factory=Inputs)
    memory: int = 500
    codec: Codec | None = None
    cycles: int = 6
    recipe: Recipe = field(
        default_factory=lambda: Recipe(batch=16, rate=0.05, weight_decay=1e-6, momentum=0.9)
    )

    def __post_init__(self) -> None:
        for name in ("slots", "memory", "cycles"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is 1 or more, not {getattr(self, name)}")


class GDumb(Method[GDumbSettings]):
    """A balanced memory; `predict` trains on it if it changed, and `consolidate` keeps the network.

    What `predict` trains follows from the memory, the step and the seed, and is no part of the
    state.

    >>> learner = GDumb(net="mlp")
    >>> for label in (4, 5):
    ...     _ = learner.observe(Batch([[label - 4.0, label - 5.0]] * 9, [label] * 9))
    >>> learner.predict([[0.0, -1.0], [1.0, 0.0]]), learner.sizes().samples
    (tensor([4, 5]), 18)
    """

    settings_type: ClassVar[type] = GDumbSettings

    def _set_up(self) -> None:
        self._make = resolve(self.net)
        self._intake = Intake(self.settings.inputs, self.device)
        self._memory = Balanced(self.settings.memory, derive(self.seed, "gdumb", "memory"))
        self._plan: Blueprint | None = None
        self._steps = 0
        self._kept: nn.Module | None = None
        self._fitted: tuple[int, nn.Module] | None = None  # after which step, and what

    def observe(self, batch: Batch) -> Observation:
        """Offer the batch to the memory; no network is trained, so there is no loss."""
        raw, y = self._intake.check(batch)
        if self.settings.codec is not None:
            self.settings.codec.check(tuple(raw.shape[1:]), raw.dtype)
        step = self._intake.begin(raw)
        plan = self._plan or self._drawn(step.output_shape)
        self._plan = plan
        self._intake.keep(raw, step, self._intake.labels.unknown(y))
        self._memory.add(self._written(raw), self._intake.labels.slots(y))
        self._steps += 1
        self._kept = None
        return Observation(self._steps - 1, math.nan, math.nan, math.nan, 0)

    def consolidate(self, progress: Progress = silent) -> Consolidation:
        """Train on the memory, unless nothing new came, and keep the network."""
        if len(self._memory):
            self._kept = self._current(progress)
        return Consolidation(experts=0, sizes=self.sizes())

    def predict(self, x: ArrayLike, when: When = "ever") -> Tensor:  # noqa: ARG002 (one network)
        x = self._intake.check_inputs(x)
        if not len(self._memory) or not len(x):
            return torch.full((len(x),), -1, device=self.device)
        net, live = self._current(silent), len(self._intake.labels)
        step: nn.Module = self._intake.ready
        if self.settings.codec is not None:
            step = nn.Sequential(AsKept(self.settings.codec), step)
        with torch.no_grad():
            found = [net(step(part))[:, :live].argmax(1) for part in x.split(CHUNK)]
        return self._intake.labels.labels().to(self.device)[torch.cat(found)]

    def sizes(self) -> Sizes:
        held, count = self._memory.nbytes(), len(self._memory)
        if self._kept is None:
            return Sizes(sample_bytes=held, samples=count)
        dense = sum(p.numel() for p in self._kept.parameters())
        model = tensor_bytes(dict(self._kept.state_dict()))
        own = Sizes(count_nonzero(self._kept), dense, dense, model, held, samples=count)
        return add_sizes(own, weigh_inputs(self._intake.step))

    def state_dict(self) -> State:
        return {
            "steps": self._steps,
            "intake": self._intake.state_dict(),
            "memory": self._memory.state_dict(),
            "kept": None if self._kept is None else dict(self._kept.state_dict()),
        }

    def load_state_dict(self, state: State) -> None:
        self._steps = state["steps"]
        self._intake.load_state_dict(state["intake"])
        self._memory.load_state_dict(state["memory"])
        self._plan, self._kept, self._fitted = None, None, None
        if self._intake.dtype is not None:
            self._plan = self._drawn(self._intake.ready.output_shape)
        if state["kept"] is not None:
            self._kept = self._build().eval()
            self._kept.load_state_dict(state["kept"])
            self._fitted = (self._steps, self._kept)

    def _written(self, raw: Tensor) -> Tensor:
        return raw if self.settings.codec is None else self.settings.codec.encode(raw)

    def _drawn(self, shape: tuple[int, ...]) -> Blueprint:
        """Return the plan of its networks; that the net fits is seen now, not when first asked."""
        plan = Blueprint(self._make, shape, Training(), self.seed, self.device)
        plan.build(self.settings.slots, "gdumb", "probe")
        return plan

    def _build(self) -> nn.Module:
        if self._plan is None:
            raise RuntimeError("a network exists only after the first batch")
        slots = self.settings.slots
        while slots < len(self._intake.labels):
            slots *= 2
        return self._plan.build(slots, "gdumb", self._steps)

    def _current(self, progress: Progress) -> nn.Module:
        """Return the network of the memory as it is, trained if it was not."""
        if self._fitted is None or self._fitted[0] != self._steps:
            self._fitted = (self._steps, self._train(progress))
        return self._fitted[1]

    def _train(self, progress: Progress) -> nn.Module:
        net, settings = self._build(), self.settings
        x, slots = self._memory.columns()
        step, live = self._intake.ready, len(self._intake.labels)
        if settings.codec is not None:
            x = settings.codec.decode(x, self._intake.shape)
        samples = Samples(x, slots, step.prepare, live).to(self.device)
        generator = torch_generator(derive(self.seed, "gdumb", "rows", self._steps))
        warm = replace(
            settings.recipe, epochs=1, schedule="constant", rate=WARM * settings.recipe.rate
        )
        fit([Job(net, samples, generator)], warm)
        for cycle in range(settings.cycles):
            recipe = replace(settings.recipe, epochs=2**cycle, schedule="cosine")
            fit([Job(net, samples, generator)], recipe)
            progress("training on the memory", cycle + 1, settings.cycles)
        return net
