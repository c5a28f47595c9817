"""How long each detector stays quiet where nothing changes, and how soon it notices a change.

    python benchmarks/detection_null.py [--runs 200] [--traces FILE ...] [--out FILE]
    python benchmarks/detection_null.py --stationary FILE [FILE ...]
    python benchmarks/detection_null.py --replay FILE [FILE ...] --out FILE

Every registered detector, with its defaults, over noise without change (run length, censored),
over steps of several sizes after short and long segments, and over the recorded losses of a
network that trains (`detection_traces.py`). `label-set` sees no losses and is left out. With
--stationary only the false alarms on such traces are counted, each seed for itself, and added to
benchmarks/results/detection/stationary.json; with --replay there is nothing but recorded losses.
"""

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

import numpy as np
from scipy.stats import chi2

from tame.core.detectors.betting import Betting
from tame.registry import DETECTORS
from tame.types import Reading, ShiftDetector

FOLDER = Path("benchmarks/results/detection")
LENGTH, LONG, PATIENCE = 1_000, 100_000, 50
PROMISES = (100, 1_000, 10_000)
Draws = np.random.Generator
Make = Callable[[], ShiftDetector]


def normal(draws: Draws, count: int) -> np.ndarray:
    """Return normal losses: mean 1, deviation 0.1."""
    return draws.normal(1.0, 0.1, count)


def exponential(draws: Draws, count: int) -> np.ndarray:
    """Return exponential losses of mean 0.1."""
    return draws.exponential(0.1, count)


def waves(draws: Draws, count: int) -> np.ndarray:
    """Return AR(1) losses: mean 1, deviation 0.1, correlation 0.9 from one to the next."""
    values, last = np.empty(count), draws.normal()
    for place, fresh in enumerate(draws.normal(0.0, math.sqrt(1 - 0.81), count)):
        last = 0.9 * last + fresh
        values[place] = last
    return 1 + 0.1 * values


def lognormal(draws: Draws, count: int) -> np.ndarray:
    """Return log-normal losses (sigma 1.5), median 0.1."""
    return 0.1 * draws.lognormal(0.0, 1.5, count)


NOISES = (normal, exponential, waves, lognormal)


@dataclass(frozen=True)
class Step:
    """Batches whose samples have exponential losses; after `age` of them the mean rises.

    The rise is `size` deviations of a batch's mean loss. A `falling` loss comes down from 2.3 to
    0.1 within some twenty batches, and rises to 2.5 whatever the size.
    """

    batch: int
    age: int
    size: float
    falling: bool = False

    def readings(self, draws: Draws) -> Iterator[Reading]:
        """Yield the readings before the change and fifty after it."""
        for place in range(self.age + PATIENCE):
            samples = self._mean(place) * draws.exponential(1.0, self.batch)
            spread = float(samples.std(ddof=1)) if self.batch > 1 else 0.0
            yield Reading(float(samples.mean()), spread / math.sqrt(self.batch), self.batch)

    def _mean(self, place: int) -> float:
        if self.falling:
            return 2.5 if place >= self.age else 0.1 + 2.2 * math.exp(-place / 10)
        return 1 + self.size / math.sqrt(self.batch) if place >= self.age else 1.0


STEPS = [
    *(Step(batch, age, size) for batch in (8, 32) for age in (30, 300) for size in (4, 8, 16)),
    *(Step(batch, 30, 0, falling=True) for batch in (8, 32)),
]


def first_alarm(detector: ShiftDetector, losses: np.ndarray) -> int | None:
    """Return how many losses it took to the first alarm, if there was one."""
    for number, loss in enumerate(losses.tolist(), start=1):
        if detector.update(Reading(loss)).shift:
            return number
    return None


def quiet(make: Make, noise: Any, runs: int, first: int = 0) -> dict[str, Any]:
    """Return run lengths without change, and alarms of one long run that goes on after each.

    `at_least` is the lower 95 % limit of the mean run length, were it exponential (exact for
    censored runs; with no alarm at all a third of the readings seen).
    """
    found = [
        first_alarm(make(), noise(np.random.default_rng([seed, 1]), LENGTH))
        for seed in range(first, first + runs)
    ]
    alarms = sum(length is not None for length in found)
    seen = sum(length or LENGTH for length in found)
    at_least = 2 * seen / float(chi2.ppf(0.95, 2 * alarms + 2))
    detector, losses = make(), noise(np.random.default_rng(first), LONG)
    long = sum(detector.update(Reading(loss)).shift for loss in losses.tolist())
    return {"runs": runs, "alarms": alarms, "at_least": round(at_least), f"in_{LONG}": long}


def delays(make: Make, step: Step, runs: int, first: int = 0) -> dict[str, Any]:
    """Return how many batches after a change the alarm came, and what came before it."""
    found, early = [], 0
    for seed in range(first, first + runs):
        detector = make()
        for place, reading in enumerate(step.readings(np.random.default_rng([seed, 2]))):
            if detector.update(reading).shift:
                if place >= step.age:
                    found.append(place - step.age)
                    break
                early += 1
    missed = runs - len(found)
    return {**vars(step), "early": early, **_delays(found, missed)}


def _delays(found: list[int], missed: int) -> dict[str, Any]:
    middle = median([*found, *[math.inf] * missed])
    return {
        "median": None if middle == math.inf else middle,
        "longest": max(found, default=None),
        "missed": missed,
        "runs": len(found) + missed,
    }


