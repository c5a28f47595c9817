"""What all networks of a learner have in common, and how one is made."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from tame.engine.captured import Bench
from tame.engine.eager import EagerStep, Faces, Manner, find_faces
from tame.engine.fitting import make_optimiser
from tame.engine.parallel import ParallelStep
from tame.engine.randomness import PrivateDraws, derive, seeded
from tame.engine.together import Team, find_team
from tame.engine.world import World, current
from tame.errors import ConfigError
from tame.nets.weights import left_blank
from tame.types import NetMaker

if TYPE_CHECKING:
    from tame.core.settings import Training


FEW = 2  # outputs that any net is made with to see what it does


@dataclass(frozen=True)
class Blueprint:
    """What all networks of a learner have in common."""

    make: NetMaker
    input_shape: tuple[int, ...]
    training: "Training"
    seed: int
    device: torch.device
    augment: Any = None
    world: World = field(default_factory=current)

    def build(self, slots: int, *path: object) -> nn.Module:
        """Make a network with seeded weights; the global generators are left as they were."""
        with seeded(derive(self.seed, *path), self.device):
            try:
                net = self.make(self.input_shape, slots)
            except TypeError as error:
                given = f"make({self.input_shape}, {slots})"
                raise ConfigError(
                    f"the net maker failed when called as {given}: {error}"
                ) from error
        if not isinstance(net, nn.Module):
            raise ConfigError(f"the net maker returned {type(net).__name__}, not an nn.Module")
        if len(self.input_shape) == 3:  # noqa: PLR2004 (images)
            net = net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return net.to(self.device)

    @cached_property
    def faces(self) -> Faces:
        """Whether its networks compute the same in training and in evaluation, and draw."""
        with seeded(0, self.device):
            x = torch.rand(4, *self.input_shape, device=self.device)
        return find_faces(self._probed(x, FEW), x)

    def check_many(self) -> None:
        """Refuse a maker that heeds no number of outputs: it would fail at the third label."""
        _ = self._many

    @cached_property
    def _many(self) -> bool:
        with seeded(0, self.device):
            self._probed(torch.rand(4, *self.input_shape, device=self.device), FEW + 1)
        return True

    def _probed(self, x: Tensor, outputs: int) -> nn.Module:
        """Return a network that has been seen to give so many outputs."""
        net = self.build(outputs, "probe").eval()
        with torch.no_grad():
            shape = tuple(net(x).shape)
        if shape != (len(x), outputs):
            raise ConfigError(
                f"the net made for {outputs} outputs returned shape {shape} for {len(x)} samples, "
                f"not ({len(x)}, {outputs})"
            )
        return net

    @cached_property
    def heads(self) -> frozenset[str]:
        """The tensors of its networks whose shapes depend on the number of labels."""
        with left_blank():
            few, more = (self.build(slots, "frame").state_dict() for slots in (2, 4))
        return frozenset(name for name, value in few.items() if value.shape != more[name].shape)

    @cached_property
    def team(self) -> Team:
        """Whether its networks can be run many in one call, and when that pays."""
        with seeded(0, self.device):
            x = torch.rand(3, *self.input_shape, device=self.device)
        return find_team([self.build(2, "probe", number) for number in range(2)], x)

    @cached_property
    def manner(self) -> Manner:
        """How its networks are stepped."""
        ways = self.training
        return Manner(ways.output, ways.clip, self.augment, ways.precision, self.faces.one)

    @cached_property
    def bench(self) -> Bench | None:
        """The recorded step its networks take turns on, on a GPU unless told otherwise.

        Ranks talk in the middle of a step, so theirs is not recorded.
        """
        eager = self.training.engine == "eager" or self.world.size > 1
        if self.device.type != "cuda" or eager:
            return None
        return Bench(self.manner, lambda net: make_optimiser(net, self.training))

    def step(
        self, net: nn.Module, optimiser: torch.optim.Optimizer, draws: PrivateDraws | None
    ) -> EagerStep | ParallelStep:
        """Return the step of one network, divided where there are several ranks."""
        own = EagerStep(net, optimiser, self.manner, draws)
        return own if self.world.size == 1 else ParallelStep(own, self.world)
