"""HCL: one flow for all tasks and labels, which knows a new task by its atypical likelihood.

Reconstruction, of Kirichenko and others, "Task-agnostic Continual Learning with Hybrid
Probabilistic Models" (2021): there is no public code, and what the paper leaves open is ours.

An invertible f takes inputs to latents; label y of task t has a fixed random mean m(y, t):

    log p(x | y, t) = log N(f(x); m(y, t), I) + log |det df/dx|

Training maximises it on the batch. Three statistics of the batch, the means of log p, of log N and
of log |det|, are compared with those of recent batches of the present task: if one lies too many
deviations off, to either side, a task for which all are typical takes over, or a new one begins.
At every such change a copy f_old of the flow is kept. From then on each step draws (y', t') of
other tasks, z ~ N(m(y', t'), I), x' = f_old^-1(z), and adds to the loss

    FR ("functional"):  strength * mean |f(x') - f_old(x')|^2,   where f_old(x') is z itself
    GR ("generative"):  - mean log p(x' | y', t')

A label's score is the sum over tasks of p(x | y, t) p(y | t) p(t), the last two uniform. It is told
nothing. On pixels the flow works on logits of dequantised values; with a net that has a trunk and
weights to load, on that trunk's frozen features.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from tame.core.accounting import tensor_bytes
from tame.core.inputs import Inputs
from tame.core.prune import count_nonzero
from tame.engine.randomness import derive, restore_torch, seeded, torch_generator
from tame.methods.flow import Flow
from tame.methods.frozen import Frozen, Kind
from tame.methods.method import Method
from tame.methods.optimisers import adam, remembered, remind
from tame.methods.typical import Range
from tame.methods.typical_tasks import Tasks
from tame.types import (
    ArrayLike,
    Batch,
    Consolidation,
    NetMaker,
    Observation,
    Progress,
    Sizes,
    State,
    When,
    silent,
)

CHUNK = 512
SQUEEZE = 0.05
LEAST = 0.1


@dataclass(frozen=True)
class HCLSettings:
    """What can be set about HCL; every number here is ours, the paper's text was not at hand.

    `guard` is what holds what was learned: "functional" (HCL-FR) or "generative" (HCL-GR), with
    `strength` (alpha). `distance` is the deviation the labels' latent means are drawn with.
    Pixels in [0, 1] get uniform noise up to `noise`: dequantising alone, 1/256, leaves pixels that
    are always black so little room that the first lit one is astronomically unlikely. `features`
    is "trunk", "inputs", or chosen by the net ("auto").
    """

    inputs: Inputs = field(default_factory=Inputs)
    guard: Literal["functional", "generative"] = "functional"
    strength: float = 1.0
    couplings: int = 6
    hidden: int = 256
    distance: float = 1.0
    noise: float = 0.125
    rate: float = 1e-3
    clip: float = 100.0
    window: int = 30
    warmup: int = 20
    width: float = 6.0
    features: Kind = "auto"

    def __post_init__(self) -> None:
        for name, least in (("couplings", 1), ("hidden", 1), ("warmup", 2)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {least} or more, not {getattr(self, name)}")
        if self.window < self.warmup:
            raise ValueError(f"window is no less than warmup, {self.warmup}, not {self.window}")


class HCL(Method[HCLSettings]):
    """A flow whose latent clusters are the labels of each task it has found (reconstruction).

    >>> learner = HCL(settings=HCLSettings(couplings=2, hidden=8))
    >>> learner.observe(Batch([[0.0, 1.0]], [5])).expert, learner.predict([[0.0, 1.0]])
    (0, tensor([5]))
    """

    settings_type: ClassVar[type] = HCLSettings

    def __init__(
        self,
        net: str | Mapping[str, Any] | NetMaker = "mlp",
        seed: int = 0,
        settings: HCLSettings | None = None,
        device: str = "cpu",
    ) -> None:
        super().__init__(net, seed, settings, device)

    def _set_up(self) -> None:
        own = self.settings
        self._frozen = Frozen(self.net, self.seed, own.inputs, own.features, self.device)
        self._tasks = Tasks(Range(own.window, own.warmup, own.width))
        self._flow: Flow | None = None
        self._old: Flow | None = None
        self._optimiser: torch.optim.Optimizer | None = None
        self._steps = 0
        self._noise = torch.Generator(self.device).manual_seed(derive(self.seed, "hcl", "noise"))
        self._means: dict[tuple[int, int], Tensor] = {}

    def observe(self, batch: Batch) -> Observation:
        raw, slots, _ = self._frozen.admit(batch)
        x = self._vectors(raw.to(self.device), dequantise=True)
        flow = self._begin(x)
        z, log_det = flow(x)
        change = self._tasks.place(slots.tolist(), lambda task: self._read(z, log_det, slots, task))
        if change.value != "none":
            self._old = self._copy(flow)
        mean = self._of(self._tasks.active, slots)
        likelihood = log_normal(z, mean) + log_det
        self._learn(-likelihood.mean() + self._guard(len(x)))
        self._steps += 1
        loss = -likelihood.mean().item()
        return Observation(self._steps - 1, loss, math.nan, math.nan, self._tasks.active, change)

    def consolidate(self, progress: Progress = silent) -> Consolidation:
        """Do nothing: everything is learned as it comes."""
        progress("nothing to consolidate", 1, 1)
        return Consolidation(experts=len(self._tasks), sizes=self.sizes())

    @torch.no_grad()
    def predict(self, x: ArrayLike, when: When = "ever") -> Tensor:  # noqa: ARG002 (one network)
        x = self._frozen.check(x)
        if self._flow is None or not len(x):
            return self._frozen.unknown(x)
        flow = self._flow
        parts = [flow(self._vectors(part, dequantise=False))[0] for part in x.split(CHUNK)]
        return self._frozen.answers(torch.cat([self._scores(z).argmax(1) for z in parts]))

    def sizes(self) -> Sizes:
        if self._flow is None:
            return Sizes()
        latent = sum(mean.numel() for mean in self._means.values())
        dense = sum(p.numel() for p in self._flow.parameters()) + self._frozen.parameters()
        nonzero = count_nonzero(self._flow) + self._frozen.parameters() + latent
        model = tensor_bytes(dict(self._flow.state_dict())) + self._frozen.nbytes()
        old = {} if self._old is None else dict(self._old.state_dict())
        kept = {} if self._optimiser is None else remembered(self._optimiser)
        rest = tensor_bytes(old) + tensor_bytes(kept)
        return Sizes(nonzero, dense + latent, dense + latent, model, training_bytes=rest)

    def state_dict(self) -> State:
        optimiser, flows = self._optimiser, (self._flow, self._old)
        return {
            "steps": self._steps,
            "frozen": self._frozen.state_dict(),
            "tasks": self._tasks.state_dict(),
            "flows": [dict(flow.state_dict()) for flow in flows if flow is not None],
            "optimiser": {} if optimiser is None else remembered(optimiser),
            "noise": self._noise.get_state(),
        }

    def load_state_dict(self, state: State) -> None:
        self._steps = state["steps"]
        self._frozen.load_state_dict(state["frozen"])
        self._tasks.load_state_dict(state["tasks"])
        restore_torch(self._noise, state["noise"])
        flows = [self._build(len(kept["centre"])) for kept in state["flows"]]
        for flow, kept in zip(flows, state["flows"], strict=True):
            flow.load_state_dict(kept)
        self._flow, self._old = [*flows, None, None][:2]
        self._means, self._optimiser = {}, None
        if self._flow is not None:
            self._optimiser = adam(self._flow.parameters(), self.settings.rate)
            remind(self._optimiser, state["optimiser"])
            for task, slot in self._tasks.pairs():
                self._mean(task, slot)

    def _vectors(self, raw: Tensor, *, dequantise: bool) -> Tensor:
        """Return what the flow takes: features, logits of pixels, or floats as they are."""
        if self._frozen.trunk is not None:
            return self._frozen.vectors(raw)
        step = self._frozen.intake.ready
        x = step.scale(raw).flatten(1)
        if not step.is_bytes:
            return x
        noise = torch.full_like(x, 0.5)
        noise = noise.uniform_(generator=self._noise) if dequantise else noise
        share = x * (1 - self.settings.noise) + noise * self.settings.noise
        return (SQUEEZE + (1 - 2 * SQUEEZE) * share).logit()

    def _begin(self, x: Tensor) -> Flow:
        if self._flow is None:
            self._flow = self._build(x.shape[1])
            self._flow.standardise(x, LEAST)
            self._optimiser = adam(self._flow.parameters(), self.settings.rate)
        return self._flow

    def _build(self, inputs: int) -> Flow:
        with seeded(derive(self._frozen.seed, "hcl", "flow"), self.device):
            flow = Flow(inputs, self.settings.couplings, self.settings.hidden)
        return flow.to(self.device)

    def _copy(self, flow: Flow) -> Flow:
        copy = self._build(len(flow.centre))
        copy.load_state_dict(flow.state_dict())
        return copy.requires_grad_(requires_grad=False)

    def _learn(self, loss: Tensor) -> None:
        if self._flow is None or self._optimiser is None:
            raise RuntimeError("a flow exists only after the first batch")
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self._flow.parameters(), self.settings.clip)
        self._optimiser.step()

    def _guard(self, count: int) -> Tensor:
        """Return what forgetting costs, on as many samples as the batch has, drawn anew."""
        pairs = [pair for pair in self._tasks.pairs() if pair[0] != self._tasks.active]
        if self._old is None or self._flow is None or not pairs:
            return torch.zeros((), device=self.device)
        means = torch.stack([self._mean(*pair) for pair in pairs])
        odds = torch.rand(count, generator=self._noise, device=self.device)
        mean = means[(odds * len(pairs)).long().clamp(max=len(pairs) - 1)]
        z = mean + torch.empty_like(mean).normal_(generator=self._noise)
        found, log_det = self._flow(self._old.inverse(z))
        if self.settings.guard == "functional":
            costs = (found - z).square().sum(1)
        else:
            costs = -log_normal(found, mean) - log_det
        cost: Tensor = self.settings.strength * costs.mean()
        return cost

    @torch.no_grad()
    def _read(self, z: Tensor, log_det: Tensor, slots: Tensor, task: int) -> list[float]:
        """Return the three statistics of a batch under a task, in one transfer."""
        normal = log_normal(z, self._of(task, slots)).mean()
        volume = log_det.mean()
        found: list[float] = torch.stack([normal + volume, normal, volume]).tolist()
        return found

    def _of(self, task: int, slots: Tensor) -> Tensor:
        """Return each sample's latent mean under a task."""
        known, places = slots.unique(return_inverse=True)
        rows = torch.stack([self._mean(task, slot) for slot in known.tolist()])
        return rows[places.to(self.device)]

    def _mean(self, task: int, slot: int) -> Tensor:
        if (task, slot) not in self._means:
            size = 0 if self._flow is None else len(self._flow.centre)
            drawn = torch_generator(derive(self._frozen.seed, "hcl", "mean", task, slot))
            mean = self.settings.distance * torch.randn(size, generator=drawn)
            self._means[task, slot] = mean.to(self.device)
        return self._means[task, slot]

    def _scores(self, z: Tensor) -> Tensor:
        """Return the log of each label's share, up to a constant: a sum over tasks."""
        pairs = self._tasks.pairs()
        means = torch.stack([self._mean(*pair) for pair in pairs])
        # |z|^2 and log |det| are the same for all: only the part that differs is compared
        near = z @ means.T - 0.5 * means.square().sum(1)
        share = [-math.log(self._tasks.labels(task)) for task, _ in pairs]
        near = near + torch.tensor(share, device=self.device)
        scores = near.new_full((len(z), len(self._frozen.intake.labels)), -torch.inf)
        for slot in {slot for _, slot in pairs}:
            columns = [place for place, pair in enumerate(pairs) if pair[1] == slot]
            scores[:, slot] = near[:, columns].logsumexp(1)
        return scores


def log_normal(z: Tensor, mean: Tensor) -> Tensor:
    """Return the log-density of latents under unit Gaussians.

    >>> log_normal(torch.zeros(1, 2), torch.tensor([[0.0, 2.0]]))
    tensor([-3.8379])
    """
    return -0.5 * ((z - mean).square().sum(1) + z.shape[1] * math.log(2 * math.pi))
