"""Write the golden checkpoint of format 1: `python tests/golden/make_format1.py`.

The file stays in the tests for good. Rewrite it only while no version of this format has been
released; afterwards a change of layout is a new format, and this file must still load.
"""

import json
from pathlib import Path

import torch

from tame import TAME, Batch, Deviation, Magnitude, NetworkSelector, Settings
from tame.checks.material import world
from tame.engine.recipe import Recipe

HERE = Path(__file__).parent
MODEL, EXPECTED = HERE / "format1.tame", HERE / "format1.json"
QUICK = Recipe(epochs=20, batch=16, rate=0.05)


def make() -> TAME:
    """Return a learner with two experts, consolidated, and then gone on a little."""
    settings = Settings(
        slots=4,
        detector=Deviation(window=30),
        selector=NetworkSelector(memory=48, training=QUICK, retraining=QUICK),
        pruner=Magnitude(sparsity=0.5, memory=24, retraining=QUICK),
    )
    learner = TAME(net={"name": "mlp", "hidden": [8]}, seed=1, settings=settings)
    for batch in named(world(80) + world(80, offset=2, seed=1)):
        learner.observe(batch)
    learner.consolidate()
    for batch in named(world(3, offset=2, seed=2)):
        learner.observe(batch)
    return learner


def named(batches: list[Batch]) -> list[Batch]:
    """Return the batches with labels that are not their slots."""
    return [Batch(batch.x, 10 * batch.y + 5) for batch in batches]


def samples() -> torch.Tensor:
    """Return inputs of both worlds, on a grid that JSON keeps exactly."""
    batches = world(2, seed=3) + world(2, offset=2, seed=4)
    return torch.cat([batch.x for batch in batches]).mul(64).round().div(64)


def expected(learner: TAME, x: torch.Tensor) -> dict[str, object]:
    """Return what is to be the same whenever the file is loaded."""
    return {
        "ever": learner.predict(x).tolist(),
        "now": learner.predict(x, when="now").tolist(),
        "route": learner.route(x).tolist(),
        "expert_ids": list(learner.expert_ids),
        "sizes": vars(learner.sizes()),
    }


def write() -> None:
    """Write both files."""
    torch.set_num_threads(1)
    learner, x = make(), samples()
    learner.save(MODEL)
    EXPECTED.write_text(json.dumps({"x": x.tolist(), **expected(learner, x)}) + "\n")


if __name__ == "__main__":
    write()
