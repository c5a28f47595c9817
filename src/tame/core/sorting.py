"""Samples of a batch that two experts may own, told apart by how well each knows them."""

import torch
from torch import Tensor, nn

from tame.core.expert import Expert, padded
from tame.core.network import Blueprint
from tame.core.scene import Scene
from tame.core.waiting import Waiting
from tame.engine.lesson import Lesson
from tame.engine.losses import among_taught, sample_losses

ROUNDS = 20
FAITH = 2.0  # samples that are counted for the owner before any is looked at
MIXED = 2.0  # by how much more likely, as a logarithm, a mixture must be than the owner alone


def share_out(own: Tensor, rival: Tensor) -> Tensor:
    """Say which samples are the owner's, given each one's loss under owner and rival.

    A loss is a negative log-likelihood, so a batch is a mixture of two. Its weights are found by
    expectation-maximisation, and each sample goes where it more likely came from. In a batch that
    is all the owner's, the rival gets nothing for a label it guessed right by chance: if a mixture
    explains the batch hardly better, all of it is the owner's.

    >>> share_out(torch.tensor([0.1, 4.0, 3.0, 5.0]), torch.tensor([5.0, 0.1, 0.1, 0.1])).tolist()
    [True, False, False, False]
    >>> share_out(torch.tensor([1.0] * 8), torch.tensor([5.0] * 7 + [0.1])).tolist()
    [True, True, True, True, True, True, True, True]
    """
    odds = (rival - own).double()  # log-likelihood ratio in favour of the owner
    weight = torch.tensor(0.5, dtype=torch.float64)
    chance = torch.full_like(odds, 0.5)
    for _ in range(ROUNDS):
        chance = torch.sigmoid(odds + weight.logit())
        weight = (chance.sum() + FAITH) / (len(odds) + FAITH)
        weight = weight.clamp(max=1 - 1e-6)
    gain = torch.logaddexp(weight.log(), (1 - weight).log() - odds).sum()
    return (chance >= 0.5) | (gain < MIXED)  # noqa: PLR2004 (the likelier of two)


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


def share_batch(scene: Scene, batch: Waiting) -> None:
    """Give each sample of a batch to its owner or to the rival, whoever knows it better."""
    lesson, pool = scene.lesson(batch.raw, batch.slots), scene.pool
    own, rival = (losses_of(pool.open(number), lesson) for number in (batch.owner, batch.rival))
    owns = share_out(own, rival)
    for number, rows in ((batch.owner, owns), (batch.rival, ~owns)):
        if rows.any():
            part = scene.lesson(batch.raw[rows.to(batch.raw.device)], batch.slots[rows])
            scene.store(part, number)
