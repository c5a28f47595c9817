"""Consolidation of experts: prune copies of them, and tell detectors what to expect."""

import copy
import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from tame.core.expert import Compact, Expert
from tame.core.inputs import InputStep
from tame.core.prune import Pruner
from tame.core.trial import is_guess
from tame.engine.fitting import Job, Samples
from tame.engine.losses import guessing_loss, read, sample_losses
from tame.engine.randomness import derive, numpy_generator, torch_generator
from tame.types import Progress, Reading, silent

READINGS = 100
REPEATS = 3


def compact(
    experts: Sequence[Expert],
    pruner: Pruner,
    step: InputStep,
    live: int,
    progress: Progress = silent,
) -> dict[int, int]:
    """Give every expert that needs one an up-to-date pruned copy; return the attempts it took.

    A retraining that ends no better than guessing is repeated at half the rate; a network that
    pruning has ruined is pruned less.
    """
    waiting = [(expert, pruner) for expert in experts if is_due(expert)]
    attempts = dict.fromkeys((expert.id for expert, _ in waiting), 0)
    while waiting:
        attempt = waiting[0][1]
        group = [expert for expert, wanted in waiting if wanted == attempt]
        waiting = [(expert, wanted) for expert, wanted in waiting if wanted != attempt]
        _prune(group, attempt, step, live, progress)
        for expert in group:
            attempts[expert.id] += 1
            again = None
            if _is_guessing(expert, step, live) and attempts[expert.id] <= REPEATS:
                again = attempt.slower()
            elif _is_ruined(expert, pruner, step, live):
                again = attempt.gentler()
            if again is not None:
                waiting.append((expert, again))
    return attempts


def is_due(expert: Expert) -> bool:
    """Say whether an expert has learned since it was last pruned."""
    network = expert.network
    fresh = expert.compact is not None and expert.compact.steps == network.steps
    return not expert.is_settled and not fresh and len(expert.memory) > 0


def _prune(
    experts: Sequence[Expert], pruner: Pruner, step: InputStep, live: int, progress: Progress
) -> None:
    jobs = []
    for expert in experts:
        network = expert.network
        (raw, slots), _ = split_memory(expert)
        seed = derive(network.plan.seed, "prune", expert.id, network.steps)
        samples = Samples(raw, slots, step.prepare, live).to(network.plan.device)
        net, masks = copy.deepcopy(network.mature), dict(network.masks)
        jobs.append(Job(net, samples, torch_generator(seed), masks))
    output = experts[0].network.plan.training.output
    names = "expert" if len(experts) == 1 else f"{len(experts)} experts"
    found = pruner.prune(
        jobs, output, lambda _, done, total: progress(f"pruning {names}", done, total)
    )
    for expert, job, masks in zip(experts, jobs, found, strict=True):
        network = expert.network
        expert.compact = Compact(job.net.eval(), masks, network.slots, network.steps)


def _is_guessing(expert: Expert, step: InputStep, live: int) -> bool:
    """Say whether the pruned copy is no better than a constant answer (one label: never)."""
    several = int((expert.counts > 0).sum()) > 1
    loss = float(_held_losses(expert, step, live).mean())
    return several and is_guess(loss, expert.counts, expert.network.plan.training.output)


@torch.no_grad()
def _is_ruined(expert: Expert, pruner: Pruner, step: InputStep, live: int) -> bool:
    """Say whether pruning cost more right answers than the tolerance and chance explain."""
    _, (raw, slots) = split_memory(expert)
    ready = step(raw)
    nets = (expert.network.mature.eval(), expert.answers.eval())
    dense, pruned = (net(ready)[:, :live].argmax(1) == slots for net in nets)
    lost, won = int((dense & ~pruned).sum()), int((pruned & ~dense).sum())
    return lost - won > pruner.tolerance * len(slots) + math.sqrt(lost + won)


def settle(expert: Expert, step: InputStep, live: int) -> None:
    """Replace an inactive expert by its pruned copy, its detector re-based on held-back samples.

    A few held-back samples may all be easy, and then promise more than the expert keeps. So one is
    added whose loss is that of a guess, as in Laplace's rule of succession.
    """
    pruned = expert.compact
    if pruned is None:
        return
    losses = _held_losses(expert, step, live)
    expert.network.adopt(pruned.net, dict(pruned.masks), pruned.slots)
    expert.compact = None
    expert.settled = expert.network.steps
    guess = guessing_loss(expert.counts, expert.network.plan.training.output)
    losses = torch.cat([losses, losses.new_tensor([guess])])
    seed = derive(expert.network.plan.seed, "rebase", expert.id, expert.network.steps)
    readings = bootstrap(losses, expert.batch, seed)
    expert.detector.rebase(readings)
    if expert.mark is not None:
        expert.mark = expert.mark.moved(readings)


@torch.no_grad()
def _held_losses(expert: Expert, step: InputStep, live: int) -> Tensor:
    _, (raw, slots) = split_memory(expert)
    outputs = expert.answers.eval()(step(raw))[:, :live]
    return sample_losses(outputs, slots, expert.network.plan.training.output)


def split_memory(expert: Expert) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Divide an expert's samples into those to retrain on and a share held back.

    Those held back have the largest keys, so they are uniform and always the same. A sample that
    repeats one of them (the stream may show it twice) is left out of the retraining too. With no
    share held back, both are all of them.
    """
    device = expert.network.plan.device
    raw, slots = (column.to(device) for column in expert.memory.columns())
    slots = slots.long()
    if not expert.held_back:
        return (raw, slots), (raw, slots)
    held = max(1, int(len(raw) * expert.held_back))
    flat = raw.flatten(1).contiguous().view(torch.uint8).cpu().numpy()
    rows = flat.view(f"V{flat.shape[1]}").ravel()
    keep = torch.from_numpy(~np.isin(rows, rows[:held])).to(raw.device)
    if not keep.any():
        keep = torch.ones_like(keep)
    return (raw[keep], slots[keep]), (raw[:held], slots[:held])


def bootstrap(losses: Tensor, size: int, seed: int) -> list[Reading]:
    """Return readings of batches of `size` samples drawn from these losses with replacement."""
    chosen = numpy_generator(seed).integers(0, len(losses), size=(READINGS, size))
    drawn = losses.cpu()[torch.from_numpy(chosen)]
    return [read(row) for row in drawn]
