"""Small learners and streams that the tests share."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tame import TAME, Batch, Deviation, Magnitude, NetworkSelector, Observation, Settings, load
from tame.checks.failure import difference
from tame.checks.material import world
from tame.core.conduct import Immediate
from tame.engine.lesson import Lesson
from tame.engine.recipe import Recipe
from tame.methods.cndpm import CNDPMSettings
from tame.methods.dreaming import Rates
from tame.methods.gdumb import GDumbSettings
from tame.methods.hcl import HCLSettings
from tame.methods.ranpac import RanPACSettings
from tame.registry import METHODS

NET = {"name": "mlp", "hidden": [16]}
QUICK = Recipe(epochs=8, batch=32, rate=0.05)
STEADY = 60


def small_settings(**changes: Any) -> Settings:
    """Return settings under which a tiny network detects, switches and consolidates quickly."""
    parts = {
        "detector": Deviation(window=30),
        "conduct": Immediate(),
        "selector": NetworkSelector(memory=64, training=QUICK, retraining=QUICK),
        "pruner": Magnitude(sparsity=0.5, memory=64, retraining=QUICK),
    }
    return Settings(**(parts | changes))


def small_tame(seed: int = 0, net: Any = None, **changes: Any) -> TAME:
    """Return a learner of such settings."""
    return TAME(net=net or NET, seed=seed, settings=small_settings(**changes))


def lesson(x: Any, slots: Any, live: int, device: str = "cpu") -> Lesson:
    """Return a batch as a network takes it, with no input step before it."""
    return Lesson(x, slots, live, nn.Identity(), device)


def small_cndpm(**changes: Any) -> CNDPMSettings:
    """Return settings under which vectors of eight floats are learned in a few steps."""
    rates = Rates(5e-3, 1e-2, density_steps=40, classifier_steps=40, batch=16)
    parts = {"log_alpha": -20.0, "memory": 48, "width": 16, "later": 8, "latent": 4, "draws": 2}
    return CNDPMSettings(**({"temperature": 1.0, "rates": rates} | parts | changes))


def small_hcl(**changes: Any) -> HCLSettings:
    """Return settings under which a small flow learns vectors of eight floats."""
    parts = {"couplings": 3, "hidden": 24, "distance": 3.0, "rate": 5e-3, "width": 8.0}
    return HCLSettings(**(parts | changes))


def small_gdumb(**changes: Any) -> GDumbSettings:
    """Return settings under which a small memory is learned in a few passes."""
    parts = {"memory": 60, "cycles": 4, "recipe": Recipe(batch=16, rate=0.05)}
    return GDumbSettings(**(parts | changes))


SMALL: dict[str, Callable[[], Any]] = {
    "tame": small_settings,
    "oracle": small_settings,
    "cndpm": small_cndpm,
    "hcl": small_hcl,
    "gdumb": small_gdumb,
    "ranpac": lambda: RanPACSettings(width=40),
}


def small_method(name: str, seed: int) -> Any:
    """Return a small learner of any registered method; a new one comes with its defaults."""
    method = METHODS.get(name)
    settings = SMALL.get(name, method.settings_type)()
    return method(net=NET, seed=seed, settings=settings)


def a(batches: int = STEADY, seed: int = 0) -> list[Batch]:
    """Return the first of three worlds that give the same four labels other inputs."""
    return world(batches, offset=0, seed=seed)


def b(batches: int = STEADY, seed: int = 1) -> list[Batch]:
    """Return the second world."""
    return world(batches, offset=2, seed=seed)


def c(batches: int = STEADY, seed: int = 2) -> list[Batch]:
    """Return the third world."""
    return world(batches, offset=5, seed=seed)


def feed(learner: Any, batches: Iterable[Batch]) -> list[Observation]:
    """Observe every batch and return the records; nothing is left for later."""
    seen = [learner.observe(batch) for batch in batches]
    learner.sizes()
    return seen


def survives_saving(learner: TAME, path: Path) -> bool:
    """Say whether a saved and loaded learner has the same state and answers alike."""
    learner.save(path)
    other = load(path)
    x = torch.cat([batch.x for batch in a(4, seed=7) + b(4, seed=8)])
    same = difference(learner.state_dict(), other.state_dict()) is None
    return same and torch.equal(learner.predict(x), other.predict(x))


def changes(seen: Iterable[Observation]) -> list[tuple[int, str, int]]:
    """Return the steps where something changed: step, change, expert."""
    return [(s.step, s.change.value, s.expert) for s in seen if s.change != "none"]
