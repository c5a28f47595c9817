"""Any drift detector of River, judging standardised losses."""

import copy
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar, Literal, Self, get_args

from tame.core.detectors.baseline import Baseline
from tame.errors import ConfigError
from tame.types import Reading, State, Verdict

Kind = Literal["ADWIN", "KSWIN", "PageHinkley", "DDM", "EDDM", "FHDDM", "HDDMA", "HDDMW"]
BINARY = ("DDM", "EDDM", "FHDDM", "HDDMA", "HDDMW")
USUAL: dict[str, dict[str, Any]] = {
    "ADWIN": {"delta": 1e-5, "clock": 1, "min_window_length": 1},
    "KSWIN": {"seed": 0},
}


@dataclass
class River:
    """Alarm when River's detector of this `kind` sees drift, and the loss lies above its mean.

    River is shown the loss in deviations from the mean of the last 100 (see `Baseline`); the DDM
    family, made for errors, is shown whether that exceeds one. `options` are the River detector's
    own settings; ADWIN looks at every reading and at the shortest windows, with a confidence
    that keeps it quiet on exponential noise, unless they say otherwise. Losses that fall are no
    shift: River's detector then starts anew by itself, and the expert goes on.

    River's objects cannot be saved but by pickle. So this keeps what its object was shown since it
    was made, and shows it again to a new one on loading: the same numbers in the same order give
    the same object. When that is 2 x `memory` readings, a new object is made and shown the last
    `memory`, in a run that was never interrupted as in one that was.

    River is an extra: `pip install 'tame[river]'`.
    """

    compares: ClassVar[str] = "standardised loss"

    kind: Kind = "ADWIN"
    options: Any = field(default_factory=dict)
    memory: int = 500
    floor: float = 0.005
    burn_in: int = 20
    _inner: Any = field(init=False, default=None, repr=False, compare=False)
    _shown: list[float] = field(init=False, default_factory=list, repr=False)
    _usual: Baseline = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(f"kind is one of {', '.join(get_args(Kind))}, not {self.kind}")
        if self.memory < 1:
            raise ValueError(f"memory is 1 or more, not {self.memory}")
        self._usual = Baseline(100, self.floor, self.burn_in)

    def fresh(self) -> Self:
        made = type(self)(self.kind, dict(self.options), self.memory, self.floor, self.burn_in)
        made._inner = made._replayed([])  # noqa: SLF001 (its own; River is needed from here on)
        return made

    def accepts(self, reading: Reading) -> bool:
        return not self._judge(reading)[0].shift

    def update(self, reading: Reading) -> Verdict:
        verdict, inner = self._judge(reading)
        if verdict.shift:
            return verdict
        if self._usual.is_ready:
            self._keep(verdict.statistic, inner)
        self._usual.add(reading)
        return verdict

    def rebase(self, readings: list[Reading]) -> None:
        self._usual.rebase(readings)
        shown = [self._usual.standardised(reading) for reading in readings]
        self._shown = shown[-self.memory :]
        self._inner = self._replayed(self._shown)

    def state_dict(self) -> State:
        return {"shown": list(self._shown), **self._usual.state_dict()}

    def load_state_dict(self, state: State) -> None:
        self._usual.load_state_dict(state)
        self._shown = list(state["shown"])
        self._inner = self._replayed(self._shown)

    def _judge(self, reading: Reading) -> tuple[Verdict, Any]:
        """Return the verdict, and River's object as it is after the reading."""
        if not math.isfinite(reading.loss):
            return Verdict(shift=True, statistic=math.inf, threshold=math.nan), self._inner
        if not self._usual.is_ready:
            return Verdict(shift=False, statistic=0.0, threshold=math.nan), self._inner
        z = self._usual.standardised(reading)
        inner = self._replayed([]) if self._inner is None else copy.deepcopy(self._inner)
        inner.update(self._form(z))
        return Verdict(bool(inner.drift_detected) and z > 0, z, math.nan), inner

    def _keep(self, z: float, inner: Any) -> None:
        self._shown.append(z)
        self._inner = inner
        if len(self._shown) >= 2 * self.memory:
            del self._shown[: -self.memory]
            self._inner = self._replayed(self._shown)

    def _form(self, z: float) -> float | bool:
        if self.kind == "FHDDM":  # it is told what was right, the others what was wrong
            return z <= 1
        return z > 1 if self.kind in BINARY else z

    def _replayed(self, shown: Iterable[float]) -> Any:
        inner = _find(self.kind)(**{**USUAL.get(self.kind, {}), **self.options})
        for z in shown:
            inner.update(self._form(z))
        return inner


def _find(kind: str) -> Any:
    try:
        module = import_module("river.drift.binary" if kind in BINARY else "river.drift")
    except ImportError as error:
        raise ConfigError(
            "the detector 'river' needs River; install it: pip install 'tame[river]'"
        ) from error
    return getattr(module, kind)
