"""A training step run operation by operation, with the decision between measuring and learning.

`measure` tells the loss of a batch before it trains anything; `learn` then trains on that batch.
Where evaluation and training forward agree, measuring keeps its graph and learning pays no second
forward; every other network pays one extra forward without gradients.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tame.engine.lesson import Lesson
from tame.engine.losses import Output, read, sample_losses
from tame.engine.meanwhile import Meanwhile, nothing
from tame.engine.randomness import PrivateDraws, seeded
from tame.types import Reading

TWO_FACED = (
    nn.modules.batchnorm._NormBase,  # noqa: SLF001 (the common base of batch and instance norms)
    nn.modules.dropout._DropoutNd,  # noqa: SLF001
    nn.AlphaDropout,
    nn.RReLU,
)
LARGE = 1_000_000


class Manner(NamedTuple):
    """How a network is stepped: the form of its loss, longest gradient, change, precision."""

    output: Output = "logits"
    clip: float = 0.0
    augment: Any = None
    precision: str = "float32"
    one_faced: bool = True


class EagerStep:
    """Measures and trains one network.

    >>> net = nn.Linear(2, 2)
    >>> step = EagerStep(net, torch.optim.SGD(net.parameters(), 0.1), Manner())
    >>> lesson = Lesson(torch.eye(2), torch.tensor([0, 1]), 2, nn.Identity(), "cpu")
    >>> before = step.measure(lesson).loss
    >>> step.learn(lesson)
    >>> step.measure(lesson).loss < before
    True
    """

    def __init__(
        self,
        net: nn.Module,
        optimiser: torch.optim.Optimizer,
        manner: Manner,
        draws: PrivateDraws | None = None,
    ) -> None:
        self.net = net
        self.optimiser = optimiser
        self.manner = manner
        self.draws = draws
        self._half = wants_half(net, manner.precision)
        self._pending: Tensor | None = None

    @property
    def measures_by_training(self) -> bool:
        """Whether the training forward is also the one that measures."""
        return self.manner.one_faced and self.manner.augment is None

    def measure(
        self, lesson: Lesson, *, keep: bool = True, meanwhile: Meanwhile = nothing
    ) -> Reading:
        """Return the loss of the batch in evaluation mode; `keep` its graph if learning follows.

        `meanwhile` is done by the host before it waits for the device.
        """
        keep = keep and self.measures_by_training
        losses = self.judge(lesson.ready, lesson.target, lesson.live, keep=keep)
        self._pending = losses if keep else None
        meanwhile()
        return read(losses)

    def learn(self, lesson: Lesson, odds: Tensor | None = None) -> None:
        """Train on a batch: the one just measured and kept, or any other."""
        losses, self._pending = self._pending, None
        if losses is None:
            augment = self.manner.augment
            x = lesson.ready if odds is None else lesson.changed(augment, odds)
            losses = self.train(x, lesson.target, lesson.live)
        self.backward(losses)
        self.update()

    def forget(self) -> None:
        """Drop what measuring kept: the batch will not be learned."""
        self._pending = None

    def judge(self, x: Tensor, target: Tensor, live: int, *, keep: bool) -> Tensor:
        """Return the loss of each sample by a forward in evaluation mode."""
        with torch.set_grad_enabled(keep):
            return self.losses(x, target, live, training=keep)

    def train(self, x: Tensor, target: Tensor, live: int) -> Tensor:
        """Return the loss of each sample by a forward in training mode."""
        training = self.manner.one_faced or x.shape[0] > 1  # no statistics of one sample
        with self.draws or nullcontext():
            return self.losses(x, target, live, training=training)

    def backward(self, losses: Tensor) -> None:
        """Fill the gradients."""
        self.optimiser.zero_grad(set_to_none=True)
        losses.mean().backward()

    def update(self) -> None:
        """Change the weights."""
        if self.manner.clip:
            nn.utils.clip_grad_norm_(self.net.parameters(), self.manner.clip)
        self.optimiser.step()

    def losses(self, x: Tensor, target: Tensor, live: int, *, training: bool) -> Tensor:
        """Return the loss of each sample by a forward in the mode asked for."""
        return sample_losses(self.outputs(x, live, training=training), target, self.manner.output)

    def outputs(self, x: Tensor, live: int, *, training: bool) -> Tensor:
        """Return the live outputs by a forward in the mode asked for."""
        _set_mode(self.net, training=training)
        with half(x.device, enabled=self._half):
            outputs = self.net(x)
        kept: Tensor = outputs[:, :live].to(x.dtype)
        return kept


def _set_mode(net: nn.Module, *, training: bool) -> None:
    if net.training != training:
        net.train(training)


def wants_half(net: nn.Module, precision: str) -> bool:
    """Say whether to compute in bfloat16: asked for, or `auto` and a large network on a GPU."""
    if precision != "auto":
        return precision == "bfloat16"
    parameters = list(net.parameters())
    on_gpu = bool(parameters) and parameters[0].is_cuda
    return on_gpu and sum(p.numel() for p in parameters) > LARGE


@contextmanager
def half(device: torch.device, *, enabled: bool) -> Iterator[None]:
    """Run forwards in bfloat16 where that is enabled; weights stay in single precision."""
    if not enabled:
        yield
        return
    with torch.autocast(device.type, torch.bfloat16, cache_enabled=False):
        yield


class Faces(NamedTuple):
    """Whether training and evaluation forward agree, and whether training draws at random."""

    one: bool
    random: bool


def find_faces(net: nn.Module, x: Tensor) -> Faces:
    """Find out whether a network computes the same in training and in evaluation.

    Known layers (batch norm, dropout) answer at once; any other network runs both ways on a batch,
    and outputs and buffers are compared bit for bit. The network is not fit for use afterwards.
    """
    known = any(isinstance(module, TWO_FACED) for module in net.modules())
    buffers = [buffer.clone() for buffer in net.buffers()]
    with torch.no_grad(), seeded(0, x.device):
        before = _random_states(x.device)
        trained = net.train()(x)
        after = _random_states(x.device)
        random = not all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
        same = all(torch.equal(a, b) for a, b in zip(buffers, net.buffers(), strict=True))
        return Faces(not known and same and torch.equal(trained, net.eval()(x)), random)


def _random_states(device: torch.device) -> list[Tensor]:
    states = [torch.get_rng_state()]
    return [*states, torch.cuda.get_rng_state(device)] if device.type == "cuda" else states
