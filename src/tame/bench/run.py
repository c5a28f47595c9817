"""Running one experiment: stream, consolidate, evaluate; killed at any moment, it can go on."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from tame.bench.agreement import adjusted_rand
from tame.bench.assignment import misplaced
from tame.bench.calibration import calibration_error
from tame.bench.course import Course, copied
from tame.bench.decisions import decisions
from tame.bench.effort import macs_per_prediction
from tame.bench.episodes import Said, learners, noticing
from tame.bench.experiment import Experiment, from_table, read_experiment
from tame.bench.machine import hardware
from tame.bench.metrics import evaluate, mean, stands_for, summarise, teaching
from tame.bench.outcome import heading, weight
from tame.bench.position import Position
from tame.bench.preparation import prepare
from tame.bench.record import NOBODY
from tame.bench.report import write_report
from tame.bench.store import EventLog, NoLog, RunFolder, write_text
from tame.bench.telling import Telling
from tame.bench.unfinished import StopRequestedError, Unfinished
from tame.checkpoint import save_learner
from tame.config import merge
from tame.engine.world import World, join
from tame.errors import InputError, RunError
from tame.loading import load_run
from tame.types import Batch, Observation, Stream


class Watcher(Protocol):
    """Shown what happens while it happens."""

    def phase(self, name: str, total: int, done: int) -> None: ...
    def step(self, seen: Observation) -> None: ...
    def progress(self, what: str, done: int, total: int) -> None: ...
    def stop_asked(self) -> bool: ...


class Unwatched:
    """Nobody is watching, nobody stops it."""

    def phase(self, name: str, total: int, done: int) -> None: ...
    def step(self, seen: Observation) -> None: ...
    def progress(self, what: str, done: int, total: int) -> None: ...
    def stop_asked(self) -> bool:
        return False


class Run:
    """One experiment in one folder; of several ranks the first alone writes and evaluates."""

    def __init__(
        self,
        experiment: Experiment,
        folder: RunFolder,
        watcher: Watcher,
        world: World | None = None,
    ) -> None:
        self.experiment = experiment
        self.folder = folder
        self.watcher = watcher
        self.world = world or World()
        self.device = self.world.device(experiment.device)
        self.stream = experiment.open_stream()
        self.learner = self._fresh()
        self.position = Position()

    def _fresh(self) -> Any:
        return replace(self.experiment, device=self.device).learner()

    def restore(self) -> None:
        """Go back to the last checkpoint, if there is one."""
        if self.world.first:
            self.folder.sweep()
        if self.folder.model.exists():
            self.learner, header = load_run(self.folder.model, device=self.device)
            self.position = Position.from_json(header["run"])
        if self.world.first and self.position.phase != "consolidate":
            self.folder.unfinished.unlink(missing_ok=True)

    def complete(self) -> dict[str, Any]:
        """Do what is left of stream, consolidation and evaluation; return the result.

        It is empty on ranks other than the first.
        """
        self._meet()
        if self.position.phase == "stream":
            self._learn(self.stream)
        if self.position.phase == "consolidate":
            self._consolidate()
        if not self.world.first:
            return {}
        result = self._evaluate(self.stream)
        write_text(self.folder.result, json.dumps(result, indent=1) + "\n")
        write_report(self.folder.path)
        return result

    def _meet(self) -> None:
        """Make sure that all ranks do the same run and stand at the same place."""
        phase, step = self.position.phase, self.position.step
        self.world.agree(
            f"{self.experiment.table()} {phase} {step}",
            f"others have another run, or stand elsewhere than {phase}, batch {step}; every rank "
            f"needs the same settings and must see the same folder {self.folder.path}",
        )

    def _learn(self, stream: Stream) -> None:
        self.watcher.phase("stream", len(stream), self.position.step)
        telling = Telling(self.learner.hints, stream.truth())
        course = self._course(stream) if self.experiment.run.matrix else None
        saved = time.monotonic()
        with self._log() as log:
            for batch in stream.batches(self.position.step):
                if course is not None and self.experiment.run.ask_every:
                    with self.position.timed("matrix"):
                        course.before(self.learner, self.position.step, batch)
                with self.position.timed("stream"):
                    telling.inform(self.learner, self.position.step)
                    seen = self._observe(batch, log)
                self.position.step += 1
                log.add(seen)
                self.watcher.step(seen)
                if course is not None and self._rows and self.position.step < len(stream):
                    self._add_rows(course)
                if self.world.anyone(self.watcher.stop_asked()):
                    self._checkpoint(log)
                    raise StopRequestedError(
                        f"stopped after batch {self.position.step} of {len(stream)}"
                    )
                if time.monotonic() - saved > self.experiment.run.checkpoint_seconds:
                    self._checkpoint(log)
                    saved = time.monotonic()
            self.position.phase = "consolidate"
            self._checkpoint(log)

    def _observe(self, batch: Batch, log: EventLog | NoLog) -> Observation:
        """Let the learner learn a batch; if it refuses it, keep what was learned before."""
        try:
            seen: Observation = self.learner.observe(batch)
        except InputError as error:
            kept = ""
            if not self.learner.hints:  # one that is told has been told of this batch already
                self._checkpoint(log)
                kept = "; all before it is learned and saved: mend the data, then --resume"
            raise InputError(f"batch {self.position.step}: {error}{kept}") from error
        return seen

    @property
    def _rows(self) -> bool:
        return self.experiment.run.matrix is True

    def _add_rows(self, course: Course) -> None:
        """Measure a consolidated copy, where a segment has ended."""
        while course.due(self.position.step):
            with self.position.timed("matrix"):
                copy = copied(self.learner, self._fresh)
                copy.consolidate(self.watcher.progress)
                course.add_row(copy)

    def _course(self, stream: Stream) -> Course:
        return Course(stream, self.position.followed, self.experiment.run.ask_every)

    def _log(self) -> EventLog | NoLog:
        first = self.world.first
        return EventLog(self.folder.events, self.position.events) if first else NoLog()

    def _consolidate(self) -> None:
        self.watcher.phase("consolidate", 0, 0)
        file = self.folder.unfinished if self.world.size == 1 else None
        every = self.experiment.run.checkpoint_seconds
        work = Unfinished(file, every, self.watcher.stop_asked)
        with self.position.timed("consolidate"), work.kept():
            self.position.seconds["consolidate"] += work.spent
            done = self.learner.consolidate(work.watched(self.watcher.progress))
        self.position.attempts = {str(expert): times for expert, times in done.pruned.items()}
        self.position.merged = {str(gone): kept for gone, kept in done.merged.items()}
        spent = {"refused": done.refused, "thinned": done.thinned}
        self.position.budget = {name: number for name, number in spent.items() if number}
        self.position.phase = "evaluate"
        self._save()
        if self.world.first:
            self.folder.unfinished.unlink(missing_ok=True)

    def _checkpoint(self, log: EventLog | NoLog) -> None:
        self.position.events = log.settle()
        self._save()

    def _save(self) -> None:
        if self.world.first:
            save_learner(self.learner, self.folder.model, self.position.to_json())

    def _evaluate(self, stream: Stream) -> dict[str, Any]:
        self.watcher.phase("evaluate", 0, 0)
        events = list(self.folder.read_events())
        truth = stream.truth()
        shifts = [
            {key: event[key] for key in ("step", "change", "expert", "since")}
            for event in events
            if event["change"] != "none"
        ]
        said = [Said(e["step"], e["change"], _number(e["expert"]), e["since"]) for e in events]
        merged = self.position.merged
        taught = teaching(truth, [merged.get(str(one), one) for one in learners(said)])
        stands = self._present(stands_for(truth, taught))
        held = stream.held_out()
        with self.position.timed("evaluate"):
            rows = evaluate(self.learner, truth, held, stands)
        present = tuple(getattr(self.learner, "expert_ids", ()))
        routed = bool(present)
        selector = [row["selector"] for row in rows if row["selector"] is not None]
        places = zip(truth.origins, truth.starts, truth.settled or truth.starts, strict=True)
        return {
            **heading(self.experiment, self.learner),
            "accuracy": summarise(rows),
            "selector_accuracy": sum(selector) / len(selector) if selector else None,
            "untold_accuracy": mean([row["untold"] for row in rows]),
            "per_segment": rows,
            "experts": len(present),
            "expert_table": [
                {"id": expert, "stands_for": stands[expert], "samples": taught[expert].total()}
                for expert in sorted(stands)
            ],
            "segments": [
                {"origin": origin, "name": truth.names[origin], "start": start, "settled": settled}
                for origin, start, settled in places
            ],
            "shifts": shifts,
            "bursts": [list(span) for span in truth.bursts],
            "detection": {**noticing(truth, said, present), **decisions(truth, said, present)},
            "restarts": sum(event["restarted"] for event in events),
            "merged": merged,
            "budget": self.position.budget,
            "pruning_attempts": self.position.attempts,
            "samples": sum(sum(truth.composition(event.step).values()) for event in said),
            "expert_agreement": adjusted_rand(taught) if routed else None,
            "reservoirs": misplaced(self.learner, stream, stands),
            "calibration_error": calibration_error(self.learner, held),
            "macs": macs_per_prediction(self.learner, held),
            "hardware": hardware(self.experiment.device),
            **weight(self.learner, self.position, self.folder.model),
            **self._followed(stream),
        }

    def _present(self, stands: dict[int, int]) -> dict[int, int]:
        """Leave out experts that are no more."""
        ids = getattr(self.learner, "expert_ids", None)
        return stands if ids is None else {e: o for e, o in stands.items() if e in set(ids)}

    def _followed(self, stream: Stream) -> dict[str, Any]:
        """Return the accuracy matrix, whose last row the consolidated learner itself gives.

        Without its rows, what was asked before it was learned.
        """
        if not self.experiment.run.matrix:
            return {}
        course = self._course(stream)
        if not self._rows:
            return {"course": course.asked()}
        while course.due(len(stream)):
            course.add_row(self.learner)
        return {"course": course.summary()}


def _number(expert: int | None) -> int:
    return NOBODY if expert is None else expert


def start(
    experiment: Experiment, folder: str | Path, watcher: Watcher, *, overwrite: bool = False
) -> dict[str, Any]:
    """Run an experiment from the beginning in a folder of its own."""
    prepare(experiment)
    with join(experiment.device) as world:
        run = Run(experiment, RunFolder(folder), watcher, world)
        if world.first:
            run.folder.create(experiment.to_toml(), overwrite=overwrite)
        return run.complete()


def resume(folder: str | Path, changes: list[dict[str, Any]], watcher: Watcher) -> dict[str, Any]:
    """Go on with the run a folder holds; changes that contradict it are refused."""
    place = RunFolder(folder)
    experiment = read_experiment(place)
    for change in changes:
        if from_table(merge(experiment.table(), change), experiment.preset) != experiment:
            raise RunError(f"{place.path} holds a run with other settings than {change}")
    prepare(experiment)
    with join(experiment.device) as world:
        run = Run(experiment, place, watcher, world)
        run.restore()
        return run.complete()
