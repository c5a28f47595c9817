"""Bayesian gradient descent: every weight is a Gaussian, and certain weights move less.

Zeno, Golan, Hoffer, Soudry, "Task Agnostic Continual Learning Using Online Variational Bayes"
(2018). With K draws e ~ N(0, 1), weights mean + spread * e, and g the gradient of the loss summed
over the batch, E the mean over the draws:

    mean   <- mean - eta * spread^2 * E[g]
    spread <- spread * sqrt(1 + (spread * E[g e] / 2)^2) - spread^2 * E[g e] / 2

It is told nothing. The paper trains one softmax over all labels. Its label trick, a softmax over
the labels present in the batch alone, is a setting.
"""

import math
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from tame.core.accounting import tensor_bytes
from tame.core.inputs import Inputs
from tame.core.settings import Training
from tame.engine.lesson import Lesson
from tame.engine.losses import sample_losses
from tame.engine.randomness import PrivateDraws, derive, restore_torch, torch_generator
from tame.methods.drawn import Averaged
from tame.methods.method import Method
from tame.methods.single import SingleNetwork
from tame.nets import resolve
from tame.types import (
    ArrayLike,
    Batch,
    NetMaker,
    Observation,
    Sizes,
    State,
    When,
)

NOISE = 0.5


@dataclass(frozen=True)
class BGDSettings:
    """What can be set about Bayesian gradient descent.

    `spread` (sigma_0) is every weight's first standard deviation; left out, it is 0.5 over the
    root of the widest layer's inputs, about what the paper uses (0.018 for 784 inputs). `eta` is
    the only rate; each batch takes `draws` (K) gradients. `initial` says whether the first means
    are Xavier's, as in the paper, or the net's own (as they must be where weights are pre-trained).
    Answers are those of the means, or, as the authors' program offers, the mean of `average` draws.
    """

    slots: int = 10
    inputs: Inputs = field(default_factory=Inputs)
    spread: float | None = None
    eta: float = 1.0
    draws: int = 10
    label_trick: bool = False
    initial: Literal["xavier", "net"] = "xavier"
    average: int = 0
    training: ClassVar[Training] = Training(engine="eager", precision="float32")

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise ValueError(f"draws is 1 or more, not {self.draws}")
        if self.average < 0:
            raise ValueError(f"average is 0 (the means) or more draws, not {self.average}")
        if self.spread is not None and self.spread <= 0:
            raise ValueError(f"spread is positive, not {self.spread}")


