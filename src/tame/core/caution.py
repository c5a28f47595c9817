"""The careful conduct at work: suspicion, switch, probation, and the way back from each."""

from functools import partial
from typing import NamedTuple

from tame.core.conduct import Careful
from tame.core.doubt import Doubt
from tame.core.expert import Expert
from tame.core.ledger import Ledger
from tame.core.looks import looks_foreign
from tame.core.mark import Mark
from tame.core.merging import merge_same
from tame.core.pool import ExpertPool
from tame.core.probation import Probation
from tame.core.scene import Closing, Scene
from tame.core.selector import Selector
from tame.core.waiting import NOBODY, Waiting
from tame.engine.lesson import Lesson
from tame.types import Change, Observation, Reading, State, Verdict

SURE = 2  # batches an expert must know clearly, one by one, to be taken back


class Turn(NamedTuple):
    """What became of a batch: who learned it (-1: nobody yet), and what was decided."""

    expert: int
    restarted: bool = False
    change: Change = Change.NONE
    since: int | None = None


class Caution:
    """Calm, in doubt, or with a newcomer on probation; see `Careful`."""

    def __init__(self, settings: Careful) -> None:
        self.settings = settings
        self._ledger = Ledger(settings)
        self._doubt: Doubt | None = None
        self._probation: Probation | None = None
        self._refused = 0  # newcomers there was no room for

    def meet(self, scene: Scene, lesson: Lesson) -> Observation:
        """Judge a batch, and let an expert learn from it unless that has to wait."""
        expert = scene.pool.active
        batch, reading = self._ledger.measure(scene, lesson, release=self._probation is None)
        verdict = self._doubt.verdict if self._doubt else expert.detector.update(reading)
        if self._probation is not None:
            turn = self._try(scene, self._probation, (batch, lesson, reading), verdict)
        elif self._suspects(scene, verdict, batch):
            turn = self._consider(scene, batch, lesson)
        else:
            turn = Turn(expert.id, self._ledger.learn(expert, batch, lesson, reading))
        told = (scene.step, reading.loss, verdict.statistic, verdict.threshold)
        return Observation(*told, turn.expert, turn.change, turn.since, turn.restarted)

    def catch_up(self, scene: Scene) -> None:
        """Nothing is put off: batches that wait are told of as they are."""

    def close(self, scene: Scene) -> Closing:
        """End doubt and probation, and merge experts that turn out to be the same.

        What is held is dropped; a newcomer stays if it has learned, or if nobody has known its
        data for as long as a probation lasts at least.
        """
        self._doubt = None
        scene.pool.active.forget()
        probation, self._probation = self._probation, None
        if probation is not None and not self._may_stay(probation, scene.pool.active):
            self._withdraw(scene, probation, probation.old, last=0)
        self._ledger.close(scene)
        merged = merge_same(scene)
        if merged:
            self._ledger.begin(scene.pool.active)
        refused, self._refused = self._refused, 0
        return Closing(merged, refused)

    def speaker(self, pool: ExpertPool) -> Expert:
        """Return who knows best what is held, if anyone does; else the active expert."""
        return pool.active if self._doubt is None else pool.open(self._doubt.speaker())

    def preview(self, selector: Selector) -> Selector:
        return self._ledger.preview(selector)

    def weigh(self) -> tuple[int, int, int]:
        waiting, samples, state = self._ledger.weigh()
        held = self._doubt.held if self._doubt else []
        waiting += sum(batch.nbytes for batch in held)
        return waiting, samples + sum(len(batch.slots) for batch in held), state

    def state_dict(self) -> State:
        return {
            "ledger": self._ledger.state_dict(),
            "doubt": self._doubt and self._doubt.state_dict(),
            "probation": self._probation and self._probation.state_dict(),
            "refused": self._refused,
        }

    def load_state_dict(self, state: State) -> None:
        self._ledger.load_state_dict(state["ledger"])
        self._doubt = state["doubt"] and Doubt.restore(state["doubt"])
        self._probation = state["probation"] and Probation.restore(state["probation"])
        self._refused = state["refused"]

    def _suspects(self, scene: Scene, verdict: Verdict, batch: Waiting) -> bool:
        """Say whether there is a suspicion: an alarm, an odd batch, or a change that was missed."""
        if self._doubt is None:
            missed = self._ledger.missed(scene)
            if not (verdict.shift or missed or self._ledger.is_odd(scene, batch)):
                return False
            self._doubt = Doubt(scene.pool.active.id, verdict, missed)
        return True

    def _consider(self, scene: Scene, batch: Waiting, lesson: Lesson) -> Turn:
        """Ask who knows what is held; while that is not clear, hold this batch too."""
        active, doubt = scene.pool.active, self._doubt
        assert doubt is not None  # noqa: S101 (asked in doubt alone)
        self._hold(scene, batch, lesson, self._ledger.usual(active))
        late = len(doubt.held) >= self.settings.patience
        foreign = partial(looks_foreign, scene, doubt.held)
        known = doubt.returned(min(SURE, self.settings.patience), foreign, late=late)
        own = doubt.fit(active.id)
        if known is not None and not (own.claims and own.loss <= doubt.fit(known).loss):
            return self._switch(scene, doubt, known)
        alone = not (doubt.missed or doubt.is_strange)  # whether one batch can settle it
        knows = own.claims or (doubt.newest(active.id).is_clear and alone)
        if knows or not own.learned:
            return self._stay(scene, doubt)
        if late or doubt.is_refused():
            return self._recruit(scene, doubt)
        active.forget()
        return Turn(NOBODY, change=Change.SUSPECTED, since=doubt.noticed)

    def _hold(self, scene: Scene, batch: Waiting, lesson: Lesson, own: Mark | None) -> None:
        doubt = self._doubt
        assert doubt is not None  # noqa: S101 (batches are held in doubt alone)
        strange = self._ledger.looks_strange(scene, doubt.active, *doubt.held, batch)
        doubt.hold(scene, batch, lesson, own, strange=strange)

    def _stay(self, scene: Scene, doubt: Doubt) -> Turn:
        """Go on with the active expert, which knows the newest batch, or nothing at all yet.

        Of the others held it learns those it knows.
        """
        self._doubt, active = None, scene.pool.active
        usual, restarted = self._ledger.mark(active), False
        readings = doubt.readings[active.id][-len(doubt.held) :]
        for batch, reading in zip(doubt.held, readings, strict=True):
            knows = usual is None or not usual.learned or usual.fit(reading).claims
            if knows or batch is doubt.held[-1]:
                restarted |= self._ledger.teach(scene, batch)
        return Turn(active.id, restarted)

    def _switch(self, scene: Scene, doubt: Doubt, number: int) -> Turn:
        """Make a known expert the active one, from where the change began."""
        since = self._move(scene, doubt, number)
        return self._hand_over(scene, doubt)._replace(change=Change.SWITCHED, since=since)

    def _move(self, scene: Scene, doubt: Doubt, number: int) -> int:
        """Go on with an expert there is, from where the change began; return that."""
        old = scene.pool.active.id
        since = self._ledger.leave(scene, doubt)
        self._ledger.begin(scene.pool.switch(scene.pool.open(number)), old, since)
        return since

    def _recruit(self, scene: Scene, doubt: Doubt) -> Turn:
        """Let a newcomer learn what is held, on probation, unless there is no room for one."""
        old, most = scene.pool.active, self.settings.most_experts
        if self._ledger.recover(scene, doubt):
            return self._stay(scene, doubt)
        if 0 < most <= len(scene.pool.ids):
            return self._adapt(scene, doubt)
        since = self._ledger.leave(scene, doubt)
        newcomer = scene.pool.recruit()
        self._ledger.begin(newcomer, old.id, since)
        self._probation = Probation([old.id, *doubt.likeliest(2)], since, doubt.noticed)
        turn = self._hand_over(scene, doubt)
        self._rehearse(scene)
        return turn._replace(change=Change.SUSPECTED, since=since)

    def _adapt(self, scene: Scene, doubt: Doubt) -> Turn:
        """Let the expert that comes nearest learn another world, as there is no room for more."""
        self._refused += 1
        since = self._move(scene, doubt, doubt.closest())
        self._ledger.begin_anew(scene.pool.active)
        turn = self._hand_over(scene, doubt)
        stays = turn.expert == doubt.active
        return turn if stays else turn._replace(change=Change.SWITCHED, since=since)

    def _hand_over(self, scene: Scene, doubt: Doubt) -> Turn:
        self._doubt, restarted = None, False
        for batch in doubt.held:
            restarted |= self._ledger.teach(scene, batch)
        return Turn(scene.pool.active.id, restarted)

    def _try(
        self,
        scene: Scene,
        probation: Probation,
        met: tuple[Waiting, Lesson, Reading],
        verdict: Verdict,
    ) -> Turn:
        """Let the newcomer learn, and see whether anyone else knows its data after all."""
        newcomer, (batch, lesson, reading) = scene.pool.active, met
        strange = partial(self._ledger.looks_strange, scene, probation.old, batch)
        probation.watch(scene, lesson, reading, strange)
        back = probation.claimant(self.settings.returns)
        if verdict.shift and back is None and self._has_learned(newcomer):
            return self._confirm_in_doubt(scene, probation, batch, lesson, verdict)
        turn = Turn(newcomer.id, self._ledger.learn(newcomer, batch, lesson, reading))
        if back is not None:
            self._probation = None
            return self._withdraw(scene, probation, back, self.settings.returns)
        self._rehearse(scene)
        if self._is_sure(probation, newcomer):
            self._probation = None
            return turn._replace(change=Change.RECRUITED, since=probation.since)
        return turn

    def _rehearse(self, scene: Scene) -> None:
        self._ledger.rehearse(scene, self.settings.rehearsals)

    def _is_sure(self, probation: Probation, newcomer: Expert) -> bool:
        horizon, age = self.settings.horizon, probation.batches
        if age < self.settings.probation or (probation.is_contested and age < 2 * horizon):
            return False
        return age >= horizon or self._has_learned(newcomer)

    def _may_stay(self, probation: Probation, newcomer: Expert) -> bool:
        alone = probation.batches >= self.settings.probation and not probation.is_contested
        return alone or self._has_learned(newcomer)

    def _has_learned(self, newcomer: Expert) -> bool:
        mark = self._ledger.mark(newcomer)
        return mark is not None and mark.learned

    def _confirm_in_doubt(
        self, scene: Scene, probation: Probation, batch: Waiting, lesson: Lesson, verdict: Verdict
    ) -> Turn:
        """Confirm a newcomer that is surprised itself, which only one that has learned can be."""
        newcomer, self._probation = scene.pool.active, None
        self._doubt = Doubt(newcomer.id, verdict)
        self._hold(scene, batch, lesson, self._ledger.mark(newcomer))
        newcomer.forget()
        return Turn(NOBODY, change=Change.RECRUITED, since=probation.since)

    def _withdraw(self, scene: Scene, probation: Probation, back: int, last: int) -> Turn:
        """Dismiss the newcomer; the expert that knows its last batches learns those.

        If that is the one that was left, there was no change, and the newcomer's other batches are
        dropped. If it is another, there was a switch, and they are its own or the old one's.
        """
        pool, newcomer, old = scene.pool, scene.pool.active.id, probation.old
        expert = pool.switch(pool.open(back))
        pool.dismiss(newcomer)
        rest = self._ledger.withdraw(newcomer, old, probation.noticed)
        first, kept = rest[: len(rest) - last], rest[len(rest) - last :]
        if back == old:
            self._ledger.begin(expert)
            change, since = Change.WITHDRAWN, kept[0].step if kept else None
        else:
            self._ledger.begin(expert, old, probation.since)
            for batch in first:
                self._ledger.queue.add(batch._replace(owner=back, rival=self._ledger.rival))
            change, since = Change.SWITCHED, probation.since
        restarted = False
        for batch in kept:
            restarted |= self._ledger.teach(scene, batch)
        return Turn(expert.id, restarted, change, since)
