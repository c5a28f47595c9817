"""Experts that turn out to be the same: found by reading each other's samples, and made one."""

from itertools import combinations

from tame.core.expert import Expert
from tame.core.scene import Scene
from tame.core.sorting import losses_of
from tame.engine.losses import read

READ = 128
FEWEST = 8
COMPARED = 512
DEVIATIONS = 2.0


def merge_same(scene: Scene) -> dict[int, int]:
    """Merge experts that know each other's samples; return who went into whom.

    The older of two stays. Packed experts were compared with each other before they were packed,
    so of every pair one at least is awake.
    """
    pool = scene.pool
    merged: dict[int, int] = {}
    awake = {expert.id for expert in pool.awake}
    for older, younger in combinations(pool.ids, 2):
        gone = merged.keys() & {older, younger}
        if gone or not awake & {older, younger}:
            continue
        if _are_same(scene, pool.open(older), pool.open(younger)):
            pool.merge(older, younger)
            scene.selector.rename(younger, older)
            merged[younger] = older
    return merged


def _are_same(scene: Scene, one: Expert, other: Expert) -> bool:
    """Say whether each knows the other's samples, and one of them as well as the other does.

    Experts of worlds that look alike may know each other's samples after a fashion, but the one
    that learned them knows them better.
    """
    if not (_knows(scene, one, other) and _knows(scene, other, one)):
        return False
    return _replaces(scene, other, one) or _replaces(scene, one, other)


def _knows(scene: Scene, expert: Expert, other: Expert) -> bool:
    """Say whether an expert clearly knows a uniform sample of what another one learned."""
    if expert.mark is None or len(other.memory) < FEWEST:
        return False
    raw, slots = (column[:READ] for column in other.memory.columns())
    lesson = scene.lesson(raw, slots.long().cpu())
    return expert.mark.fit(read(losses_of(expert, lesson))).is_close


def _replaces(scene: Scene, expert: Expert, other: Expert) -> bool:
    """Say whether an expert reads what another one learned about as well as that one does."""
    raw, slots = (column[:COMPARED] for column in other.memory.columns())
    lesson = scene.lesson(raw, slots.long().cpu())
    worse = losses_of(expert, lesson).double() - losses_of(other, lesson).double()
    return bool(worse.mean() <= DEVIATIONS * worse.std() / len(worse) ** 0.5)
