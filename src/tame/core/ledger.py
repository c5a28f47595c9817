"""What was learned lately and by whom, and how it is undone or given to another."""

from collections.abc import Iterator
from functools import partial

from tame.core.accounting import tensor_bytes
from tame.core.conduct import Careful
from tame.core.dating import date
from tame.core.doubt import Doubt
from tame.core.expert import Expert
from tame.core.hindsight import Missed, reread, second_look
from tame.core.keepsake import has_lost
from tame.core.looks import looks_strange
from tame.core.mark import RECENT, Level, Mark
from tame.core.ring import Ring, Snapshot, cloned, take
from tame.core.scene import Scene
from tame.core.selector import Selector
from tame.core.sorting import ask_rival, share_batch
from tame.core.waiting import NOBODY, Queue, Waiting, put_aside
from tame.engine.lesson import Lesson
from tame.types import Reading, State

NEWEST = 4  # batches that are rehearsed
LOOKS = 8  # batches from one look at whether a change was missed to the next


class Ledger:
    """Queue, snapshots and losses of the active expert, kept in step with each other."""

    def __init__(self, settings: Careful) -> None:
        self._horizon = settings.horizon
        self._rolls_back = settings.rollback
        self.queue = Queue()
        self._ring = Ring(settings.spacing, settings.horizon)
        self._level = Level()
        self._rival, self._until = NOBODY, 0  # who was left, and before which step it may own some
        self._keepsake: State | None = None  # the active expert as it came back
        self._taken: Snapshot | None = None  # before the batch that is being measured

    def measure(self, scene: Scene, lesson: Lesson, *, release: bool) -> tuple[Waiting, Reading]:
        """Let the active expert measure a batch, and return the batch put aside.

        While the device is busy with it, a snapshot is taken if one is due, and batches that have
        waited long enough are let into the reservoirs if `release` says so.
        """
        expert, aside = scene.pool.active, list[Waiting]()

        def prepare() -> None:
            aside.append(put_aside(scene.step, lesson))
            self._look(scene.step, expert)
            if release:
                self.release(scene)

        reading = expert.measure(lesson, meanwhile=prepare)
        return aside[0].read_as(reading), reading

    def learn(self, expert: Expert, batch: Waiting, lesson: Lesson, reading: Reading) -> bool:
        """Let the active expert learn the batch it has just measured; say whether it restarted."""
        if self._taken is not None:
            self._ring.add(self._taken)
        self._taken = None
        self._level.add(reading)
        restarted = expert.train(lesson)
        if restarted:
            self._ring.clear()
            self._level = Level()
        rival = self._rival if batch.step < self._until else NOBODY
        self.queue.add(batch._replace(owner=expert.id, rival=rival))
        return restarted

    def teach(self, scene: Scene, batch: Waiting) -> bool:
        """Let the active expert learn a batch that was held, whatever its detector says of it."""
        expert, lesson = scene.pool.active, scene.lesson(batch.raw, batch.slots)
        reading = expert.measure(lesson, meanwhile=lambda: self._look(batch.step, expert))
        if expert.detector.update(reading).shift and len(self._level) >= RECENT:
            expert.detector.rebase([*self._level.readings(), reading])
        return self.learn(expert, batch.read_as(reading), lesson, reading)

    def rehearse(self, scene: Scene, times: int) -> None:
        """Let the active expert learn its newest batches once more, so many, in turn.

        Older ones are left: while one world gives way to another, they hold more of the old one.
        """
        expert = scene.pool.active
        own = self.queue.owned(expert.id)[-NEWEST:]
        for turn in range(times if own else 0):
            batch = own[(scene.step * times + turn) % len(own)]
            expert.repeat(scene.lesson(batch.raw, batch.slots))

    def mark(self, expert: Expert) -> Mark | None:
        """Return where the active expert stands."""
        return self._level.mark(expert.counts, expert.network.plan.training.output)

    def usual(self, expert: Expert) -> Mark | None:
        """Return where the active expert stands, or stood some time ago if that was better."""
        now, oldest = self.mark(expert), self._ring.oldest
        marks = [mark for mark in (now, oldest and oldest.mark) if mark is not None]
        return min(marks, default=None)

    def missed(self, scene: Scene) -> Missed | None:
        """Return a change that nobody was alarmed at, if there is one.

        It is looked for now and then: a detector whose level follows the losses does not see them
        creep up, and an expert that soon learns another world is surprised for a batch or two.
        """
        oldest = self._ring.oldest
        if oldest is None or oldest.mark is None or scene.step % LOOKS:
            return None
        recent = self._level.readings()[-RECENT:]
        fit = oldest.mark.fit(*recent)
        if fit.learned and fit.has_moved:
            return Missed(recent)
        own = self.queue.owned(scene.pool.active.id)
        return second_look(scene, own, self._ring, oldest.mark)

    def looks_strange(self, scene: Scene, owner: int, *new: Waiting) -> bool:
        """Say whether the newest of these batches look unlike what an expert learned lately."""
        return looks_strange(scene, [*self.queue.owned(owner), *new])

    def is_odd(self, scene: Scene, batch: Waiting) -> bool:
        """Say whether a batch looks unlike the active expert's, which finds it harder, too.

        Neither says much alone. Together they tell of a world that the expert half knows.
        """
        active = scene.pool.active
        usual = self.mark(active)
        raised = usual is not None and usual.fit(batch.reading).is_raised
        return raised and self.looks_strange(scene, active.id, batch)

    def recover(self, scene: Scene, doubt: Doubt) -> bool:
        """Put the active expert back to a time when it knew what is held, if there is one.

        Then nothing has changed but the expert, which had lost its way: a step on one odd sample
        can throw a network far off, and so can a change that nobody noticed. What it learned since
        then it does not learn again. Where a change was missed, that time is before it: since then
        the expert may know what is held for having learned it.
        """
        expert = scene.pool.active
        usual, until = self.usual(expert), doubt.noticed if doubt.began is None else doubt.began
        for state, level in self._earlier(until):
            if usual is None or state["network"]["slots"] < scene.live:
                return False
            found = reread(scene, state, doubt.held)
            if usual.fit(*found, strange=doubt.is_strange).claims:
                expert.resume(state)
                self._level = Level(expert.mark) if level is None else Level.restore(level)
                return True
        return False

    def _earlier(self, until: int) -> Iterator[tuple[State, State | None]]:
        """Yield the states of the active expert until then, newest first, and their levels."""
        for kept in reversed(self._ring):
            if kept.step <= until:
                yield kept.expert, kept.level
        if self._keepsake is not None:
            yield self._keepsake, None

    def leave(self, scene: Scene, doubt: Doubt) -> int:
        """Date the change and undo what the active expert learned since; return the date."""
        old, noticed = scene.pool.active, doubt.noticed
        since = self._dated(old, doubt)
        found = self._ring.before(since)
        if since < noticed and found is not None:
            old.resume(found.expert)
            self._level = Level.restore(found.level)
            for batch in self.queue.owned(old.id):
                if found.step <= batch.step < since:
                    self._repeat(scene, old, batch)
        old.forget()
        old.mark = self.mark(old)
        if self._has_lost(scene, old):
            self._put_back(old)
        return since

    def begin(self, expert: Expert, old: int = NOBODY, since: int = 0) -> None:
        """Go on with another expert: what the old one learned since the change may be its own."""
        old = old if self._rolls_back and old != expert.id else NOBODY
        self._rival, self._until = old, since + 2 * self._horizon
        self._ring.clear()
        self._level = Level(expert.mark)
        self._keep(expert)

        def renew(batch: Waiting) -> Waiting:
            late = old != NOBODY and batch.owner == old and batch.step >= since
            return batch._replace(owner=expert.id, rival=old, known=None) if late else batch

        self.queue.change(renew)

    def begin_anew(self, expert: Expert) -> None:
        """Expect nothing of the active expert, as of a newcomer: it is to learn another world."""
        expert.detector = expert.detector.fresh()
        self._level = Level()

    @property
    def rival(self) -> int:
        """The expert that was left, if some of what comes now may be its own."""
        return self._rival

    def withdraw(self, number: int, old: int, noticed: int) -> list[Waiting]:
        """Take a newcomer's batches away and return them; those of before go back to the old."""
        taken = [batch for batch in self.queue.owned(number) if batch.step >= noticed]

        def renew(batch: Waiting) -> Waiting | None:
            if batch.owner != number:
                return batch
            return batch._replace(owner=old, rival=NOBODY) if batch.step < noticed else None

        self.queue.change(renew)
        return taken

    def release(self, scene: Scene, most: int | None = None) -> None:
        """Let batches that have waited long enough into the reservoirs."""
        self.queue.change(partial(ask_rival, scene))
        free = self.queue.release(self._horizon if most is None else most)
        for place, batch in enumerate(free):
            if batch.rival == NOBODY or batch.rival not in scene.pool.ids:
                scene.store(scene.lesson(batch.raw, batch.slots), batch.owner)
            else:
                share_batch(scene, batch, [*free[place + 1 :], *self.queue])

    def close(self, scene: Scene) -> None:
        """Let everything into the reservoirs, and forget how things were before."""
        self.release(scene, most=0)
        active = scene.pool.active
        active.mark = self.mark(active)
        lost = self._has_lost(scene, active)
        if lost and active.is_pruned:
            self._put_back(active)
        if active.is_pruned or (self._keepsake is not None and not lost):
            self._keep(active)  # one that lost may be following its world: see when it is left
        self._ring.clear()
        self._rival = NOBODY

    def _keep(self, expert: Expert) -> None:
        """Keep how an expert is that comes back; a newcomer was not here before."""
        returns = expert.mark is not None and self._rolls_back
        self._keepsake = cloned(expert.brief()) if expert.is_pruned or returns else None

    def _has_lost(self, scene: Scene, expert: Expert) -> bool:
        """Say whether the active expert is the worse for what it learned since it came back."""
        return self._keepsake is not None and has_lost(scene, expert, self._keepsake)

    def _put_back(self, expert: Expert) -> None:
        """Undo all that the active expert learned since it came back."""
        assert self._keepsake is not None  # noqa: S101 (asked of one that has lost)
        expert.resume(self._keepsake)
        self._level = Level(expert.mark)

    def preview(self, selector: Selector) -> Selector:
        """Return the selector as if all batches were in its reservoir."""
        if not len(self.queue):
            return selector
        spare = selector.spare()
        for batch in self.queue:
            spare.observe(batch.raw, batch.slots, batch.owner)
        return spare

    def weigh(self) -> tuple[int, int, int]:
        """Return the bytes and the number of samples that wait, and the bytes of snapshots."""
        samples = sum(len(batch.slots) for batch in self.queue)
        state = self._ring.nbytes() + tensor_bytes(self._keepsake)
        return sum(batch.nbytes for batch in self.queue), samples, state

    def state_dict(self) -> State:
        return {
            "queue": self.queue.state_dict(),
            "ring": self._ring.state_dict(),
            "level": self._level.state_dict(),
            "rival": self._rival,
            "until": self._until,
            "keepsake": self._keepsake,
        }

    def load_state_dict(self, state: State) -> None:
        self.queue = Queue.restore(state["queue"])
        self._ring.load_state_dict(state["ring"])
        self._level = Level.restore(state["level"])
        self._rival, self._until = state["rival"], state["until"]
        self._keepsake = cloned(state["keepsake"])

    def _look(self, step: int, expert: Expert) -> None:
        """Take a snapshot before the batch of this step, if one is due; learning it keeps it."""
        self._taken = take(step, expert, self._level) if self._ring.is_due(step) else None

    def _dated(self, old: Expert, doubt: Doubt) -> int:
        oldest, noticed = self._ring.oldest, doubt.noticed
        if oldest is None or oldest.mark is None or not self._rolls_back:
            return noticed
        if doubt.began is not None:
            return doubt.began
        learned = [batch for batch in self.queue.owned(old.id) if batch.step >= oldest.step]
        return date(oldest.mark, learned, noticed)

    def _repeat(self, scene: Scene, expert: Expert, batch: Waiting) -> None:
        """Learn a batch of before the change once more; it waits already."""
        lesson = scene.lesson(batch.raw, batch.slots)
        reading = expert.measure(lesson)
        expert.detector.update(reading)
        self._level.add(reading)
        expert.train(lesson)
