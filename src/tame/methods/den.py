"""DEN: a network that grows where a task needs it, and splits units that would drift.

Yoon, Yang, Lee, Hwang, "Lifelong Learning with Dynamically Expandable Networks" (ICLR 2018). Fully
connected layers, one head of sigmoid outputs a task, binary cross-entropy, Adam, and after every
step a proximal one: each trained weight w <- sign(w) max(|w| - l1, 0). For each task but the first:

    selection   the new head alone is trained under l1; units are kept that a non-zero path joins
                to it; they are retrained with l2/2 |w|^2 + drift/2 |w - w_before|^2
    expansion   if the loss is still `enough` or more, `units` are added to every layer and trained
                (old weights frozen); the incoming vector v of each shrinks as a group,
                v <- v max(1 - group/|v|, 0), and units whose vector is zero go again
    splitting   of the units that moved by more than `split`, the `units` that moved most are
                doubled: the old one goes back to where it was, its copy keeps what it learned
    timestamp   the task answers by the units that exist now, and by none that come later

The stages go over a task's samples many times, so a uniform sample of the present task, `memory`
strong, is kept until the next begins; meanwhile a provisional copy learns from the stream, batch by
batch, and answers. The public code trains the head for one step and duplicates the units that moved
*least*; this is the paper's form. Its figures are areas under ROC curves; ours are accuracies.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from tame.core.accounting import tensor_bytes
from tame.core.inputs import Inputs
from tame.core.intake import Intake
from tame.core.reservoir import Reservoir
from tame.engine.randomness import derive, torch_generator
from tame.errors import ConfigError
from tame.methods.den_stages import Stages, Teaching, loss_of
from tame.methods.growing import SCALE, Growing, Head
from tame.methods.method import Method
from tame.methods.told import Told, check_hint
from tame.nets import resolve
from tame.nets.mlp import MLP
from tame.types import (
    ArrayLike,
    Batch,
    Consolidation,
    Hint,
    Hints,
    NetMaker,
    Observation,
    Progress,
    Sizes,
    State,
    When,
    silent,
)

PACE = 0.5  # of the provisional copy's plain gradient steps


@dataclass(frozen=True)
class DENSettings:
    """What can be set about DEN: the paper's names are in the method's description.

    `iterations` is how many batches of `batch` samples each stage takes.
    """

    inputs: Inputs = field(default_factory=Inputs)
    memory: int = 2000
    iterations: int = 300
    batch: int = 256
    rate: float = 1e-3
    l1: float = 1e-5
    l2: float = 1e-4
    group: float = 1e-3
    drift: float = 0.5
    units: int = 10
    enough: float = 0.01
    split: float = 0.05

    def __post_init__(self) -> None:
        for name in ("memory", "iterations", "batch"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is 1 or more, not {getattr(self, name)}")


class DEN(Method[DENSettings]):
    """Layers that grow; it is told the task in training and in testing.

    >>> learner = DEN(net="mlp")
    >>> learner.observe(Batch([[0.0, 1.0]], [5])).expert, learner.predict([[0.0, 1.0]])
    (0, tensor([5]))
    """

    hints: ClassVar[Hints] = Hints.TRAIN_TASK | Hints.TEST_TASK
    settings_type: ClassVar[type] = DENSettings

    def __init__(
        self,
        net: str | Mapping[str, Any] | NetMaker = "mlp",
        seed: int = 0,
        settings: DENSettings | None = None,
        device: str = "cpu",
    ) -> None:
        super().__init__(net, seed, settings, device)

    def _set_up(self) -> None:
        maker = resolve(self.net)
        if not isinstance(maker, MLP):
            raise ConfigError("den grows fully connected layers: its net is an mlp")
        self._hidden = maker.hidden
        self._intake = Intake(self.settings.inputs, self.device)
        self._told = Told()
        self._steps = 0
        self._settled: Growing | None = None  # before the present task
        self._live: Growing | None = None  # learning from the stream
        self._done: Growing | None = None  # the present task through all stages
        self._buffer = self._empty()

    def inform(self, hint: Hint) -> None:
        before = self._told.task
        check_hint(hint)
        if hint.task is not None and hint.task != before and len(self._buffer):
            self.consolidate()
            self._settled, self._live, self._done = self._done, None, None
            self._buffer = self._empty()
        self._told.hear(hint)

    def observe(self, batch: Batch) -> Observation:
        x, y = self._intake.check(batch)
        step = self._intake.begin(x)
        if self._settled is None:
            self._settled = self._made(math.prod(step.output_shape))
        self._intake.keep(x, step, self._intake.labels.unknown(y))
        slots, self._done = self._intake.labels.slots(y), None
        self._told.see(slots)
        self._live = self._live or self._settled.clone()
        self._open(self._live, slots)
        loss = self._learn(self._live, step(x.to(self.device)), slots)
        self._buffer.add(x.cpu(), slots)
        self._steps += 1
        return Observation(self._steps - 1, loss, math.nan, math.nan, 0)

    def consolidate(self, progress: Progress = silent) -> Consolidation:
        """Take the present task through all stages, unless nothing new came."""
        if self._done is None and self._settled is not None and len(self._buffer):
            x, slots = self._buffer.columns()
            net, slots = self._settled.clone(), slots.long()
            fresh = self._told.task not in net.heads
            self._open(net, self._live_slots())
            ready = self._intake.ready(x.to(self.device))
            teaching = Teaching(ready, self._targets(net, slots))
            seed = derive(self.seed, "den", "stages", self._told.task, self._steps)
            stages = Stages(net, self._told.task, self.settings, torch_generator(seed), progress)
            if fresh and len(net.heads) == 1:
                stages.first(teaching)
            else:
                stages.later(teaching)
            self._done = net
        return Consolidation(experts=0, sizes=self.sizes())

    @torch.no_grad()
    def predict(self, x: ArrayLike, when: When = "ever") -> Tensor:
        """Return the label of the highest output of any head; `now` of the present task's."""
        heads = None if when == "ever" else [self._told.task]
        return self._answer(x, heads)

    def predict_told(self, x: ArrayLike, hint: Hint) -> Tensor:
        check_hint(hint)
        return self._answer(x, None if hint.task is None else [hint.task])

    def sizes(self) -> Sizes:
        net = self._answering()
        if net is None:
            return Sizes()
        tensors = [*net.weights, *net.biases]
        tensors += [part for head in net.heads.values() for part in (head.weight, head.bias)]
        dense = sum(part.numel() for part in tensors)
        nonzero = sum(int(part.count_nonzero()) for part in tensors)
        spare = [other for other in (self._settled, self._live, self._done) if other is not net]
        training = sum(tensor_bytes(other.state_dict()) for other in spare if other is not None)
        kept = (self._buffer.nbytes(), training, len(self._buffer))
        return Sizes(nonzero, dense, dense, tensor_bytes(tensors), *kept)

    def state_dict(self) -> State:
        nets = {"settled": self._settled, "live": self._live, "done": self._done}
        return {
            "steps": self._steps,
            "intake": self._intake.state_dict(),
            "told": self._told.state_dict(),
            "buffer": self._buffer.state_dict(),
            **{name: None if net is None else net.state_dict() for name, net in nets.items()},
        }

    def load_state_dict(self, state: State) -> None:
        self._steps = state["steps"]
        self._intake.load_state_dict(state["intake"])
        self._told.load_state_dict(state["told"])
        self._buffer = self._empty()
        self._buffer.load_state_dict(state["buffer"])
        self._settled, self._live, self._done = (
            _loaded(state[name]) for name in ("settled", "live", "done")
        )

    def _made(self, inputs: int) -> Growing:
        generator = torch_generator(derive(self.seed, "den", "layers"))
        net = Growing.made(inputs, self._hidden, generator)
        net.weights = [weight.to(self.device) for weight in net.weights]
        net.biases = [bias.to(self.device) for bias in net.biases]
        return net

    def _empty(self) -> Reservoir:
        task = self._told.task
        return Reservoir(
            self.settings.memory, derive(self.seed, "den", "buffer", task, self._steps)
        )

    def _open(self, net: Growing, slots: Tensor) -> None:
        """Give the present task a head, and that an output for every label."""
        task = self._told.task
        if task not in net.heads:
            width = net.widths[-1]
            empty = net.weights[-1].new_zeros(0, width)
            net.heads[task] = Head(empty, empty.new_zeros(0), [], net.widths)
        head = net.heads[task]
        new = [slot for slot in slots.unique().tolist() if slot not in head.slots]
        for slot in new:
            generator = torch_generator(derive(self.seed, "den", "head", task, slot))
            row = SCALE * torch.randn(1, head.weight.shape[1], generator=generator)
            head.weight = torch.cat([head.weight, row.to(head.weight.device)])
            head.bias = torch.cat([head.bias, head.bias.new_zeros(1)])
            head.slots.append(slot)

    def _live_slots(self) -> Tensor:
        assert self._live is not None  # noqa: S101 (a batch has been observed)
        return torch.tensor(self._live.heads[self._told.task].slots)

    def _targets(self, net: Growing, slots: Tensor) -> Tensor:
        known = torch.tensor(net.heads[self._told.task].slots)
        return (slots[:, None].cpu() == known).float().to(self.device)

    def _learn(self, net: Growing, x: Tensor, slots: Tensor) -> float:
        """Take one plain step on a batch and return its loss before."""
        task, targets = self._told.task, self._targets(net, slots)
        head = net.heads[task]
        parts = [*net.weights, *net.biases, head.weight, head.bias]
        for part in parts:
            part.requires_grad_()
        loss = loss_of(net.outputs(x, task), targets)
        slopes = torch.autograd.grad(loss, parts, materialize_grads=True)
        with torch.no_grad():
            for part, slope in zip(parts, slopes, strict=True):
                part.requires_grad_(False).sub_(PACE * slope)  # noqa: FBT003 (torch's)
        return float(loss.detach())

    def _answering(self) -> Growing | None:
        return self._done or self._live or self._settled

    @torch.no_grad()
    def _answer(self, x: ArrayLike, tasks: list[int] | None) -> Tensor:
        x, net = self._intake.check_inputs(x), self._answering()
        if net is None or not len(x):
            return torch.full((len(x),), -1, device=self.device)
        known = [task for task in tasks or [] if task in net.heads] or list(net.heads)
        ready = self._intake.ready(x)
        outputs = torch.cat([net.outputs(ready, task) for task in known], 1)
        slots = torch.tensor([slot for task in known for slot in net.heads[task].slots])
        found = slots[outputs.argmax(1).cpu()]
        return self._intake.labels.labels()[found].to(self.device)


def _loaded(state: State | None) -> Growing | None:
    if state is None:
        return None
    net = Growing([], [])
    net.load_state_dict(state)
    return net
