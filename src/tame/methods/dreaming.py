"""The experts of CN-DPM in training: awake on the stream, asleep on what surprised them."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tame.engine.fitting import set_rate
from tame.engine.graphs import everything, open_state, replayed
from tame.engine.randomness import derive, seeded, torch_generator
from tame.methods.mixture import Expert, Form, Judged, judge, lend, of_target
from tame.methods.optimisers import adam, remembered, remind
from tame.types import State


@dataclass(frozen=True)
class Rates:
    """How experts are trained: Adam's rates, how long asleep, penalties and clipping.

    A new expert learns its density for `density_steps` and its classifier for `classifier_steps`
    on batches of `batch`; then its rates are multiplied by `after_sleep`. The loss asleep is a mean
    plus `decay` times the sum of squared weights, awake a sum without it. No entry of a gradient
    exceeds `clip`.
    """

    density: float = 4e-4
    classifier: float = 1e-4
    density_steps: int = 8000
    classifier_steps: int = 2000
    batch: int = 50
    decay: float = 1e-5
    clip: float = 0.5
    after_sleep: float = 1.0


class Dreamers:
    """All experts of one learner, their optimisers and counts, and the untrained placeholder."""

    def __init__(self, form: Form, rates: Rates, seed: int, device: torch.device) -> None:
        self.form = form
        self.rates = rates
        self.seed = seed
        self.device = device
        self.experts: list[Expert] = []
        self.counts: list[float] = []
        self._optimisers: list[tuple[torch.optim.Optimizer, torch.optim.Optimizer]] = []
        self.slots = 0
        self._fallow: Expert | None = None

    def make_room(self, slots: int) -> None:
        """Have so many outputs in every classifier."""
        if slots <= self.slots:
            return
        self.slots = slots
        with seeded(derive(self.seed, "cndpm", "grown", slots), self.device):
            for number, expert in enumerate(self.experts):
                expert.grow(slots)
                old = self._optimisers[number][1]
                new = adam(expert.classifier.parameters(), old.param_groups[0]["lr"])
                remind(new, remembered(old))
                self._optimisers[number] = (self._optimisers[number][0], new)
        self._fallow = None

    @property
    def fallow(self) -> Expert:
        """The placeholder for experts to come: drawn from the seed, never trained."""
        if self._fallow is None:
            with seeded(derive(self.seed, "cndpm", "fallow", self.slots), self.device):
                self._fallow = Expert(self.form, 0, self.slots).to(self.device)
        return self._fallow

    def judge(self, x: Tensor, noise: Tensor) -> Judged:
        """Ask every trained expert about samples."""
        return judge(self.experts, x, noise)

    def learn(self, judged: Judged, target: Tensor, weights: Tensor, usage: list[float]) -> None:
        """Step the experts with some usage on the weighted sum of their losses."""
        losses = -judged.evidence - of_target(judged.labels, target)
        stepped = [number for number, used in enumerate(usage) if used]
        own = [list(self.experts[number].parameters()) for number in stepped]
        for pair in self._optimisers:
            for optimiser in pair:
                optimiser.zero_grad(set_to_none=True)
        if stepped:  # no gradient is worked out for the others
            (weights * losses).sum().backward(inputs=list(itertools.chain(*own)))
        for number, parameters in zip(stepped, own, strict=True):
            nn.utils.clip_grad_value_(parameters, self.rates.clip)
            for optimiser in self._optimisers[number]:
                optimiser.step()

    def sleep(self, x: Tensor, target: Tensor, count: float) -> None:
        """Add an expert and train it on the samples of the short-term memory."""
        rates = self.rates
        path = (self.seed, "cndpm", "sleep", len(self.experts))
        self._add(rates.density, rates.classifier)
        rows = torch_generator(derive(*path, "rows"))
        noise = torch.Generator(self.device).manual_seed(derive(*path, "noise"))
        self._learn_density(x, rows, noise)
        self._learn_labels(x, target, rows)
        first, second = self._optimisers[-1]
        set_rate(first, rates.density * rates.after_sleep)
        set_rate(second, rates.classifier * rates.after_sleep)
        self.counts.append(count)

    def _learn_density(self, x: Tensor, rows: torch.Generator, noise: torch.Generator) -> None:
        *earlier, expert = self.experts
        lent = lend((one.density.encoder for one in earlier), x)
        net, optimiser = expert.density, self._optimisers[-1][0]
        chosen = torch.zeros(self.rates.batch, dtype=torch.int64, device=self.device)
        drawn = torch.zeros(len(chosen), self.form.draws, self.form.latent, device=self.device)

        def work() -> None:
            bound, _ = net(x[chosen], drawn, tuple(part[chosen] for part in lent))
            self._step(net, optimiser, -bound.mean())

        step = self._recorded(work, net, optimiser)
        for some in self._draw(self.rates.density_steps, len(x), rows):
            chosen.copy_(some)
            drawn.normal_(generator=noise)
            step()

    def _learn_labels(self, x: Tensor, target: Tensor, rows: torch.Generator) -> None:
        *earlier, expert = self.experts
        lent = lend((one.classifier for one in earlier), x)
        net, optimiser = expert.classifier, self._optimisers[-1][1]
        chosen = torch.zeros(self.rates.batch, dtype=torch.int64, device=self.device)

        def work() -> None:
            outputs, _ = net(x[chosen], tuple(part[chosen] for part in lent))
            self._step(net, optimiser, F.cross_entropy(outputs, target[chosen]))

        step = self._recorded(work, net, optimiser)
        for some in self._draw(self.rates.classifier_steps, len(x), rows):
            chosen.copy_(some)
            step()

    def state_dict(self) -> State:
        return {
            "seed": self.seed,
            "slots": self.slots,
            "counts": list(self.counts),
            "experts": [dict(expert.state_dict()) for expert in self.experts],
            "optimisers": [[remembered(one) for one in pair] for pair in self._optimisers],
        }

    def load_state_dict(self, state: State) -> None:
        self.experts, self._optimisers, self._fallow = [], [], None
        self.seed = state["seed"]  # the placeholder is drawn from it
        self.slots = state["slots"]
        self.counts = list(state["counts"])
        rates, decayed = self.rates, self.rates.after_sleep
        for weights, memory in zip(state["experts"], state["optimisers"], strict=True):
            expert = self._add(rates.density * decayed, rates.classifier * decayed)
            expert.load_state_dict(weights)
            for optimiser, kept in zip(self._optimisers[-1], memory, strict=True):
                remind(optimiser, kept)

    def _add(self, density: float, classifier: float) -> Expert:
        number = len(self.experts)
        with seeded(derive(self.seed, "cndpm", "expert", number), self.device):
            expert = Expert(self.form, number, self.slots).to(self.device)
        own = (expert.density, density), (expert.classifier, classifier)
        first, second = (adam(net.parameters(), rate) for net, rate in own)
        self.experts.append(expert)
        self._optimisers.append((first, second))
        return expert

    def _draw(self, steps: int, count: int, rows: torch.Generator) -> Tensor:
        """Return the rows of every step's batch, drawn with replacement on the host."""
        drawn = torch.randint(count, (steps, self.rates.batch), generator=rows)
        return drawn.to(self.device)

    def _recorded(
        self, work: Callable[[], None], net: nn.Module, optimiser: torch.optim.Optimizer
    ) -> Callable[[], None]:
        """Return what does work, on a GPU recorded: its launches cost more than the work."""
        if self.device.type == "cuda":
            open_state(optimiser)
        return replayed(work, everything(net, optimiser), self.device)

    def _step(self, net: nn.Module, optimiser: torch.optim.Optimizer, loss: Tensor) -> None:
        decay = sum(parameter.square().sum() for parameter in net.parameters())
        optimiser.zero_grad(set_to_none=True)
        (loss + self.rates.decay * decay).backward()
        nn.utils.clip_grad_value_(net.parameters(), self.rates.clip)
        optimiser.step()