def replayed(make: Make, traces: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """Return alarms on recorded losses where nothing changes, and delays where it does.

    A network that never learned is given fresh weights, and its detector begins anew; what it read
    before is not in the trace, and a change that came before is left out.
    """
    rows: dict[tuple[str, int, int], list[int | None]] = {}
    for key, trace in traces.items():
        kind, batch, seed, age = key.split("|")
        if age != "0":
            continue
        ages = [int(other.rpartition("|")[2]) for other in traces if _same_run(key, other)]
        begun = max(max(ages) - len(trace), 0)
        detector, alarms = make(), 0
        for place, (loss, error) in enumerate(trace.tolist(), start=begun + 1):
            alarms += detector.update(Reading(loss, error, int(batch))).shift
            later = traces.get(f"{kind}|{batch}|{seed}|{place}")
            if later is not None:
                other = detector.fresh()
                other.load_state_dict(detector.state_dict())
                found = _replay(other, later, int(batch))
                rows.setdefault((kind, int(batch), place), []).append(found)
        rows.setdefault((kind, int(batch), 0), []).append(alarms)
    return [_row(*key, found) for key, found in sorted(rows.items())]


def _same_run(one: str, other: str) -> bool:
    return one.rpartition("|")[0] == other.rpartition("|")[0]


def _replay(detector: ShiftDetector, trace: np.ndarray, batch: int) -> int | None:
    for place, (loss, error) in enumerate(trace.tolist()):
        if detector.update(Reading(loss, error, batch)).shift:
            return place
    return None


def _row(kind: str, batch: int, age: int, found: list[int | None]) -> dict[str, Any]:
    row = {"stream": kind, "batch": batch, "age": age}
    if age == 0:
        return {**row, "false_alarms": sum(number or 0 for number in found)}
    late = [number for number in found if number is not None]
    return {**row, **_delays(late, len(found) - len(late))}


def stationary(files: list[Path]) -> None:
    """Count the alarms of every detector on traces without change, and keep them by batch size."""
    path = FOLDER / "stationary.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    found["command"] = "python benchmarks/detection_null.py --stationary FILES"
    traces = {key: trace for file in files for key, trace in np.load(file).items()}
    for name, make, _ in detectors():
        for key, trace in sorted(traces.items()):
            _, batch, seed, _ = key.split("|")
            detector, alarms = make(), []
            for place, (loss, error) in enumerate(trace.tolist()):
                if detector.update(Reading(loss, error, int(batch))).shift:
                    alarms.append(place)
            row = {"batches": len(trace), "alarms": len(alarms), "first": alarms[:5]}
            found.setdefault(name, {}).setdefault(f"batch {batch}", {})[f"seed {seed}"] = row
        print(name, found[name], flush=True)
    path.write_text(json.dumps(found, indent=1) + "\n")


def replay(files: list[Path], out: Path) -> None:
    """Show every detector the losses of these files, and nothing else."""
    traces = {key: trace for file in files for key, trace in np.load(file).items()}
    document: dict[str, Any] = {"command": "python benchmarks/detection_null.py --replay FILES"}
    for name, make, _ in detectors():
        document[name] = {"traces": replayed(make, traces)}
    out.write_text(json.dumps(document, indent=1) + "\n")


def promise(every: int, runs: int) -> dict[str, Any]:
    """Return the run length of the betting detector on noise of its null, beside its promise."""
    lengths = []
    for seed in range(runs):
        losses = exponential(np.random.default_rng([seed, 3]), 2 * every)
        detector = Betting(false_alarms_every=every)
        lengths.append(first_alarm(detector, losses) or 2 * every)
    low = fmean(lengths) - 1.645 * stdev(lengths) / math.sqrt(runs)
    promised = (1 - Betting().error) * every
    alarms = sum(length < 2 * every for length in lengths)
    return {"promised": promised, "at_least": low, "alarms": alarms, "censored_at": 2 * every}


def detectors() -> Iterator[tuple[str, Make, int]]:
    """Yield every detector that watches losses, and how much less it can be run."""
    for name in DETECTORS:
        if name == "label-set" or (name == "river" and find_spec("river") is None):
            continue
        yield name, DETECTORS.get(name), 10 if name == "river" else 1


def asked() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=FOLDER / "null.json")
    parser.add_argument("--traces", type=Path, nargs="*", default=[FOLDER / "traces.npz"])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", help="measure these anew, keep the rest of the file")
    parser.add_argument("--stationary", type=Path, nargs="*", default=[])
    parser.add_argument("--replay", type=Path, nargs="*", default=[])
    return parser.parse_args()


def main() -> None:
    """Measure everything and write one file."""
    options = asked()
    if options.stationary:
        stationary(options.stationary)
        return
    if options.replay:
        replay(options.replay, options.out)
        return
    traces = {key: trace for file in options.traces for key, trace in np.load(file).items()}
    document: dict[str, Any] = {"command": "python benchmarks/detection_null.py"}
    if options.only:
        document = json.loads(options.out.read_text()) if options.out.exists() else document
    else:
        document["promise"] = [promise(every, options.runs) for every in PROMISES]
        print(document["promise"], flush=True)
    for name, make, less in detectors():
        if options.only and name not in options.only:
            continue
        begun = time.perf_counter()
        runs, first = options.runs // less, options.first_seed
        document[name] = {
            "quiet": {noise.__name__: quiet(make, noise, runs, first) for noise in NOISES},
            "steps": [delays(make, step, 50 // less, first) for step in STEPS],
            "traces": replayed(make, traces),
        }
        print(name, document[name]["quiet"], round(time.perf_counter() - begun), "s", flush=True)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
