"""A learner's parts of this moment, put together as one model."""

from collections.abc import Sequence

import torch

from tame.core.expert import Expert
from tame.core.intake import Intake
from tame.core.routed import Decision, RoutedModel
from tame.core.selector import Selector


def assemble(
    intake: Intake, experts: Sequence[Expert], selector: Selector, decision: Decision
) -> RoutedModel:
    """Put a learner's parts of this moment together; networks are shared, not copied."""
    labels = intake.labels.labels().to(intake.device)
    seen = torch.zeros(len(experts), len(labels), dtype=torch.bool, device=intake.device)
    for row, expert in zip(seen, experts, strict=True):
        row[: len(expert.counts)] = torch.from_numpy(expert.counts > 0)
    owners = [expert.id for expert in experts]
    router = selector.router(intake.ready, owners)
    nets = [expert.answers for expert in experts]
    model = RoutedModel(intake.ready, router, nets, owners, (seen, labels), decision)
    return model.to(intake.device)
