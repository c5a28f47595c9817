"""A vector for every sample that no training changes: a frozen trunk's features, or the inputs."""

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from tame.core.accounting import tensor_bytes, weigh_inputs
from tame.core.inputs import Inputs, InputStep
from tame.core.intake import Intake
from tame.core.trunk import HasFeatures
from tame.engine.randomness import derive, seeded
from tame.errors import ConfigError
from tame.nets import resolve
from tame.types import ArrayLike, Batch, State

Kind = Literal["auto", "trunk", "inputs"]
CHUNK = 256


class Admitted(NamedTuple):
    """A checked batch: raw samples where they came from, label slots, how many are known."""

    raw: Tensor
    slots: Tensor
    live: int


class Frozen:
    """Checks batches and gives each sample its vector; the trunk is built once and never trained.

    `auto` takes the trunk of a net that has one (a method `features`) and weights to load, and the
    inputs themselves of any other: a trunk drawn at random says less than what it is given.

    >>> frozen = Frozen("mlp", 0, Inputs(), "auto", torch.device("cpu"))
    >>> raw, slots, live = frozen.admit(Batch(torch.zeros(2, 1, 3), [7, 7]))
    >>> frozen.vectors(raw).shape, frozen.trunk is None
    (torch.Size([2, 3]), True)
    """

    def __init__(
        self, net: Any, seed: int, inputs: Inputs, kind: Kind, device: torch.device
    ) -> None:
        self.intake = Intake(inputs, device)
        self.trunk: nn.Module | None = None
        self.seed = seed
        self.device = device
        self._kind = kind
        self._make = resolve(net)

    def admit(self, batch: Batch) -> Admitted:
        """Check a batch and take note of its labels; what can fail comes before any change."""
        x, y = self.intake.check(batch)
        step = self.intake.begin(x)
        if self.intake.dtype is None:
            self.trunk = self._build(step)
        self.intake.keep(x, step, self.intake.labels.unknown(y))
        return Admitted(x, self.intake.labels.slots(y), len(self.intake.labels))

    def check(self, x: ArrayLike) -> Tensor:
        """Return samples to predict on the device, or say what is wrong with them."""
        return self.intake.check_inputs(x)

    @torch.no_grad()
    def vectors(self, raw: Tensor) -> Tensor:
        """Return a vector for each raw sample; none has an influence on another's."""
        return torch.cat([self._vectors(part.to(self.device)) for part in raw.split(CHUNK)])

    def answers(self, slots: Tensor) -> Tensor:
        """Return the labels of slots."""
        return self.intake.labels.labels().to(self.device)[slots]

    def unknown(self, x: Tensor) -> Tensor:
        """Return the answer where nothing has been learned: -1 for each sample."""
        return torch.full((len(x),), -1, device=self.device)

    def nbytes(self) -> int:
        """Return the bytes of the trunk, its own or the input step's."""
        own = 0 if self.trunk is None else tensor_bytes(dict(self.trunk.state_dict()))
        return own + weigh_inputs(self.intake.step).model_bytes

    def parameters(self) -> int:
        """Return how many weights the trunk has, its own or the input step's."""
        own = 0 if self.trunk is None else sum(p.numel() for p in self.trunk.parameters())
        return own + weigh_inputs(self.intake.step).dense

    def state_dict(self) -> State:
        return {
            "seed": self.seed,
            "intake": self.intake.state_dict(),
            "trunk": None if self.trunk is None else dict(self.trunk.state_dict()),
        }

    def load_state_dict(self, state: State) -> None:
        self.seed = state["seed"]
        self.intake.load_state_dict(state["intake"])
        self.trunk = None
        if state["trunk"] is not None:
            self.trunk = self._build(self.intake.ready)
            if self.trunk is not None:
                self.trunk.load_state_dict(state["trunk"])

    def _vectors(self, raw: Tensor) -> Tensor:
        ready: Tensor = self.intake.ready(raw)
        trunk: Any = self.trunk
        return (ready if trunk is None else trunk.features(ready)).flatten(1)

    def _build(self, step: InputStep) -> nn.Module | None:
        blank = getattr(self._make, "weights", None) == ""
        if self._kind == "inputs" or (self._kind == "auto" and blank):
            return None
        with seeded(derive(self.seed, "trunk"), self.device):
            net = self._make(step.output_shape, 1)
        if isinstance(net, HasFeatures):
            return net.to(self.device).eval().requires_grad_(requires_grad=False)
        if self._kind == "trunk":
            raise ConfigError(f"{type(net).__name__} has no trunk: no method 'features'")
        return None
