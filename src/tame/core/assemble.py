"""A learner's parts of this moment, put together as one model."""

import torch

from tame.core.expert import Expert
from tame.core.intake import Intake
from tame.core.pool import ExpertPool
from tame.core.routed import Decision, HardRouting, RoutedModel
from tame.core.routers import OneExpert
from tame.core.selector import Selector


def assemble(
    intake: Intake, pool: ExpertPool | None, selector: Selector, decision: Decision
) -> RoutedModel:
    """Put a learner's parts of this moment together; networks are shared, not copied."""
    step, labels = intake.ready, intake.labels.labels().to(intake.device)
    assert pool is not None  # noqa: S101 (there are experts once anything has been observed)
    owners = pool.ids
    seen = torch.zeros(len(owners), len(labels), dtype=torch.bool)
    places = {owner: place for place, owner in enumerate(owners)}
    for expert in pool.awake:
        seen[places[expert.id], : len(expert.counts)] = torch.from_numpy(expert.counts > 0)
    nets = [expert.answers for expert in pool.awake]
    if len(pool.shelf):
        taught = torch.from_numpy(pool.shelf.taught)
        seen[[places[int(owner)] for owner in pool.shelf.ids], : taught.shape[1]] = taught
        nets.append(pool.shelf)
    tables = (seen.to(intake.device), labels)
    router = selector.router(step, owners)
    return RoutedModel(step, router, nets, owners, tables, decision).to(intake.device)


def assemble_alone(intake: Intake, expert: Expert) -> RoutedModel:
    """Put one expert together with the input step: all that an answer for the present takes."""
    step, labels = intake.ready, intake.labels.labels().to(intake.device)
    seen = torch.zeros(1, len(labels), dtype=torch.bool)
    seen[0, : len(expert.counts)] = torch.from_numpy(expert.counts > 0)
    tables = (seen.to(intake.device), labels)
    parts = (OneExpert(0, 1), [expert.answers], [expert.id], tables, HardRouting())
    return RoutedModel(step, *parts).to(intake.device)
