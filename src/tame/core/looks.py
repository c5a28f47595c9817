"""Whether batches that were put aside look unlike what an expert has learned."""

from collections.abc import Sequence

from tame.core.appearance import newest, thinned, unlike, whole
from tame.core.scene import Scene
from tame.core.waiting import Waiting


def looks_strange(scene: Scene, batches: Sequence[Waiting]) -> bool:
    """Say whether the newest batches look unlike those before them; all ranks say the same."""
    place = len(batches) - newest(batches)
    told = 0 < place < len(batches)
    strange = told and unlike(thinned(batches[place:]), thinned(batches[:place]))
    return scene.pool.plan.world.anyone(strange)


def looks_foreign(scene: Scene, held: Sequence[Waiting], number: int) -> bool:
    """Say whether the newest of these batches look unlike all an inactive expert learned."""
    memory, count = scene.pool.open(number).memory, newest(held)
    told = count > 0 and len(memory) > 0
    foreign = told and unlike(thinned(held[-count:]), whole(*memory.columns()))
    return scene.pool.plan.world.anyone(foreign)
