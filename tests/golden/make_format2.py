"""Write the golden checkpoint of format 2: `python tests/golden/make_format2.py`.

It holds packed experts, one of which was awake again in between, and reservoirs under a cap. The
file stays in the tests for good. Rewrite it only while no version of this format has been
released; afterwards a change of layout is a new format, and this file must still load.
"""

import json
from pathlib import Path

import torch
from make_format1 import QUICK, expected, named, samples

from tame import TAME, Deviation, Magnitude, NetworkSelector, Settings
from tame.checks.material import world

HERE = Path(__file__).parent
MODEL, EXPECTED = HERE / "format2.tame", HERE / "format2.json"


def make() -> TAME:
    """Return a learner with three experts, two of them packed, and then gone on a little."""
    settings = Settings(
        slots=4,
        reservoir_bytes=7000,
        detector=Deviation(window=30),
        selector=NetworkSelector(memory=48, training=QUICK, retraining=QUICK),
        pruner=Magnitude(sparsity=0.5, memory=64, retraining=QUICK),
    )
    learner = TAME(net={"name": "mlp", "hidden": [8]}, seed=1, settings=settings)
    for offset, seed, batches in ((0, 0, 80), (2, 1, 80), (0, 2, 30), (5, 3, 80)):
        for batch in named(world(batches, offset=offset, seed=seed)):
            learner.observe(batch)
        learner.consolidate()
    for batch in named(world(3, offset=5, seed=4)):
        learner.observe(batch)
    return learner


def kept(learner: TAME, x: torch.Tensor) -> dict[str, object]:
    """Return what is to be the same whenever the file is loaded."""
    pool = learner._pool
    assert pool is not None
    by = {str(number): learner.predict_by(x, number).tolist() for number in learner.expert_ids}
    memory = [expert.memory.keys().tolist() for expert in pool.experts]
    return {**expected(learner, x), "packed": pool.shelf.ids.tolist(), "by": by, "keys": memory}


def write() -> None:
    """Write both files."""
    torch.set_num_threads(1)
    learner, x = make(), samples()
    learner.save(MODEL)
    EXPECTED.write_text(json.dumps({"x": x.tolist(), **kept(learner, x)}) + "\n")


if __name__ == "__main__":
    write()