class BGD(Method[BGDSettings]):
    """One network whose weights have means, which predict, and spreads, which set their pace.

    It is told nothing.

    >>> learner = BGD(net="mlp")
    >>> learner.observe(Batch([[0.0, 1.0]], [5])).expert, learner.predict([[0.0, 1.0]])
    (0, tensor([5]))
    """

    settings_type: ClassVar[type] = BGDSettings

    def _set_up(self) -> None:
        maker = resolve(self.net)
        maker = XavierStart(maker) if self.settings.initial == "xavier" else maker
        self._single = SingleNetwork(maker, self.seed, self.settings, self.device)
        self._spreads: dict[str, Tensor] = {}
        self._odds = torch_generator(derive(self.seed, "bgd", "odds"))
        self._forward = PrivateDraws(derive(self.seed, "bgd", "forward"), self.device)
        # on the device: ten times as many numbers as weights, every batch
        self._noise = torch.Generator(self.device).manual_seed(derive(self.seed, "bgd", "noise"))

    def observe(self, batch: Batch) -> Observation:
        step = self._single.steps
        lesson = self._single.admit(batch)
        self._make_room()
        reading = self._single.built.measure(lesson, keep=False)
        self._learn(lesson)
        self._single.steps += 1
        return Observation(step, reading.loss, math.nan, math.nan, 0)

    def predict(self, x: ArrayLike, when: When = "ever") -> Tensor:  # noqa: ARG002 (one network)
        if not self.settings.average or self._single.network is None:
            return self._single.predict(x)
        live, seed = len(self._single.intake.labels), derive(self.seed, "bgd", "average")
        net = Averaged(self._single.network.net, self._spreads, self.settings.average, seed, live)
        return self._single.predict(x, net)

    def sizes(self) -> Sizes:
        sizes = self._single.sizes()
        kept = sizes.training_bytes + tensor_bytes(self._spreads)
        return replace(sizes, training_bytes=kept)

    def state_dict(self) -> State:
        return {
            "single": self._single.state_dict(),
            "spreads": dict(self._spreads),
            "odds": self._odds.get_state(),
            "forward": list(self._forward.states),
            "noise": self._noise.get_state(),
        }

    def load_state_dict(self, state: State) -> None:
        self._single.load_state_dict(state["single"])
        kept = state["spreads"].items()
        self._spreads = {name: value.to(self.device, copy=True) for name, value in kept}
        restore_torch(self._odds, state["odds"])
        self._forward.states = [part.cpu() for part in state["forward"]]
        restore_torch(self._noise, state["noise"])

    def _make_room(self) -> None:
        """Give weights that are new, or came with new output slots, the first spread."""
        net = self._single.built.net
        first = self.settings.spread or default_spread(net)
        for name, parameter in net.named_parameters():
            old = self._spreads.get(name)
            if old is None or old.shape != parameter.shape:
                self._spreads[name] = _enlarged(old, parameter, first)

    def _learn(self, lesson: Lesson) -> None:
        """Take the mean gradients over the draws, then move means and spreads once."""
        net = self._single.built.net
        net.train(self._single.plan().faces.one or len(lesson) > 1)
        parameters = list(net.parameters())
        spreads = list(self._spreads.values())
        means = [parameter.detach().clone() for parameter in parameters]
        slopes, products = self._expectations(lesson, parameters, means, spreads)
        with torch.no_grad():
            for at, parameter in enumerate(parameters):
                parts = (means[at], spreads[at], slopes[at], products[at])
                mean, spread = posterior_step(*parts, eta=self.settings.eta)
                parameter.copy_(mean)
                spreads[at].copy_(spread)

    def _expectations(
        self,
        lesson: Lesson,
        parameters: list[nn.Parameter],
        means: list[Tensor],
        spreads: list[Tensor],
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Return E[g] and E[g e] for every parameter; running statistics count the batch once."""
        x = self._prepared(lesson)
        slopes = [torch.zeros_like(mean) for mean in means]
        products = [torch.zeros_like(mean) for mean in means]
        buffers: list[Tensor] = []
        for draw in range(self.settings.draws):
            noise = self._drawn(parameters, means, spreads)
            found = torch.autograd.grad(
                self._summed_loss(x, lesson), parameters, materialize_grads=True
            )
            for at, gradient in enumerate(found):
                slopes[at] += gradient / self.settings.draws
                products[at] += gradient * noise[at] / self.settings.draws
            if draw == 0:
                buffers = [buffer.clone() for buffer in self._single.built.net.buffers()]
        for buffer, once in zip(self._single.built.net.buffers(), buffers, strict=True):
            buffer.copy_(once)
        return slopes, products

    @torch.no_grad()
    def _drawn(
        self, parameters: list[nn.Parameter], means: list[Tensor], spreads: list[Tensor]
    ) -> list[Tensor]:
        """Set the weights to a draw from the posterior and return its noise."""
        found = []
        for parameter, mean, spread in zip(parameters, means, spreads, strict=True):
            noise = torch.empty_like(mean).normal_(generator=self._noise)
            parameter.copy_(torch.addcmul(mean, spread, noise))
            found.append(noise)
        return found

    def _summed_loss(self, x: Tensor, lesson: Lesson) -> Tensor:
        random = self._single.plan().faces.random
        with self._forward if random else nullcontext():
            outputs = self._single.built.net(x)[:, : lesson.live]
        target = lesson.target
        if self.settings.label_trick:
            present, target = target.unique(return_inverse=True)
            outputs = outputs[:, present]
        return sample_losses(outputs, target, self.settings.training.output).sum()

    def _prepared(self, lesson: Lesson) -> Tensor:
        augment = self.settings.inputs.augment
        if augment is None:
            return lesson.ready
        odds = torch.rand(augment.numbers, len(lesson), generator=self._odds)
        return lesson.changed(augment, odds)


class XavierStart:
    """A net maker whose nets start with Xavier's normal weights instead of their own."""

    def __init__(self, make: NetMaker) -> None:
        self._make = make

    def __call__(self, input_shape: tuple[int, ...], n_outputs: int) -> nn.Module:
        net = self._make(input_shape, n_outputs)
        for parameter in net.parameters():
            if parameter.ndim > 1:
                nn.init.xavier_normal_(parameter)
        return net


def posterior_step(
    mean: Tensor, spread: Tensor, slope: Tensor, product: Tensor, *, eta: float
) -> tuple[Tensor, Tensor]:
    """Return the next mean and spread, given E[g] and E[g e].

    >>> posterior_step(*torch.tensor([1.0, 2.0, 0.5, 0.75]), eta=1.0)
    (tensor(-1.), tensor(1.))
    """
    half = spread * product / 2
    root = torch.sqrt(1 + half * half)
    # the same number twice; the first form loses no digits where the product is large
    factor = torch.where(half > 0, 1 / (root + half.clamp(min=0)), root - half)
    return mean - eta * spread * spread * slope, spread * factor


def default_spread(net: nn.Module) -> float:
    """Return the first spread at which a layer's noise stays below that of its weights."""
    widest = max((p[0].numel() for p in net.parameters() if p.ndim > 1), default=1)
    return NOISE / math.sqrt(widest)


def _enlarged(old: Tensor | None, like: Tensor, first: float) -> Tensor:
    spread = torch.full_like(like, first, requires_grad=False)
    if old is not None:
        spread[tuple(slice(size) for size in old.shape)] = old
    return spread
