"""The parts of a result that say what was run and what it weighs."""

from pathlib import Path
from typing import Any

from tame.bench.experiment import Experiment
from tame.bench.machine import versions
from tame.bench.position import Position
from tame.bench.telling import told


def heading(experiment: Experiment, learner: Any) -> dict[str, Any]:
    """Return which method ran on which stream, and what it was told."""
    return {
        "format": 1,
        "method": experiment.method,
        "stream": experiment.table()["stream"],
        "preset": experiment.preset,
        "seed": experiment.seed,
        "compares": _compares(experiment.settings),
        "hints": [hint.name for hint in learner.hints],
        "told": told(learner.hints),
        "unbounded": learner.unbounded,
    }


def _compares(settings: Any) -> str | None:
    """Return what a learner's detector calls the statistic it holds against its threshold."""
    detector = getattr(settings, "detector", None)
    return None if detector is None else str(getattr(detector, "compares", "statistic"))


def weight(learner: Any, position: Position, file: Path) -> dict[str, Any]:
    """Return parameters, bytes and seconds."""
    sizes = learner.sizes()
    return {
        "parameters": {
            "nonzero": sizes.nonzero,
            "paper_count": sizes.paper_count,
            "dense": sizes.dense,
        },
        "bytes": {
            "model": sizes.model_bytes,
            "samples": sizes.sample_bytes,
            "training_state": sizes.training_bytes,
            "file": file.stat().st_size,
        },
        "samples_kept": sizes.samples,
        "seconds": {name: round(spent, 3) for name, spent in position.seconds.items()},
        "versions": versions(),
    }
