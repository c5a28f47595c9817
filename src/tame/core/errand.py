"""Experts pruned elsewhere: sent to workers one by one, and only their pruned copies come back.

What becomes of an expert depends on that expert alone, so it does not matter who prunes it.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from functools import partial
from typing import NamedTuple, Protocol, runtime_checkable

import torch

from tame.checkpoint import pack, unpack
from tame.core.blueprint import Blueprint
from tame.core.consolidate import compact, is_due
from tame.core.expert import Expert
from tame.core.intake import Intake
from tame.core.settings import Settings
from tame.engine.journal import next_note, unnoted
from tame.engine.processes import Outcomes
from tame.types import NetMaker, Progress, State, silent

MANY = 2


@runtime_checkable
class Workers(Protocol):
    """Those who do pieces of work, each a function of bytes, in any order."""

    @property
    def device(self) -> str:
        """Where they compute, "cpu" or "cuda"."""
        ...

    def check(self) -> None:
        """Refuse, by name, what is missing on this machine."""
        ...

    def each(self, work: Callable[[bytes], bytes], loads: Iterable[bytes]) -> Outcomes:
        """Yield the number of each load and what became of it, whichever is done first.

        Closed early, they stop at once.
        """
        ...


class Order(NamedTuple):
    """What all experts of a learner have in common, and under what conditions they are pruned."""

    make: NetMaker
    settings: Settings
    seed: int
    device: str
    threads: int
    dtype: torch.dtype
    deterministic: bool


def prune_experts(
    experts: Sequence[Expert], settings: Settings, intake: Intake, progress: Progress = silent
) -> dict[int, int]:
    """Give every expert that needs one an up-to-date pruned copy; return the attempts it took.

    The settings' workers do it, where there are any and several experts to prune.
    """
    due = [expert for expert in experts if is_due(expert)]
    workers: Workers | None = settings.workers
    if workers is None or len(due) < MANY:
        return compact(due, settings.pruner, intake.ready, len(intake.labels), progress)
    note = next_note()
    found: dict[str, State] = dict(note.found.get("outcomes", {}))
    for expert in due:
        if str(expert.id) in found:
            expert.restore_compact(found[str(expert.id)]["compact"])
    left = [expert for expert in due if str(expert.id) not in found]
    work = partial(prune_load, _order(due[0].network.plan, settings, workers.device))
    progress(f"pruning {len(due)} experts", len(found), len(due))
    with closing(workers.each(work, (_load(expert, intake) for expert in left))) as outcomes:
        for number, outcome in outcomes:
            expert, state = left[number], unpack(outcome, "a pruned expert")[1]
            expert.restore_compact(state["compact"])
            found[str(expert.id)] = state
            progress(f"pruning {len(due)} experts", len(found), len(due))
            note.reached(lambda: {"outcomes": found})
    note.finished(lambda: {"outcomes": found})
    return {expert.id: found[str(expert.id)]["attempts"] for expert in due}


def prune_load(order: Order, load: bytes) -> bytes:
    """Prune the expert that was sent; this is what workers do."""
    torch.set_num_threads(order.threads)
    torch.set_default_dtype(order.dtype)
    torch.use_deterministic_algorithms(order.deterministic)
    device, settings = torch.device(order.device), order.settings
    state = unpack(load, "an expert to prune", device)[1]
    intake = Intake(settings.inputs, device)
    intake.load_state_dict(state["intake"])
    shape, augment = intake.ready.output_shape, settings.inputs.augment
    plan = Blueprint(order.make, shape, settings.training, order.seed, device, augment)
    expert = Expert(state["expert"]["id"], plan, settings)
    expert.load_state_dict(state["expert"])
    with unnoted():
        attempts = compact([expert], settings.pruner, intake.ready, len(intake.labels))
    outcome = {"attempts": attempts[expert.id], "compact": expert.state_dict()["compact"]}
    return pack({}, outcome)


def _order(plan: Blueprint, settings: Settings, device: str) -> Order:
    now = (torch.get_num_threads(), torch.get_default_dtype())
    strict = torch.are_deterministic_algorithms_enabled()
    return Order(plan.make, settings, plan.seed, device, *now, strict)


def _load(expert: Expert, intake: Intake) -> bytes:
    state: State = expert.state_dict()
    state["network"]["optimiser"] = {}  # pruning begins with a fresh one
    state["compact"] = None  # out of date
    return pack({}, {"expert": state, "intake": intake.state_dict()})
