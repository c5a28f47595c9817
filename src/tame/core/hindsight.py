"""The active expert as it was some time ago, asked about what came since."""

from collections.abc import Sequence
from typing import NamedTuple

from tame.core.mark import Mark
from tame.core.ring import Ring
from tame.core.scene import Scene
from tame.core.sorting import losses_under
from tame.core.waiting import Waiting
from tame.engine.losses import read
from tame.types import Reading, State

BACK = 16  # batches among which one may have stood out
FEWEST, MOST = 4, 8  # batches that tell whether it was the first of many


def reread(scene: Scene, state: State, batches: Sequence[Waiting]) -> list[Reading]:
    """Return how the active expert, as it was kept, reads batches that were put aside."""
    plan = scene.pool.plan
    net = plan.build(state["network"]["slots"], "frame")
    net.load_state_dict(state["network"]["net"])
    lessons = (scene.lesson(batch.raw, batch.slots) for batch in batches)
    return [read(losses_under(net, plan, lesson)) for lesson in lessons]


class Missed(NamedTuple):
    """A change that nobody was alarmed at: losses that tell of it, and when it began, if known."""

    readings: Sequence[Reading]
    began: int | None = None


def second_look(scene: Scene, learned: Sequence[Waiting], ring: Ring, usual: Mark) -> Missed | None:
    """Let the expert as it was before a batch that stood out read what it learned since.

    If that was one odd batch, it knows the others. If it was the first of another world, it does
    not, though by now the expert may have learned them: one that soon learns another world is
    surprised for a batch or two, which is no alarm. `usual` is what it was used to before.
    """
    recent = learned[-BACK:]
    odd = (place for place, one in enumerate(recent) if usual.fit(one.reading).has_moved)
    since = recent[next(odd, len(recent)) :]
    before = ring.before(since[0].step) if len(since) >= FEWEST else None
    if before is None or before.mark is None or before.expert["network"]["slots"] < scene.live:
        return None
    found = reread(scene, before.expert, since[-MOST:])
    fit = before.mark.fit(*found)
    return Missed(found, since[0].step) if fit.learned and fit.has_moved else None
