"""Training a network on samples kept in memory: selectors, pruned experts, joint references."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tame.engine.eager import half, wants_half
from tame.engine.graphs import everything, open_state, practise, record, unchanged
from tame.engine.halfway import Halfway, ended, put_back
from tame.engine.journal import Note, next_note
from tame.engine.losses import sample_losses
from tame.engine.patches import patched
from tame.engine.randomness import PrivateDraws
from tame.engine.recipe import Recipe
from tame.types import Progress, silent

Masks = Mapping[str, Tensor]
Draw = tuple[float, Tensor, Tensor]
Between = Callable[[Sequence["Job"], float], None]
MANY = 32
FEW = 4
OFTEN = 5  # rounds of batches


@dataclass(frozen=True)
class Samples:
    """Raw inputs, their targets, how inputs are made ready, and how many outputs are live."""

    x: Tensor
    y: Tensor
    prepare: Callable[[Tensor, Any, Tensor | None], Tensor]
    live: int

    def to(self, device: torch.device) -> "Samples":
        """Return the same samples on a device."""
        return replace(self, x=self.x.to(device), y=self.y.to(device))


def make_optimiser(net: nn.Module, recipe: Any) -> torch.optim.Optimizer:
    """Return the optimiser that settings with `optimiser`, `rate`, ... ask for."""
    parameters = list(net.parameters())
    if recipe.optimiser == "adam":
        return torch.optim.AdamW(
            parameters,
            lr=recipe.rate,
            weight_decay=recipe.weight_decay,
            fused=True,
            capturable=bool(parameters) and parameters[0].is_cuda,
        )
    return torch.optim.SGD(
        parameters,
        lr=recipe.rate,
        momentum=recipe.momentum,
        nesterov=recipe.nesterov and recipe.momentum > 0,
        weight_decay=recipe.weight_decay,
        fused=True,
    )


def set_rate(optimiser: torch.optim.Optimizer, rate: float | Tensor) -> None:
    """Change the learning rate of every group."""
    for group in optimiser.param_groups:
        group["lr"] = rate


@torch.no_grad()
def apply_masks(net: nn.Module, masks: Masks) -> None:
    """Zero every pruned weight in place."""
    parameters = dict(net.named_parameters())
    for name, mask in masks.items():
        parameters[name].mul_(mask)


class Teacher(NamedTuple):
    """A network whose answers are learned beside the labels: what share of the loss, how soft."""

    net: nn.Module
    share: float
    temperature: float

    def mixed(self, losses: Tensor, live: Tensor, x: Tensor) -> Tensor:
        """Return each sample's loss with its share of the divergence from the teacher's answer."""
        with torch.no_grad():
            soft = (self.net(x)[:, : live.shape[1]] / self.temperature).log_softmax(1)
        own = (live / self.temperature).log_softmax(1)
        away = F.kl_div(own, soft, reduction="none", log_target=True).sum(1)
        return (1 - self.share) * losses + self.share * self.temperature**2 * away


class Job(NamedTuple):
    """A network to train on samples, inside its masks if it has any, and its own generator."""

    net: nn.Module
    samples: Samples
    generator: torch.Generator
    masks: Masks = MappingProxyType({})
    teacher: Teacher | None = None


def fit(
    jobs: Sequence[Job], recipe: Recipe, progress: Progress = silent, between: Between | None = None
) -> None:
    """Train networks, each on its own samples; what one learns does not depend on the others.

    `between` is called now and then with some of the jobs and the share of their training that is
    done; it may change masks in place.

    A last batch of one sample is left out of its epoch: batch norm cannot train on it. On a GPU
    the networks train side by side, their steps recorded as branches of one CUDA graph.
    """
    if jobs and jobs[0].samples.x.is_cuda:
        at_once = FEW if wants_half(jobs[0].net, recipe.precision) else MANY
        groups = [jobs[begin : begin + at_once] for begin in range(0, len(jobs), at_once)]
    else:
        groups = [[job] for job in jobs]
    for number, group in enumerate(groups):
        _fit(group, recipe, _shifted(progress, number, len(groups)), between)


def _fit(jobs: Sequence[Job], recipe: Recipe, progress: Progress, between: Between | None) -> None:
    note = next_note()
    if note.is_done:
        put_back(jobs, note.found)
    else:
        _train(jobs, recipe, progress, between, note)
        note.finished(lambda: ended(jobs))
    for job in jobs:
        job.net.eval()


def _train(
    jobs: Sequence[Job], recipe: Recipe, progress: Progress, between: Between | None, note: Note
) -> None:
    device = jobs[0].samples.x.device
    with PrivateDraws(int(jobs[0].generator.initial_seed()), device):
        steps = [_Step(job, recipe) for job in jobs]
        together = _Branches(steps) if device.type == "cuda" else None
        place = Halfway(note, jobs, [step.optimiser for step in steps], device)
        for epoch in range(place.epoch, recipe.epochs):
            place.begin(epoch)
            rounds = list(zip_longest(*(step.draw(epoch) for step in steps)))
            for number in range(place.round, len(rounds)):
                place.reach(number)
                if between is not None and number % OFTEN == 0:
                    between(jobs, (epoch + number / len(rounds)) / recipe.epochs)
                if together is not None:
                    together(rounds[number])
                else:
                    steps[0](*rounds[number][0])
            progress("", epoch + 1, recipe.epochs)


def _shifted(progress: Progress, number: int, count: int) -> Progress:
    """Return a progress that counts one part of several as part of the whole."""

    def say(what: str, done: int, total: int) -> None:
        progress(what, number * total + done, count * total)

    return say


class _Step:
    """Steps of training on some rows of a job's samples."""

    def __init__(self, job: Job, recipe: Recipe) -> None:
        self.job = job
        self.recipe = recipe
        self.optimiser = make_optimiser(job.net, recipe)
        self._half = wants_half(job.net, recipe.precision)
        job.net.train()

    def draw(self, epoch: int) -> list[Draw]:
        """Draw one pass over the samples: the rate, the rows and the odds of each batch."""
        recipe, count = self.recipe, len(self.job.samples.x)
        generator = self.job.generator
        per_epoch = math.ceil(count / recipe.batch)
        rows = torch.randperm(count, generator=generator)
        parts = [part for part in rows.split(recipe.batch) if not len(part) == 1 < count]
        total = recipe.epochs * per_epoch
        rates = [recipe.rate_at((epoch * per_epoch + n) / total) for n in range(len(parts))]
        odds = [torch.rand(sum(recipe.numbers), len(part), generator=generator) for part in parts]
        return list(zip(rates, parts, odds, strict=True))

    def __call__(self, rate: float, chosen: Tensor, odds: Tensor) -> None:
        set_rate(self.optimiser, rate)
        self.run(chosen, odds)

    def run(self, chosen: Tensor, odds: Tensor) -> None:
        """Train on these rows at the rate that is set."""
        samples, recipe = self.job.samples, self.recipe
        changing, patching = odds.split(recipe.numbers)
        x = samples.prepare(samples.x[chosen], recipe.augment, changing)
        own: Tensor | None = None
        if recipe.cutmix:
            x, own = patched(x, patching, recipe.cutmix)
        with half(x.device, enabled=self._half):
            outputs = self.job.net(x)
        live = outputs[:, : samples.live].to(x.dtype)
        target = samples.y[chosen]
        losses = sample_losses(live, target, recipe.output)
        if own is not None:
            losses = own * losses + (1 - own) * sample_losses(live, target.roll(1), recipe.output)
        if self.job.teacher is not None:
            losses = self.job.teacher.mixed(losses, live, x)
        self.optimiser.zero_grad(set_to_none=True)
        losses.mean().backward()
        self.optimiser.step()
        if self.job.masks:
            apply_masks(self.job.net, self.job.masks)


