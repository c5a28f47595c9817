"""One network over all labels: what the reference methods have in common, to compose with."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tame.core.accounting import add_sizes, tensor_bytes, weigh_inputs
from tame.core.blueprint import Blueprint
from tame.core.inputs import Inputs
from tame.core.intake import Intake
from tame.core.network import Network
from tame.core.prune import count_nonzero
from tame.core.settings import Training
from tame.engine.lesson import Lesson
from tame.engine.randomness import restore_torch, torch_generator
from tame.methods.told import masked
from tame.nets import resolve
from tame.types import ArrayLike, Batch, Reading, Sizes, State

CHUNK = 1024


@dataclass(frozen=True)
class SingleSettings:
    """What can be set about a method with one network."""

    slots: int = 10
    inputs: Inputs = field(default_factory=Inputs)
    training: Training = field(default_factory=Training)


class SingleNetwork:
    """Checks batches, trains one network on them and predicts the labels it has been taught."""

    def __init__(self, net: Any, seed: int, settings: Any, device: torch.device) -> None:
        self.settings = settings
        self.seed = seed
        self.device = device
        self.intake = Intake(settings.inputs, device)
        self.network: Network | None = None
        self.steps = 0
        self._make = resolve(net)
        self._draws = torch_generator(seed)

    def admit(self, batch: Batch) -> Lesson:
        """Check the batch and make room for its labels; what can fail comes before any change."""
        x, y = self.intake.check(batch)
        step = self.intake.begin(x)
        unknown = self.intake.labels.unknown(y)
        live = len(self.intake.labels) + len(unknown)
        network = self.network or self._found(step.output_shape)
        network.grow(live)
        self.network = network
        self.intake.keep(x, step, unknown)
        return Lesson(x, self.intake.labels.slots(y), live, step, self.device)

    def learn(self, lesson: Lesson) -> Reading:
        """Measure the batch, then train on it."""
        reading = self.built.measure(lesson)
        self.built.learn(lesson, self.odds(len(lesson)))
        self.steps += 1
        return reading

    def begin_anew(self) -> None:
        """Put a network with its first weights in place of the one there is."""
        self.network = self._found(self.intake.ready.output_shape)
        self.network.grow(len(self.intake.labels))

    def odds(self, count: int) -> Tensor | None:
        """Draw the numbers that decide how so many samples are augmented, if they are."""
        augment = self.settings.inputs.augment
        if augment is None:
            return None
        return torch.rand(augment.numbers, count, generator=self._draws)

    @property
    def built(self) -> Network:
        """The network, once there is one."""
        if self.network is None:
            raise RuntimeError("a network exists only after the first batch")
        return self.network

    @torch.no_grad()
    def predict(
        self,
        x: ArrayLike,
        net: nn.Module | None = None,
        taught: int | None = None,
        allowed: Tensor | None = None,
    ) -> Tensor:
        """Return labels by the live network, or by another that was taught the first so many.

        Where only some labels are `allowed`, one of those. Before any data the answer is -1.
        """
        x = self.intake.check_inputs(x)
        if self.network is None or not len(x):
            return torch.full((len(x),), -1, device=self.device)
        net = (net or self.network.net).eval()
        live = len(self.intake.labels) if taught is None else taught
        step = self.intake.ready
        able = torch.ones(1, live, dtype=torch.bool) if allowed is None else allowed
        scores = (net(step(part))[:, :live] for part in x.split(CHUNK))
        found = [masked(part, able).argmax(1) for part in scores]
        return self.intake.labels.labels().to(self.device)[torch.cat(found)]

    @torch.no_grad()
    def log_probabilities(
        self, x: ArrayLike, net: nn.Module | None = None, taught: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return (samples, labels) log-probabilities and each column's label; cf. `predict`."""
        x = self.intake.check_inputs(x)
        net = (net or self.built.net).eval()
        live = len(self.intake.labels) if taught is None else taught
        step = self.intake.ready
        found = [net(step(part))[:, :live].log_softmax(1) for part in x.split(CHUNK)]
        return torch.cat(found), self.intake.labels.labels().to(self.device)[:live]

    def plan(self) -> Blueprint:
        """Return what further networks of this method would be built from."""
        return self.built.plan

    def sizes(self, net: nn.Module | None = None) -> Sizes:
        """Return the sizes of the network that predicts."""
        if self.network is None:
            return Sizes()
        net = net or self.network.net
        dense = sum(p.numel() for p in net.parameters())
        kept = self.network.state_dict()
        model = tensor_bytes(kept.pop("net"))
        training = tensor_bytes(kept)
        own = Sizes(count_nonzero(net), dense, dense, model, training_bytes=training)
        return add_sizes(own, weigh_inputs(self.intake.step))

    def state_dict(self) -> State:
        return {
            "steps": self.steps,
            "intake": self.intake.state_dict(),
            "network": None if self.network is None else self.network.state_dict(),
            "draws": self._draws.get_state(),
        }

    def load_state_dict(self, state: State) -> None:
        self.steps = state["steps"]
        self.intake.load_state_dict(state["intake"])
        restore_torch(self._draws, state["draws"])
        self.network = None
        if state["network"] is not None:
            self.network = self._found(self.intake.ready.output_shape)
            self.network.load_state_dict(state["network"])

    def _found(self, shape: tuple[int, ...]) -> Network:
        parts = (self.settings.training, self.seed, self.device, self.settings.inputs.augment)
        return Network(Blueprint(self._make, shape, *parts), self.settings.slots, ("single",))


def label_hash(x: Tensor, y: Tensor) -> np.ndarray:
    """Return a 64-bit number for each labelled sample; equal samples get equal numbers."""
    rows = x.cpu().contiguous().flatten(1).view(torch.uint8).numpy()
    weights = np.random.Generator(np.random.PCG64(0)).integers(
        0, 2**64, size=rows.shape[1], dtype=np.uint64
    )
    mixed = (rows * weights).sum(axis=1, dtype=np.uint64)
    labels: np.ndarray = y.cpu().numpy().astype(np.uint64)
    return np.asarray(mixed * np.uint64(0x9E3779B97F4A7C15) + labels)
