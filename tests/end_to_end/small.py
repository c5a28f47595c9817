"""A short form of the embedded split with the paper's networks: seconds, not half a minute."""

from tame.bench.experiment import Experiment, resolve
from tame.config import assignment

PRESET = "embedded-lenet"
SETTINGS = (
    "stream.passes=5",
    "stream.order=[0,1,0]",
    "selector.memory=300",
    "selector.training.epochs=20",
    "selector.retraining.epochs=5",
    "pruner.memory=300",
    "pruner.retraining.epochs=20",
)
SHORTER = (
    "stream.passes=2",
    "selector.training.epochs=5",
    "selector.retraining.epochs=2",
    "pruner.retraining.epochs=5",
)


def small_experiment(*settings: str) -> Experiment:
    return resolve(PRESET, [assignment(text) for text in (*SETTINGS, *settings)])
