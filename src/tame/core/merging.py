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
SLIGHT = 0.05  # of the way from an expert's level to guessing


def merge_same(scene: Scene) -> dict[int, int]:
    """Merge experts that know each other's samples; return who went into whom.

    Packed experts were compared with each other before they were packed, so of every pair one at
    least is awake.
    """
    pool = scene.pool
    merged: dict[int, int] = {}
    awake = {expert.id for expert in pool.awake}
    for older, younger in combinations(pool.ids, 2):
        if merged.keys() & {older, younger} or not awake & {older, younger}:
            continue
        keeper = _keeper(scene, pool.open(older), pool.open(younger))
        if keeper is not None:
            gone = younger if keeper == older else older
            pool.merge(keeper, gone)
            scene.selector.rename(gone, keeper)
            merged = {one: keeper if kept == gone else kept for one, kept in merged.items()}
            merged[gone] = keeper
    return merged


def _keeper(scene: Scene, older: Expert, younger: Expert) -> int | None:
    """Return which of two experts can stand in for both, the older if either can.

    Experts of worlds that look alike may know each other's samples after a fashion, but the one
    that learned them knows them better. And if one of two has come to know both worlds, as after
    a change that was missed, it is that one that stays.
    """
    if not (_knows(scene, older, younger) and _knows(scene, younger, older)):
        return None
    if _replaces(scene, older, younger):
        return older.id
    return younger.id if _replaces(scene, younger, older) else None


def _knows(scene: Scene, expert: Expert, other: Expert) -> bool:
    """Say whether an expert clearly knows a uniform sample of what another one learned."""
    if expert.mark is None or len(other.memory) < FEWEST:
        return False
    raw, slots = (column[:READ] for column in other.memory.columns())
    lesson = scene.lesson(raw, slots.long().cpu())
    return expert.mark.fit(read(losses_of(expert, lesson, own=True))).is_close


def _replaces(scene: Scene, expert: Expert, other: Expert) -> bool:
    """Say whether an expert reads what another one learned about as well as that one does.

    It may be worse by a twentieth of the way to guessing, or by no more than chance has it.
    """
    assert other.mark is not None  # noqa: S101 (one that knows something has a mark)
    raw, slots = (column[:COMPARED] for column in other.memory.columns())
    lesson = scene.lesson(raw, slots.long().cpu())
    its, others = (losses_of(one, lesson, own=True).double() for one in (expert, other))
    worse = its - others
    chance = DEVIATIONS * float(worse.std()) / len(worse) ** 0.5
    return bool(worse.mean() <= max(chance, SLIGHT * (other.mark.guess - other.mark.level)))
