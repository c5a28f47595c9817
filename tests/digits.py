"""A short stream of embedded digits whose pixels are reordered three times, to see who forgets."""

from functools import cache
from typing import Any

from tame.bench.metrics import evaluate
from tame.bench.telling import Telling
from tame.core.inputs import Inputs
from tame.streams.permute import Permute

NET = {"name": "mlp", "hidden": [64]}
INPUTS = Inputs(mean=(0.1307,), std=(0.3081,))


@cache
def digits():
    """Return the stream and its batches."""
    stream = Permute(segments=4, passes=2, batch=32).open(seed=0)
    return stream, list(stream.batches())


def kept(method: Any, settings: Any, seed: int = 0) -> float:
    """Return the accuracy on the first segment after learning all four."""
    stream, batches = digits()
    learner = method(net=NET, seed=seed, settings=settings)
    telling = Telling(learner.hints, stream.truth())
    for step, batch in enumerate(batches):
        telling.inform(learner, step)
        learner.observe(batch)
    rows = evaluate(learner, stream.truth(), stream.held_out(), {})
    return float(rows[0]["strict"])
