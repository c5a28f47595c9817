"""The packaged grids on the real data: what they hold is what the comparison promises."""

from pathlib import Path

import pytest

from tame.bench.grid import read_grid, read_plan
from tame.bench.grids import grids
from tame.bench.tuning import trials
from tame.methods.convolutions import Channels
from tame.registry import METHODS

PUBLISHED = ("ewc", "si", "rwalk", "agem")
REFERENCES = ("finetune", "joint", "er", "er-ace", "der++", "gdumb", "slda", "ranpac", "ncm")


@pytest.fixture(params=[name for name, _ in grids()])
def name(request):
    return request.param


def test_every_cell_resolves_and_every_tuned_row_has_as_many_trials(name):
    grid = read_grid(name)
    assert len({cell.folder(Path("x")) for cell in grid.cells}) == len(grid.cells)
    trials(read_plan(name))


def test_permuted_mnist_has_every_method_in_the_published_batches():
    grid = read_grid("permuted-mnist")
    seeds = {row: sum(cell.row == row for cell in grid.cells) for row in grid.rows}
    assert {*PUBLISHED, *REFERENCES, "den", "bgd", "cndpm", "tame", "oracle"} <= set(grid.rows)
    assert {row: n for row, n in seeds.items() if n != 3} == {"bgd": 1}
    for cell in grid.cells:
        told = cell.experiment.method in PUBLISHED
        stream = cell.experiment.stream
        assert (stream.segments, stream.passes, stream.batch) == (20, 1, 10 if told else 128)
        if told:
            assert cell.experiment.settings.training.momentum == 0
            assert cell.experiment.settings.heads == "shared"


def test_split_mnist_has_every_method_on_global_labels():
    grid = read_grid("split-mnist")
    beside = {"reset"}  # for labels that change their meaning
    assert {cell.experiment.method for cell in grid.cells} == set(METHODS) - beside
    for cell in grid.cells:
        stream = cell.experiment.stream
        assert (stream.labels, stream.division, stream.passes) == ("global", "seeded", 4)
        if cell.experiment.method in PUBLISHED:
            assert cell.experiment.settings.heads == "task"
    once = {cell.experiment.method for cell in grid.cells} - {
        cell.experiment.method for cell in grid.cells if cell.seed == 2
    }
    assert once == {"bgd", "hcl"}


def test_replay_runs_at_tames_bytes():
    for name, images in (("permuted-mnist", 125_000), ("split-mnist", 7_500)):
        rows = {cell.row: cell.experiment for cell in read_grid(name).cells}
        tame = rows["tame"].settings
        experts = 20 if name == "permuted-mnist" else 5
        assert tame.selector.memory + experts * tame.pruner.memory == images
        allowed = rows["er at TAME's bytes"].settings.memory_bytes
        assert 0.95 < allowed / (images * (784 + 16)) < 1.05


def test_the_large_nets_are_on_a_gpu():
    for name in ("split-cifar100-20", "table2"):
        assert {cell.experiment.device for cell in read_grid(name).cells} == {"cuda"}


def test_colour_images_are_seen_by_convolutional_experts_of_the_published_sizes():
    rows = {cell.row: cell.experiment.settings for cell in read_grid("split-cifar100-20").cells}
    settings = rows["cndpm"]
    assert (settings.form, settings.channels) == ("conv", Channels(32, 4, 20, 4))
    assert (settings.latent, settings.draws, settings.memory, settings.slots) == (64, 16, 1000, 100)
    rates = settings.rates
    assert (rates.density, rates.classifier, rates.after_sleep) == (1e-4, 2e-4, 0.2)
    assert (rates.density_steps, rates.classifier_steps, rates.batch) == (4000, 1000, 50)
