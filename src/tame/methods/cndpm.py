"""CN-DPM: a mixture of experts that grows when a short-term memory of surprises is full.

Lee, Ha, Zhang, Kim, "A Neural Dirichlet Process Mixture Model for Task-Free Continual Learning"
(2020). Expert k has a density p(x; k), a variational auto-encoder whose bound stands for log p, a
classifier p(y | x; k) and a count N_k. A sample's scores are

    s_k = log N_k   + log p(y | x; k) + log p(x; k)        for the experts
    s_0 = log alpha + log p(y | x; 0) + log p(x; 0)        for one that was never trained

with the classifier's logits divided by a temperature ("chilled"), so that the density's hundreds
of inputs do not drown it. If s_0 is the largest, the sample goes to a short-term memory. Otherwise
every expert takes a step on its negative log-likelihood times its responsibility, the softmax of s
over the experts, and N_k grows by that. When the memory is full the learner sleeps: a new expert,
which borrows the features of the earlier ones, is trained on the memory alone, then emptied.

    p(y | x) ~ sum over k of N_k p(x; k) p(y | x; k)

It is told nothing. What is left in the memory at the end of the stream is never learned.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from tame.core.accounting import tensor_bytes
from tame.core.inputs import Inputs, InputStep
from tame.core.intake import Intake
from tame.core.prune import count_nonzero
from tame.engine.randomness import derive, restore_torch, torch_generator
from tame.methods.convolutions import Channels, picture
from tame.methods.dreaming import Dreamers, Rates
from tame.methods.method import Method
from tame.methods.mixture import Form, Judged, chilled, judge, of_target
from tame.types import (
    ArrayLike,
    Batch,
    Change,
    Consolidation,
    NetMaker,
    Observation,
    Progress,
    Sizes,
    State,
    When,
    silent,
)

CHUNKS = {"mlp": 512, "conv": 64}  # samples judged at once; a convolution holds more of each


@dataclass(frozen=True)
class CNDPMSettings:
    """What can be set about CN-DPM; the defaults are its authors' for Split MNIST.

    `log_alpha` decides how many experts come to be, and depends on the number of inputs. `width` is
    that of the first expert's layers, `later` that of the others. `form` "conv" is for images: a
    convolutional auto-encoder and a residual classifier, of `channels` in place of `width` and
    `later`. `draws` latents estimate a density, asleep and awake. Bytes are modelled in [0, 1] with
    a sigmoid mean, floats as they are with a linear one (`mean` forces either); `inputs.mean`,
    `std` and `augment` are not applied. The softmax is over all `slots`, of labels seen or not. An
    expert whose share of a batch is not above `least_usage` samples is not stepped. `counting`
    "code" counts samples sent to the memory for the experts too, and starts a new expert one
    higher, as the authors' program does.
    """

    slots: int = 10
    inputs: Inputs = field(default_factory=Inputs)
    log_alpha: float = -400.0
    memory: int = 500
    temperature: float = 0.01
    width: int = 64
    later: int = 16
    latent: int = 16
    draws: int = 16
    form: Literal["mlp", "conv"] = "mlp"
    channels: Channels = field(default_factory=Channels)
    mean: Literal["auto", "sigmoid", "linear"] = "auto"
    least_usage: float = 0.1
    counting: Literal["paper", "code"] = "paper"
    rates: Rates = field(default_factory=Rates)

    def __post_init__(self) -> None:
        for name in ("slots", "memory", "width", "later", "latent", "draws"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is 1 or more, not {getattr(self, name)}")
        if self.temperature <= 0:
            raise ValueError(f"temperature is positive, not {self.temperature}")
        if self.form not in CHUNKS:
            raise ValueError(f"form is 'mlp' or 'conv', not {self.form!r}")


class CNDPM(Method[CNDPMSettings]):
    """Experts recruited by surprise, one density and one classifier each.

    Its experts are layers of its own, made to share features: `net` is not used.

    >>> rates = Rates(density_steps=1, classifier_steps=1)
    >>> learner = CNDPM(settings=CNDPMSettings(memory=4, rates=rates))
    >>> learner.observe(Batch([[0.0, 1.0]] * 3, [5, 5, 6])).expert, learner.expert_ids
    (0, ())
    >>> learner.observe(Batch([[1.0, 1.0]], [6])).expert, learner.expert_ids
    (0, (0,))
    """

    settings_type: ClassVar[type] = CNDPMSettings

    def __init__(
        self,
        net: str | Mapping[str, Any] | NetMaker = "mlp",
        seed: int = 0,
        settings: CNDPMSettings | None = None,
        device: str = "cpu",
    ) -> None:
        super().__init__(net, seed, settings, device)

    def _set_up(self) -> None:
        self._intake = Intake(self.settings.inputs, self.device)
        self._mixture: Dreamers | None = None
        self._memory: list[tuple[Tensor, Tensor]] = []
        self._steps = 0
        self._noise = torch.Generator(self.device).manual_seed(derive(self.seed, "cndpm", "noise"))

    def observe(self, batch: Batch) -> Observation:
        raw, y = self._intake.check(batch)
        step = self._intake.begin(raw)
        self._form(step)  # refuses what convolutional experts cannot see
        unknown = self._intake.labels.unknown(y)
        self._intake.keep(raw, step, unknown)
        self._make_room()
        x, slots = self._scaled(raw), self._intake.labels.slots(y)
        loss, expert, surprising = self._assign(x, slots.to(self.device))
        self._store(raw, slots, surprising)
        change = Change.NONE
        if sum(len(slots) for _, slots in self._memory) >= self.settings.memory:
            self._sleep()
            expert = len(self.built.experts) - 1
            change = Change.RECRUITED if expert else Change.NONE  # the first changes nothing
        self._steps += 1
        return Observation(self._steps - 1, loss, math.nan, math.nan, expert, change)

    def consolidate(self, progress: Progress = silent) -> Consolidation:
        """Do nothing: what the short-term memory holds is not learned until it is full."""
        progress("nothing to consolidate", 1, 1)
        return Consolidation(experts=len(self.expert_ids), sizes=self.sizes())

    def predict(self, x: ArrayLike, when: When = "ever") -> Tensor:  # noqa: ARG002 (all experts)
        """Return labels; while there is no expert, the commonest in the short-term memory."""
        x = self._intake.check_inputs(x)
        if not self.expert_ids or not len(x):
            return torch.full((len(x),), self._commonest(), device=self.device)
        return self._labels([(e[:, :, None] + p).logsumexp(1) for e, p in self._answers(x)])

    @property
    def expert_ids(self) -> tuple[int, ...]:
        """The experts there are, oldest first."""
        return () if self._mixture is None else tuple(range(len(self._mixture.experts)))

    def route(self, x: ArrayLike) -> Tensor:
        """Return the expert whose count and density find each sample likeliest."""
        answers = self._answers(self._intake.check_inputs(x))
        return torch.cat([evidence.argmax(1) for evidence, _ in answers])

    def predict_by(self, x: ArrayLike, expert: int) -> Tensor:
        """Return the labels of one expert's classifier."""
        answers = self._answers(self._intake.check_inputs(x))
        return self._labels([labels[:, expert] for _, labels in answers])

    def sizes(self) -> Sizes:
        if self._mixture is None:
            return Sizes()
        experts = self._mixture.experts
        dense = sum(p.numel() for expert in experts for p in expert.parameters())
        nonzero = sum(count_nonzero(expert) for expert in experts)
        kept = self._mixture.state_dict()
        model, rest = tensor_bytes(kept.pop("experts")), tensor_bytes(kept)
        held = tensor_bytes(self._memory)
        count = sum(len(slots) for _, slots in self._memory)
        return Sizes(nonzero, dense, dense, model, held, rest, count)

    def state_dict(self) -> State:
        return {
            "steps": self._steps,
            "intake": self._intake.state_dict(),
            "mixture": None if self._mixture is None else self._mixture.state_dict(),
            "memory": [torch.cat(column) for column in zip(*self._memory, strict=True)],
            "noise": self._noise.get_state(),
        }

    def load_state_dict(self, state: State) -> None:
        self._steps = state["steps"]
        self._intake.load_state_dict(state["intake"])
        restore_torch(self._noise, state["noise"])
        memory = [column.clone() for column in state["memory"]]
        self._memory = [(memory[0], memory[1])] if memory else []
        self._mixture = None
        if state["mixture"] is not None:
            self._mixture = self._begin()
            self._mixture.load_state_dict(state["mixture"])

    @property
    def built(self) -> Dreamers:
        """The mixture, once a batch was seen."""
        if self._mixture is None:
            raise RuntimeError("there is a mixture only after the first batch")
        return self._mixture

    def _begin(self) -> Dreamers:
        form = self._form(self._intake.ready)
        return Dreamers(form, self.settings.rates, self.seed, self.device)

    def _form(self, step: InputStep) -> Form:
        settings, shape = self.settings, step.output_shape
        sigmoid = step.is_bytes if settings.mean == "auto" else settings.mean == "sigmoid"
        seen = picture(shape, settings.channels) if settings.form == "conv" else None
        sizes = (settings.width, settings.later, settings.latent, settings.draws)
        return Form(math.prod(shape), *sizes, sigmoid, seen)

    def _make_room(self) -> None:
        self._mixture = self._mixture or self._begin()
        slots = self.settings.slots
        while slots < len(self._intake.labels):
            slots *= 2
        self._mixture.make_room(slots)

    def _scaled(self, raw: Tensor) -> Tensor:
        x = self._intake.ready.scale(raw.to(self.device))
        return x if self.settings.form == "conv" else x.flatten(1)

    def _assign(self, x: Tensor, target: Tensor) -> tuple[float, int, Tensor]:
        """Train the experts; return their loss, the most used one, and which samples surprise."""
        mixture, settings = self.built, self.settings
        if not mixture.experts:
            return math.nan, 0, torch.ones(len(x), dtype=torch.bool)
        noise = self._drawn(len(x))
        judged = mixture.judge(x, noise)
        with torch.no_grad():
            fallow = judge([mixture.fallow], x, noise)
            new = settings.log_alpha + self._likelihood(fallow, target)
            scores = self._prior() + self._likelihood(judged, target)
            surprising = new[:, 0] >= scores.max(1).values
            weights = scores.softmax(1)
            taught = weights * ~surprising[:, None]
            losses = -judged.evidence - of_target(judged.labels, target)
            loss = (weights * losses).sum(1).mean().item()
            used = (weights if settings.counting == "code" else taught).sum(0).tolist()
        mixture.counts = [count + more for count, more in zip(mixture.counts, used, strict=True)]
        stepped = [share if share > settings.least_usage else 0.0 for share in used]
        mixture.learn(judged, target, taught, stepped)
        return loss, used.index(max(used)), surprising.cpu()

    def _likelihood(self, judged: Judged, target: Tensor) -> Tensor:
        return judged.evidence + chilled(judged.labels, target, self.settings.temperature)

    def _prior(self) -> Tensor:
        return torch.tensor(self.built.counts, device=self.device).clamp(min=1e-7).log()

    def _drawn(self, count: int) -> Tensor:
        shape = (count, self.settings.draws, self.settings.latent)
        return torch.empty(shape, device=self.device).normal_(generator=self._noise)

    def _store(self, raw: Tensor, slots: Tensor, chosen: Tensor) -> None:
        if bool(chosen.any()):
            self._memory.append((raw[chosen.to(raw.device)], slots[chosen]))

    def _sleep(self) -> None:
        raw, slots = (torch.cat(column) for column in zip(*self._memory, strict=True))
        extra = 1.0 if self.settings.counting == "code" else 0.0
        self.built.sleep(self._scaled(raw), slots.to(self.device), len(slots) + extra)
        self._memory = []

    @torch.no_grad()
    def _answers(self, x: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return log N_k p(x; k) and log p(y | x; k), by draws that are always the same."""
        fixed = torch_generator(derive(self.built.seed, "cndpm", "fixed"))
        shape = (1, self.settings.draws, self.settings.latent)
        noise, prior = torch.randn(shape, generator=fixed).to(self.device), self._prior()
        parts = [
            self.built.judge(self._scaled(part), noise)
            for part in x.split(CHUNKS[self.settings.form])
        ]
        live = len(self._intake.labels)
        return [(prior + part.evidence, part.labels[:, :, :live]) for part in parts]

    def _labels(self, scores: list[Tensor]) -> Tensor:
        best = torch.cat([score.argmax(1) for score in scores])
        return self._intake.labels.labels().to(self.device)[best]

    def _commonest(self) -> int:
        if not self._memory:
            return -1
        slots = torch.cat([slots for _, slots in self._memory])
        return int(self._intake.labels.labels()[slots.bincount().argmax()])
