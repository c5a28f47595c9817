"""An expert as it was when it came back, in case it learns at the cost of what it knew."""

import torch
from torch import Tensor, nn

from tame.core.consolidate import split_memory
from tame.core.expert import Expert
from tame.core.scene import Scene
from tame.types import State

SHOWN = 256
DEVIATIONS = 2.0


def has_lost(scene: Scene, expert: Expert, before: State) -> bool:
    """Say whether an expert knows its own samples less well than it did before.

    They are a uniform sample of all it ever learned. A pruned network has little room, and what it
    learns of its latest data it may pay for with the rest: it must not know fewer of those held
    back. Another one may come to know some and forget others; it has lost if those it forgot
    outnumber those it learned by more than two deviations of a fair coin's tosses. So it does when
    a change goes unnoticed, as where its answers are right in another world too for a while.
    """
    if not len(expert.memory) or before["network"]["slots"] != expert.network.slots:
        return False
    plan = expert.network.plan
    old = plan.build(expert.network.slots, "frame")
    old.load_state_dict(before["network"]["net"])
    raw, slots = _samples(expert)
    was, now = (_right(scene, net, raw, slots) for net in (old, expert.network.net))
    counts = torch.stack([(was & ~now).sum(), (now & ~was).sum()]).cpu()
    forgot, learned = plan.world.as_first(counts).tolist()
    if expert.is_pruned:
        return bool(forgot > learned)
    return bool(forgot - learned > DEVIATIONS * (forgot + learned) ** 0.5)


def _samples(expert: Expert) -> tuple[Tensor, Tensor]:
    """Return a uniform sample of what an expert learned; a pruned one was retrained on the rest."""
    if expert.is_pruned:
        return split_memory(expert)[1]
    raw, slots = (column[:SHOWN] for column in expert.memory.columns())
    device = expert.network.plan.device
    return raw.to(device), slots.to(device)


@torch.no_grad()
def _right(scene: Scene, net: nn.Module, raw: Tensor, slots: Tensor) -> Tensor:
    answers: Tensor = net.eval()(scene.inputs(raw))[:, : scene.live].argmax(1)
    return answers == slots
