"""What a saved pool of experts holds, read off its state: no network is made."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from tame.core.layout import Layout
from tame.core.soundness import check_shelf
from tame.core.terse import decode
from tame.types import State


class Item(NamedTuple):
    """One expert: what it has seen and been taught, what it keeps, and how much of it is left.

    `places` counts the weights that masks decide on, 0 where nothing was pruned, and `kept` those
    that are left of them. An expert that learns on has its pruned form beside the whole one; then
    it is that one's, which answers.
    """

    id: int
    packed: bool
    steps: int
    seen: int
    samples: int
    taught: list[int]
    kept: int
    places: int
    restarts: int


def inventory(pool: State) -> list[Item]:
    """Return all experts of a saved pool, oldest first; packed ones too."""
    found = [_awake(expert) for expert in pool["experts"]]
    if "shelf" in pool:  # format 1 has none
        found += _packed(pool["shelf"], pool["memories"]["sizes"].tolist())
    return sorted(found)


def _awake(expert: State) -> Item:
    network, counts = expert["network"], list(expert["counts"])
    masks = (expert.get("compact") or network)["masks"].values()
    return Item(
        expert["id"],
        packed=False,
        steps=network["steps"],
        seen=sum(counts),
        samples=len(expert["memory"]["keys"]),
        taught=[slot for slot, count in enumerate(counts) if count],
        kept=sum(int(mask.sum()) for mask in masks),
        places=sum(mask.numel() for mask in masks),
        restarts=network["restarts"],
    )


def _packed(shelf: State, samples: list[int]) -> Iterator[Item]:
    check_shelf(shelf)
    table, rest = shelf["table"].tolist(), shelf["rest"].numpy()
    layouts = [Layout.restore(layout) for layout in shelf["layouts"]]
    ends = [0]
    for row in table:
        ends.append(ends[-1] + row[2])
    for number, row, kept, span in zip(
        shelf["ids"].tolist(), table, samples, pairwise(ends), strict=True
    ):
        other = decode(shelf["forms"][row[4]], rest[slice(*span)].tobytes())
        yield Item(
            number,
            packed=True,
            steps=other["steps"],
            seen=sum(other["counts"]["times"]),
            samples=kept,
            taught=other["counts"]["slots"],
            kept=row[6],
            places=layouts[row[3]].maskable,
            restarts=other["restarts"],
        )
