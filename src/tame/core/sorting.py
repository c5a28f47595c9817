"""Samples of batches that two experts may own, told apart by what the one at rest knows."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tame.core.blueprint import Blueprint
from tame.core.expert import Expert, padded
from tame.core.scene import Scene
from tame.core.waiting import NOBODY, Waiting
from tame.engine.lesson import Lesson
from tame.engine.losses import among_taught, guessing_loss, least_loss, sample_losses

OWN = 0.9  # how much of its own world an expert is taken to know
NEAR, NEWEST = 128, 64  # samples from a batch on, and newest of all, at least
SURE = 8.0  # by how much more likely, as a logarithm, a mixture must be than the owner alone


def losses_of(expert: Expert, lesson: Lesson, *, own: bool = False) -> Tensor:
    """Return the loss of each sample under an expert; with `own`, among labels it was taught."""
    expert.network.grow(lesson.live)
    taught = torch.from_numpy(padded(expert.taught, lesson.live)) if own else None
    return losses_under(expert.network.net, expert.network.plan, lesson, taught)


@torch.no_grad()
def losses_under(
    net: nn.Module, plan: Blueprint, lesson: Lesson, taught: Tensor | None = None
) -> Tensor:
    """Return the loss of each sample on the host, the same on every rank.

    With `taught`, among those labels and the right one alone.
    """
    outputs, form = net.eval()(lesson.ready)[:, : lesson.live], plan.training.output
    if taught is not None:
        outputs = among_taught(outputs, lesson.target, taught.to(outputs.device), form)
    losses = sample_losses(outputs.to(lesson.ready.dtype), lesson.target, form)
    return plan.world.as_first(losses.cpu())


def ask_rival(scene: Scene, batch: Waiting) -> Waiting:
    """Return a batch with what its rival knows of it, if it has one that was not asked yet.

    A rival rests, so its answer stays the same. It knows a sample whose loss is nearer to its own
    level than to guessing.
    """
    asked = batch.rival == NOBODY or batch.known is not None
    if asked or batch.rival not in scene.pool.ids:
        return batch
    rival = scene.pool.open(batch.rival)
    losses = losses_of(rival, scene.lesson(batch.raw, batch.slots))
    return batch._replace(known=losses < halfway(rival))


def halfway(expert: Expert) -> float:
    """Return the loss half of the way from an expert's level to guessing."""
    if expert.mark is not None:
        return (expert.mark.level + expert.mark.guess) / 2
    form = expert.network.plan.training.output
    return (guessing_loss(expert.counts, form) + least_loss(len(expert.counts), form)) / 2


def share_batch(scene: Scene, batch: Waiting, later: Sequence[Waiting]) -> None:
    """Give each sample of a batch to its owner or to the rival, given what came since.

    The owner is not asked. It has learned from these very samples, and where one world gives way
    to another it has come to know both, so that it would claim all of them.
    """
    pair = (batch.owner, batch.rival)
    asked = [one.known for one in later if (one.owner, one.rival) == pair]
    known = torch.cat([found for found in (batch.known, *asked) if found is not None])
    count, newest = len(batch.slots), max(NEWEST, len(known) // 4)
    owns = share_out(known[:count], known[: max(NEAR, count)], known[-newest:])
    for number, rows in ((batch.owner, owns), (batch.rival, ~owns)):
        if rows.any():
            part = scene.lesson(batch.raw[rows.to(batch.raw.device)], batch.slots[rows])
            scene.store(part, number)


def share_out(known: Tensor, near: Tensor, newest: Tensor) -> Tensor:
    """Say which samples of a batch are the owner's, given which ones the rival knows.

    Of its own world the rival knows nine tenths, of the owner's as many as of the `newest` samples,
    which are the purest: by chance, or because the worlds have something in common. If it knows
    clearly more of the batch, or of the samples `near` it, some are its own; how many follows, and
    each sample goes where it more likely came from. Else all of them are the owner's.

    >>> knows, some = torch.arange(16) < 8, torch.arange(64) < 2
    >>> share_out(knows, knows, some).tolist() == (~knows).tolist()
    True
    >>> share_out(knows, knows, knows.repeat(4)).all()
    tensor(True)
    """
    usual = (int(newest.sum()) + 1) / (len(newest) + 2)
    for seen in (known, near):
        rate = min(float(seen.double().mean()), OWN)
        if rate > usual and _differ(seen, newest) > SURE:
            part = (rate - usual) / (OWN - usual)
            familiar, strange = part * OWN, part * (1 - OWN)
            return torch.where(
                known, familiar < (1 - part) * usual, strange < (1 - part) * (1 - usual)
            )
    return torch.ones_like(known)


def _differ(some: Tensor, others: Tensor) -> float:
    """Return how much likelier two rates explain what is known of these than one, as a log."""
    counts = [(int(one.sum()), len(one)) for one in (some, others)]
    both = tuple(map(sum, zip(*counts, strict=True)))
    return sum(_fitted(*one) for one in counts) - _fitted(*both)


def _fitted(hits: int, count: int) -> float:
    """Return the log-likelihood of so many hits at the rate that explains them best."""
    return sum(number * math.log(number / count) for number in (hits, count - hits) if number)
