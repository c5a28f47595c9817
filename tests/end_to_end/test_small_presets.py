"""The small learner's presets: one learner for both streams, inside its size."""

from dataclasses import replace

import pytest

from tame.bench.experiment import resolve
from tame.bench.presets import read_preset
from tame.bench.run import Unwatched, start
from tame.nets import resolve as resolve_net

SPLIT, PERMUTED, DOMAIN = 37_000, 55_500, 62_000
IMAGE = 784
BESIDE = 16  # a key of eight bytes, label and expert
COSINES = 28 * 28  # what the codec multiplies images with


def short(preset: str, **stream: object):
    quick = {"epochs": 2}
    return resolve(
        preset,
        [
            {
                "stream": {"data": "embedded", "passes": 1, "batch": 32, **stream},
                "selector": {"training": quick},
                "pruner": {"retraining": quick},
            }
        ],
    )


def test_both_streams_have_the_same_learner():
    split, permuted = resolve("split-mnist"), resolve("permuted-mnist")
    assert split.net == permuted.net
    one, other = split.settings, permuted.settings
    assert one.pruner == replace(other.pruner, memory=one.pruner.memory, nonzero=one.pruner.nonzero)
    assert one.selector == replace(other.selector, memory=one.selector.memory)
    assert one == replace(other, pruner=one.pruner, selector=one.selector)


def test_sizes_are_the_papers():
    settings = resolve("split-mnist").settings
    assert 5 * settings.pruner.nonzero + settings.selector.nonzero + COSINES <= SPLIT
    settings = resolve("permuted-mnist").settings
    rule = round(20 * (IMAGE * (1 - settings.selector.sparsity) + 1))
    assert 20 * settings.pruner.nonzero + rule <= PERMUTED


@pytest.mark.parametrize(
    ("preset", "experts", "images"),
    [("split-mnist", 5, 2500 + 5 * 1000), ("permuted-mnist", 20, 5000 + 20 * 6000)],
)
def test_reservoirs_take_no_more_bytes_than_the_papers(preset: str, experts: int, images: int):
    settings = resolve(preset).settings
    coded = round(settings.selector.codec.share * IMAGE)
    kept = settings.selector.memory * (coded + BESIDE)
    kept += experts * settings.pruner.memory * (IMAGE + BESIDE - 4)
    assert kept <= images * IMAGE


@pytest.mark.parametrize("preset", ["svhn-mnist", "mnist-svhn"])
def test_experts_of_digits_in_colour_are_as_small_as_the_papers(preset: str):
    experiment = resolve(preset)
    net = resolve_net(experiment.net)((3, 32, 32), 10)
    assert sum(parameter.numel() for parameter in net.parameters()) <= DOMAIN
    assert not experiment.stream.own_normalisation  # nothing tells the domain
    settings, image = experiment.settings, 3 * 32 * 32
    kept = settings.selector.memory * (image + BESIDE)
    kept += 2 * settings.pruner.memory * (image + BESIDE - 4)
    assert kept <= (2500 + 2 * 1000) * image


@pytest.mark.parametrize("name", ["split-mnist", "permuted-mnist"])
def test_one_pass_changes_the_stream_alone(name: str):
    once, often = resolve(f"{name}-one-pass"), resolve(name)
    assert (once.stream.passes, often.stream.passes) == (1, 10)
    assert once.settings == often.settings
    assert read_preset(name)["method"] == "tame"


def test_a_short_split_meets_the_count_exactly(tmp_path):
    result = start(short("split-mnist", order=[0, 1, 2]), tmp_path / "run", Unwatched())
    settings = resolve("split-mnist").settings
    assert result["experts"] == 3
    assert (
        result["parameters"]["nonzero"] == 3 * settings.pruner.nonzero + settings.selector.nonzero
    )


def test_permuted_pixels_are_routed_by_the_rule(tmp_path):
    result = start(short("permuted-mnist", segments=2, passes=2), tmp_path / "run", Unwatched())
    settings = resolve("permuted-mnist").settings
    assert result["experts"] == 2
    assert result["selector_accuracy"] > 0.99
    assert result["parameters"]["nonzero"] == 2 * settings.pruner.nonzero + 2 * (392 + 1)
