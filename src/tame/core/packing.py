"""From an expert to its packed form, and back when it is needed."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from tame.core.blueprint import Blueprint
from tame.core.expert import Expert, as_mark
from tame.core.gaps import WIDE, to_gaps
from tame.core.layout import Layout
from tame.core.prune import count_nonzero
from tame.core.reservoir import Reservoir
from tame.core.settings import Settings
from tame.core.shelf import Record, Shelf
from tame.core.terse import encode
from tame.engine.randomness import PrivateDraws, derive, torch_generator
from tame.nets.weights import left_blank
from tame.types import State


@torch.no_grad()
def pack(expert: Expert) -> Record:
    """Return what an inactive, pruned expert needs to come back, without its reservoir.

    Its optimiser's state and its draws are not kept: it comes back with fresh ones. A pruned
    weight comes back as 0, every other number bit for bit.
    """
    network = expert.network
    network.leave_bench()
    layout = Layout.of(network.net, network.masks, network.slots)
    row = layout.gather(network.net)
    kept = layout.kept(row, network.masks)
    places = kept.nonzero().squeeze(1)
    state = network.net.state_dict()
    form, rest = encode(
        {
            "steps": network.steps,
            "restarts": network.restarts,
            "batch": expert.batch,
            "settled": expert.settled,
            "counts": _scarce(expert.counts),
            "detector": expert.detector.state_dict(),
            "trial": expert.trial.state_dict(),
            "mark": None if expert.mark is None else list(expert.mark),
            "others": {name: state[name] for name in layout.others},
        }
    )
    inside = sum(int(mask.sum()) for mask in network.masks.values())
    gaps = to_gaps(places)
    layout = replace(layout, wide=gaps.dtype == WIDE)
    numbers = (count_nonzero(network.net), inside)
    packed = gaps.view(torch.uint8)
    return Record(expert.id, layout, row[places], packed, form, rest, *numbers)


def unpack(
    shelf: Shelf, number: int, plan: Blueprint, settings: Settings, memory: Reservoir
) -> Expert:
    """Return the expert of that id as it was packed, with its reservoir."""
    row = shelf.row(number)
    rest = shelf.rest(row)
    with left_blank():
        expert = Expert(number, plan, settings)
        expert.network.load_state_dict(_network_state(shelf, row, expert, rest))
    expert.detector.load_state_dict(rest["detector"])
    expert.trial.load_state_dict(rest["trial"])
    expert.memory = memory
    expert.mark = as_mark(rest.get("mark"))
    expert.counts = _whole(rest["counts"])
    expert.batch, expert.settled = rest["batch"], rest["settled"]
    expert.draws = torch_generator(derive(plan.seed, "augment", number, rest["steps"]))
    return expert


def _network_state(shelf: Shelf, row: int, expert: Expert, rest: State) -> State:
    layout = shelf.layout(row)
    plan, path = expert.network.plan, expert.network.path
    draws: list[Tensor] = []
    if plan.faces.random:
        seed = derive(plan.seed, *path, "draws", rest["restarts"], rest["steps"])
        draws = PrivateDraws(seed, plan.device).states
    return {
        "slots": layout.slots,
        "steps": rest["steps"],
        "restarts": rest["restarts"],
        "net": layout.views(shelf.dense([row])[0]) | shelf.others(row),
        "masks": layout.masks(shelf.kept(row)),
        "draws": draws,
        "optimiser": {},
    }


def _scarce(counts: np.ndarray) -> State:
    """Return label counts without those that are zero: an expert knows a few labels of many."""
    slots = np.flatnonzero(counts)
    return {"length": len(counts), "slots": slots.tolist(), "times": counts[slots].tolist()}


def _whole(scarce: State) -> np.ndarray:
    counts = np.zeros(scarce["length"], dtype=np.int64)
    counts[scarce["slots"]] = scarce["times"]
    return counts
