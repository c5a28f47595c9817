"""The means of remembered samples, one for each expert and label."""

from collections.abc import Sequence

import torch
from torch import Tensor

from tame.core.inputs import InputStep
from tame.core.routers import NearestMean


@torch.no_grad()
def nearest_means(columns: Sequence[Tensor], step: InputStep, owners: Sequence[int]) -> NearestMean:
    """Return the router that goes by the nearest mean of samples (raw, slots, expert)."""
    raw, slots, expert = columns
    flat = step(raw.to(step.mean.device)).flatten(1)
    expert, slots = expert.to(flat.device), slots.to(flat.device)
    pairs, group = torch.stack([expert, slots], 1).unique(dim=0, return_inverse=True)
    sums = flat.new_zeros(len(pairs), flat.shape[1]).index_add_(0, group, flat)
    means = sums / torch.bincount(group, minlength=len(pairs)).unsqueeze(1)
    positions = {owner: position for position, owner in enumerate(owners)}
    owner = torch.tensor([positions[i] for i in pairs[:, 0].tolist()], device=flat.device)
    return NearestMean(means, owner, len(owners))
