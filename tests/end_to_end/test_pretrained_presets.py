"""The presets over pre-trained features: one learner for all three streams, inside its size."""

from dataclasses import replace

import pytest

from tame.bench.experiment import resolve
from tame.bench.presets import read_preset
from tame.bench.run import Unwatched, start

STREAMS = [
    ("split-cifar100-20", 20, 5, 7500 + 20 * 200),
    ("split-cifar100-10", 10, 10, 7500 + 10 * 200),
    ("split-cifar10-5", 5, 2, 7500 + 5 * 200),
]
NAMES = [name for name, *_ in STREAMS]
IMAGE = 3 * 32 * 32
KEYS = 16  # of an entry: a key of eight bytes, label and expert
TRAINING = {10: 115_280, 100: 1_844_480}  # what training an expert needs, by labels, as runs tell
WIDTH, TRUNK = 1280, 3_371_008
PAPER = 9_020_000


def test_all_streams_have_the_same_learner():
    one, *others = (resolve(name) for name in NAMES)
    for other in others:
        kept = replace(other.settings.selector, memory=one.settings.selector.memory)
        assert one.net == other.net
        assert one.settings == replace(other.settings, selector=kept)


@pytest.mark.parametrize(("name", "experts", "classes", "images"), STREAMS, ids=NAMES)
def test_what_is_kept_takes_no_more_bytes_than_the_papers_images(name, experts, classes, images):
    settings = resolve(name).settings
    coded = int(settings.selector.codec.share * IMAGE) + KEYS
    own = experts * settings.pruner.memory * (IMAGE + KEYS - 4)
    sums = 4 * (WIDTH * (WIDTH + 1) // 2 + experts * classes * (WIDTH + 1))
    assert (
        settings.selector.memory * coded + own + sums + TRAINING[experts * classes]
        <= images * IMAGE
    )


@pytest.mark.parametrize(
    ("name", "experts", "classes"), [stream[:3] for stream in STREAMS], ids=NAMES
)
def test_trunk_selector_and_experts_are_smaller_than_the_papers(name, experts, classes):
    settings = resolve(name).settings
    labels = experts * classes
    selector = TRUNK + 2 * labels * (WIDTH + 1)  # its network and the statistics' rule
    assert TRUNK + selector + experts * settings.pruner.nonzero <= PAPER


@pytest.mark.parametrize("name", NAMES)
def test_one_pass_is_all_it_takes(name):
    assert resolve(f"{name}-one-pass").stream == resolve(name).stream
    assert read_preset(name)["method"] == "tame"


def test_a_short_run_in_miniature(tmp_path):
    tiny = {"name": "efficientnet-lite0", "weights": ""}
    experiment = resolve(
        "split-cifar10-5",
        [
            {
                "stream": {"data": "embedded", "order": [0, 1], "batch": 16},
                "inputs": {"size": [32, 32], "trunk": tiny},
                "selector": {
                    "net": {"name": "convnet", "widths": [4, 4, 4, 4], "halved": [0, 1, 3]},
                    "inputs": {"size": [32, 32]},
                    "memory": 64,
                    "training": {"epochs": 1, "augment": {"name": "crop", "padding": 2}},
                },
            }
        ],
    )
    result = start(experiment, tmp_path / "run", Unwatched())
    assert result["experts"] >= 1
    assert result["parameters"]["nonzero"] > 3_300_000
