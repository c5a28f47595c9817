"""Learn from a labelled stream whose distribution changes without notice, and never forget.

>>> from tame import TAME, Batch
>>> learner = TAME(net="mlp", seed=0)
>>> learner.observe(Batch([[0.0, 1.0], [1.0, 0.0]], [7, 9])).expert
0
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tame.core.detectors.deviation import Deviation
    from tame.core.inputs import Inputs
    from tame.core.learner import TAME
    from tame.core.prune import Magnitude
    from tame.core.routed import RoutedModel
    from tame.core.selector import NetworkSelector
    from tame.core.settings import Settings, Training
    from tame.engine.world import join
    from tame.errors import TameError
    from tame.loading import load
    from tame.types import Batch, Change, Consolidation, Hints, Observation, Reading

_WHERE = {
    "TAME": "tame.core.learner",
    "Batch": "tame.types",
    "Change": "tame.types",
    "Consolidation": "tame.types",
    "Deviation": "tame.core.detectors.deviation",
    "Hints": "tame.types",
    "Inputs": "tame.core.inputs",
    "Magnitude": "tame.core.prune",
    "NetworkSelector": "tame.core.selector",
    "Observation": "tame.types",
    "Reading": "tame.types",
    "RoutedModel": "tame.core.routed",
    "Settings": "tame.core.settings",
    "TameError": "tame.errors",
    "Training": "tame.core.settings",
    "join": "tame.engine.world",
    "load": "tame.loading",
}

__version__ = "0.1.0"
__all__ = [
    "TAME",
    "Batch",
    "Change",
    "Consolidation",
    "Deviation",
    "Hints",
    "Inputs",
    "Magnitude",
    "NetworkSelector",
    "Observation",
    "Reading",
    "RoutedModel",
    "Settings",
    "TameError",
    "Training",
    "join",
    "load",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'tame' has no attribute '{name}'")
    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
