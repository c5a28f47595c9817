"""Measurements come in units of their own; the first of a stream tell their scale."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tame import TAME, Batch, Settings, load
from tame.checks.failure import difference
from tame.core.defaults import AUTO
from tame.core.inputs import Inputs, InputStep
from tame.core.selector import NetworkSelector
from tame.core.standard import Standard

WORLDS = ((0, 60), (1, 60), (0, 20))
OFFSETS = np.array([20.0, -5.0, 1013.0, 0.0, 0.4, 300.0])
UNITS = np.array([0.01, 3.0, 1000.0, 1.0, 0.2, 50.0])


def readings(units: np.ndarray, offsets: np.ndarray, worlds=WORLDS, seed: int = 0):
    """Yield batches of six sensors under two conditions, three states to tell apart."""
    draws = np.random.default_rng(seed)
    for world, count in worlds:
        centres = np.random.default_rng(7 + world).normal(size=(3, 6)) * 1.5
        for _ in range(count):
            y = draws.integers(0, 3, 32)
            x = centres[y] + draws.normal(size=(32, 6))
            yield Batch((x * units + offsets).astype(np.float32), y)


def accuracy(learner: TAME, units: np.ndarray, offsets: np.ndarray) -> float:
    held = list(readings(units, offsets, ((0, 5), (1, 5)), seed=1))
    right = [(learner.predict(x) == y).double().mean() for x, y in held]
    return float(torch.stack(right).mean())


def learned(units: np.ndarray, offsets: np.ndarray, net: str = AUTO) -> TAME:
    learner = TAME(net)
    for batch in readings(units, offsets):
        learner.observe(batch)
    learner.consolidate()
    return learner


def test_units_do_not_matter():
    plain = learned(np.ones(6), np.zeros(6))
    odd = learned(UNITS, OFFSETS)
    assert plain.expert_ids == odd.expert_ids == (0, 1)
    assert accuracy(plain, np.ones(6), np.zeros(6)) > 0.9
    assert accuracy(odd, UNITS, OFFSETS) > 0.9


def test_without_it_they_do():
    odd = learned(UNITS, OFFSETS, net="mlp")
    assert accuracy(odd, UNITS, OFFSETS) < 0.7


def test_a_power_of_two_changes_no_bit():
    one, other = TAME(), TAME()
    for small, large in zip(
        readings(np.ones(6), np.zeros(6)), readings(np.full(6, 1024.0), np.zeros(6)), strict=True
    ):
        assert one.observe(small) == other.observe(large)


def test_the_scale_is_that_of_the_first_samples_and_stays():
    standard = Standard((2,), enough=64)
    draws = torch.Generator().manual_seed(0)
    for _ in range(2):
        standard.follow(torch.randn(32, 2, generator=draws) * torch.tensor([100.0, 0.1]) + 7)
    before = standard.state()
    standard.follow(torch.full((32, 2), 1e6))
    assert difference(before, standard.state()) is None
    x = torch.randn(1000, 2, generator=draws) * torch.tensor([100.0, 0.1]) + 7
    assert standard(x).mean(0).abs().max() < 0.3
    assert ((standard(x).std(0) > 0.5) & (standard(x).std(0) < 2)).all()


def test_it_starts_with_one_sample_and_with_a_sensor_that_stands_still():
    standard = Standard((2,), enough=100)
    for value in (300.0, 301.0, 299.5):
        standard.follow(torch.tensor([[value, 5.0]]))
        found = standard(torch.tensor([[value, 5.0]]))
        assert found.abs().max() <= 3
    assert standard(torch.tensor([[300.0, 6.0]]))[0, 1] == 1


def test_a_spike_is_not_the_scale():
    draws = torch.Generator().manual_seed(0)
    batches = [torch.randn(32, 2, generator=draws) for _ in range(31)]
    clean, spiked = Standard((2,), enough=1000), Standard((2,), enough=1000)
    for number, batch in enumerate(batches):
        clean.follow(batch)
        odd = batch.clone()
        if number == 10:
            odd[3, 1] = 3e38
        spiked.follow(odd)
    x = torch.randn(1000, 2, generator=draws)
    assert torch.equal(clean(x)[:, 0], spiked(x)[:, 0])
    assert clean(x)[:, 1].std() < 6 * spiked(x)[:, 1].std()


def test_what_is_far_outside_is_brought_near_and_keeps_its_order():
    standard = Standard((1,), enough=10)
    standard.follow(torch.tensor([[-3.0], [3.0]]))
    x = torch.tensor([[-1e30], [-1e6], [-5.0], [-4.0], [0.0], [4.0], [5.0], [1e6], [1e30]])
    found = standard(x).flatten()
    assert (found.diff() > 0).all()
    assert found.isfinite().all()
    assert found.abs().max() < 400
    assert torch.equal(found[3:6], x.flatten()[3:6])


@pytest.mark.parametrize(("shape", "statistics"), [((3, 8, 8), (3, 1, 1)), ((5, 4), (5, 4))])
def test_images_have_one_scale_a_channel_and_windows_one_a_number(shape, statistics):
    step = InputStep(Inputs(standardise=10), shape, torch.float32)
    step.follow(torch.randn(4, *shape, generator=torch.Generator().manual_seed(0)) * 50 + 9)
    assert step.standard is not None
    assert step.standard.mean.shape == statistics
    assert step(torch.full((2, *shape), 9.0)).abs().max() < 3


def test_saved_in_the_middle_it_goes_on_bit_for_bit(tmp_path):
    batches = list(readings(UNITS, OFFSETS))
    whole = TAME()
    for number, batch in enumerate(batches):
        if number == 11:  # before there were enough samples
            whole.save(tmp_path / "half.tame")
        whole.observe(batch)
    half = load(tmp_path / "half.tame")
    for batch in batches[11:]:
        half.observe(batch)
    assert difference(whole.state_dict(), half.state_dict()) is None
    for one in (whole, half):
        one.consolidate()
    assert difference(whole.state_dict(), half.state_dict()) is None


def test_it_is_counted():
    plain, scaled = (
        TAME(net="mlp", settings=Settings(inputs=inputs))
        for inputs in (Inputs(), Inputs(standardise=10))
    )
    for learner in (plain, scaled):
        learner.observe(next(readings(UNITS, OFFSETS)))
    assert scaled.sizes().nonzero == plain.sizes().nonzero + 2 * 6


def test_a_selector_of_its_own_inputs_takes_the_same_scale():
    own = Inputs(standardise=10)
    step = InputStep(own, (6,), torch.float32)
    step.follow(torch.randn(4, 6, generator=torch.Generator().manual_seed(0)) * 50)
    assert step.under(replace(own, standardise=20)).standard is step.standard
    with pytest.raises(ValueError, match="goes with inputs"):
        Settings(selector=NetworkSelector(inputs=own))
    with pytest.raises(ValueError, match="counts samples"):
        Inputs(standardise=-1)
