"""The learner on the embedded digits: returns recognised, also when consolidating all along."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from embedded import lifelong
from small import small_experiment

from tame.streams.embedded import read

SHARED = Path(__file__).parents[3] / "shared" / "data"


@pytest.mark.parametrize(("order", "experts"), [([0, 1, 0], 2), ([0, 1, 2, 1, 3], 4)])
def test_lifelong_consolidation_keeps_the_experts(order, experts):
    experiment = small_experiment(
        "stream.passes=6",
        f"stream.order={order}",
        "pruner.memory=500",
        "pruner.retraining.epochs=40",
    )
    row = lifelong("returns", experiment)
    assert row["experts"] == experts
    assert row["false_alarms"] == 0
    assert row["missed"] == 0
    assert row["oracle"] > 0.9


def test_the_sheet_is_the_one_described():
    data = read()
    digest = hashlib.sha256(data.x.tobytes() + data.held_x.tobytes()).hexdigest()
    assert digest[:16] == "9c4e171e612ccd62"
    assert np.bincount(data.y).tolist() == [400] * 10
    assert np.bincount(data.held_y).tolist() == [100] * 10


@pytest.mark.skipif(not SHARED.is_dir(), reason="the full MNIST sheets are not here")
def test_every_image_is_one_of_mnists():
    from PIL import Image

    known = set()
    for sheet in sorted((SHARED / "mnist").glob("train-*.webp")):
        pixels = np.asarray(Image.open(sheet).convert("L"))
        rows = pixels.reshape(-1, 28, 100, 28).swapaxes(1, 2).reshape(-1, 28 * 28)
        known.update(row.tobytes() for row in rows)
    data = read()
    everything = np.concatenate([data.x, data.held_x]).reshape(-1, 28 * 28)
    assert all(image.tobytes() in known for image in everything)
