"""A training broken off at any batch and taken up again ends as if it had never been."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from tame.checkpoint import pack, unpack
from tame.checks.failure import difference
from tame.core.augment import Affine
from tame.core.thinning import open_masks
from tame.engine.fitting import Job, Samples, fit
from tame.engine.halfway import ended
from tame.engine.journal import Journal, next_note
from tame.engine.randomness import torch_generator
from tame.engine.recipe import Recipe

SGD = Recipe(epochs=3, batch=16, rate=0.05, nesterov=True, augment=Affine(), cutmix=0.5)
ADAM = Recipe(epochs=3, batch=16, rate=0.01, optimiser="adam", schedule="constant")
ROUNDS = 3 * 4  # 50 samples


class BrokenOffError(Exception):
    """What is raised instead of Ctrl-C."""


def net() -> nn.Module:
    with torch.random.fork_rng([]):
        torch.manual_seed(3)
        layers = (nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
        return nn.Sequential(*layers, nn.Dropout(0.3), nn.Linear(4 * 36, 4))


def jobs(count: int = 1, device: str = "cpu") -> list[Job]:
    draws = torch_generator(1)
    x = torch.rand(50, 1, 8, 8, generator=draws)
    samples = Samples(x, torch.arange(50) % 4, prepare, 4).to(torch.device(device))
    made = [net().to(device) for _ in range(count)]
    return [
        Job(one, samples, torch_generator(place), open_masks(one, {}))
        for place, one in enumerate(made)
    ]


def prepare(x, augment, odds):
    return x if augment is None else augment(x, odds)


def halve(group, done):
    """Prune more and more, as pruners do between batches."""
    for job in group:
        for mask in job.masks.values():
            mask.view(-1)[: int(done * mask.numel() / 2)] = False


def series(made: list[Job], recipe: Recipe) -> dict[str, object]:
    """Train twice, as a selector is: at first, and once more on the same generators."""
    fit(made, recipe, between=halve)
    fit(made, replace(recipe, epochs=1, rate=recipe.rate / 10))
    return ended(made)


def broken_off(
    recipe: Recipe, count: int, moments: list[int], device: str = "cpu"
) -> dict[str, object]:
    """Do the series, broken off at these batches one after the other, from notes on disk."""
    kept: list[bytes] = []
    for moment in moments:
        asked = iter(range(1, 10_000))

        def save(notes):
            kept.append(pack({}, notes))
            raise BrokenOffError

        held = unpack(kept[-1], "notes")[1] if kept else None
        journal = Journal(held, save, lambda asked=asked, moment=moment: next(asked) == moment)
        with pytest.raises(BrokenOffError), journal.open():
            series(jobs(count, device), recipe)
    with Journal(unpack(kept[-1], "notes")[1]).open():
        return series(jobs(count, device), recipe)


@pytest.mark.parametrize("recipe", [SGD, ADAM], ids=["sgd", "adam"])
@pytest.mark.parametrize("moment", [1, 2, 4, 5, 11, ROUNDS, ROUNDS + 1, ROUNDS + 4])
def test_a_training_broken_off_at_a_batch_ends_the_same(recipe, moment):
    assert difference(broken_off(recipe, 1, [moment]), series(jobs(), recipe)) is None


def test_again_and_again_and_with_several_networks():
    found = broken_off(SGD, 2, [3, 3, 7, 9, 5])
    assert difference(found, series(jobs(2), SGD)) is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("recipe", [SGD, ADAM], ids=["sgd", "adam"])
def test_recorded_steps_go_on_too(recipe):
    found = broken_off(recipe, 3, [5, 4, 9], "cuda")
    wanted = series(jobs(3, "cuda"), recipe)
    for one, other in zip(found["nets"], wanted["nets"], strict=True):
        for name, tensor in one.items():
            assert torch.allclose(tensor.float(), other[name].float(), atol=1e-4), name


def test_what_was_finished_is_not_trained_again(monkeypatch):
    notes = []
    with Journal(save=notes.append, due=lambda: True).open():
        series(jobs(), SGD)
    monkeypatch.setattr("tame.engine.fitting._train", None)
    last = {"notes": [*notes[-1]["notes"][:1]]}
    with Journal(last).open():
        made = jobs()
        fit(made, SGD, between=halve)
    wanted = jobs()
    monkeypatch.undo()
    fit(wanted, SGD, between=halve)
    assert difference(ended(made), ended(wanted)) is None
    assert not made[0].net.training


def test_without_a_journal_nothing_is_noted():
    with Journal().open():
        assert next_note().found == {}
    note = next_note()
    note.finished(lambda: {"net": 1})
    note.reached(lambda: pytest.fail("nobody asked for it"))
    assert note.found == {}
