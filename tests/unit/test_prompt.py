"""The immediate conduct remembers a batch while the next one is measured, or sooner if asked."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import tame
from tame import TAME, Batch, Settings
from tame.core.conduct import Immediate

BATCH = 8


def learner() -> TAME:
    return TAME(net="mlp", settings=Settings(conduct=Immediate()))


def batch(seed: int) -> Batch:
    draws = torch.Generator().manual_seed(seed)
    return Batch(torch.rand(BATCH, 4, generator=draws), torch.arange(BATCH) % 2)


def remembered(one: TAME) -> list[list[float]]:
    return sorted(one.remembered(0)[0].tolist())


def test_a_batch_is_remembered_as_soon_as_anyone_asks() -> None:
    one = learner()
    for count in (1, 2, 3):
        one.observe(batch(count))
        assert len(one.remembered(0)[0]) == count * BATCH
        assert one.sizes().samples == 2 * count * BATCH  # by the expert and the selector


def test_what_is_remembered_was_taken_before_its_giver_changed_it() -> None:
    one, given = learner(), batch(0)
    kept = given.x.clone()
    one.observe(given)
    given.x.fill_(0.5)
    assert remembered(one) == sorted(kept.tolist())


def through_file(one: TAME, folder: Path) -> Any:
    one.save(folder / "model.tame")
    return tame.load(folder / "model.tame")


@pytest.mark.parametrize("twin", [lambda one, _: copy.deepcopy(one), through_file])
def test_a_copy_has_the_last_batch_once_and_goes_on_alike(
    twin: Callable[[TAME, Path], Any], tmp_path: Path
) -> None:
    one = learner()
    one.observe(batch(0))
    other = twin(one, tmp_path)
    other.observe(batch(1))
    assert len(one.remembered(0)[0]) == BATCH
    one.observe(batch(1))
    assert remembered(one) == remembered(other)
    assert len(remembered(one)) == 2 * BATCH


def test_consolidation_sees_the_last_batch() -> None:
    one = learner()
    one.observe(batch(0))
    one.consolidate()
    assert len(one.remembered(0)[0]) == BATCH
