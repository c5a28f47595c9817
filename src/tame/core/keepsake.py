"""A pruned expert as it was when it came back, in case it adapts for the worse."""

import torch
from torch import nn

from tame.core.consolidate import split_memory
from tame.core.expert import Expert
from tame.core.scene import Scene
from tame.types import State


def undo_if_worse(scene: Scene, expert: Expert, before: State) -> bool:
    """Put an expert back if it now knows fewer of its held-back samples than it did before.

    A pruned network has little room; what it learns of its latest data it may pay for with the
    rest.
    """
    if not len(expert.memory) or before["network"]["slots"] != expert.network.slots:
        return False
    plan = expert.network.plan
    old = plan.build(expert.network.slots, "frame")
    old.load_state_dict(before["network"]["net"])
    right = torch.tensor([_right(scene, expert, net) for net in (old, expert.network.net)])
    was, now = plan.world.as_first(right).tolist()
    if now >= was:
        return False
    expert.resume(before)
    return True


@torch.no_grad()
def _right(scene: Scene, expert: Expert, net: nn.Module) -> int:
    _, (raw, slots) = split_memory(expert)
    answers = net.eval()(scene.inputs(raw))[:, : scene.live].argmax(1)
    return int((answers == slots).sum())