class _Branches:
    """One round of batches, a branch for each network, recorded once for each set of sizes."""

    def __init__(self, steps: Sequence[_Step]) -> None:
        recipe, device = steps[0].recipe, steps[0].job.samples.x.device
        self._steps = steps
        self._device = device
        self._rates = torch.zeros(len(steps), device=device)
        self._rows = torch.zeros(len(steps), recipe.batch, dtype=torch.int64, device=device)
        self._odds = torch.rand(len(steps), sum(recipe.numbers), recipe.batch, device=device)
        places = (self._rates, self._rows, self._odds)
        self._stages = [torch.zeros_like(place, device="cpu").pin_memory() for place in places]
        self._sent = torch.cuda.Event()
        self._graphs: dict[tuple[int, ...], torch.cuda.CUDAGraph] = {}
        for step, rate in zip(steps, self._rates, strict=True):
            open_state(step.optimiser)
            set_rate(step.optimiser, rate)

    def __call__(self, lessons: Sequence[Draw | None]) -> None:
        sizes = tuple(0 if lesson is None else len(lesson[1]) for lesson in lessons)
        self._send(lessons)
        if sizes not in self._graphs:
            self._graphs[sizes] = self._record(sizes)
        self._graphs[sizes].replay()

    def _send(self, lessons: Sequence[Draw | None]) -> None:
        rates, rows, odds = self._stages
        self._sent.synchronize()
        for place, lesson in enumerate(lessons):
            if lesson is not None:
                size = len(lesson[1])
                rates[place] = lesson[0]
                rows[place, :size] = lesson[1]
                odds[place, :, :size] = lesson[2]
        self._rates.copy_(rates, non_blocking=True)
        self._rows.copy_(rows, non_blocking=True)
        self._odds.copy_(odds, non_blocking=True)
        self._sent.record()

    def _record(self, sizes: tuple[int, ...]) -> torch.cuda.CUDAGraph:
        branches = [(place, size, torch.cuda.Stream()) for place, size in enumerate(sizes) if size]

        def work() -> None:
            trunk = torch.cuda.current_stream()
            for place, size, stream in branches:
                stream.wait_stream(trunk)
                with torch.cuda.stream(stream):
                    rows, odds = self._rows[place, :size], self._odds[place, :, :size]
                    self._steps[place].run(rows, odds)
            for _, _, stream in branches:
                trunk.wait_stream(stream)

        changed = [t for s in self._steps for t in everything(s.job.net, s.optimiser)]
        with unchanged(changed, self._device):
            practise(work)
            for step in self._steps:
                step.optimiser.zero_grad(set_to_none=True)
            return record(work, None)
