"""What a learner is given when it is made is checked then, in words."""

from typing import Any

import pytest
import torch
from torch import nn

from tame import TAME, Batch, Deviation, Settings, load
from tame.checks.failure import difference, snapshot
from tame.core.caution import Careful
from tame.core.detectors.cusum import Cusum
from tame.errors import ConfigError
from tame.methods.finetune import FineTune

LEARNERS: list[Any] = [TAME, FineTune]


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seed": -1}, "a seed is a whole number, 0 or more, not -1"),
        ({"seed": "x"}, "a seed is a whole number, 0 or more, not 'x'"),
        ({"seed": 0.5}, "a seed is a whole number"),
        ({"device": "gpu"}, r"a device is cpu, cuda, .*not 'gpu'"),
        ({"settings": 3}, r"settings are \w+\(...\) or a table, not 3"),
        ({"settings": {"slotz": 3}}, "unknown key 'slotz'; did you mean 'slots'"),
        ({"settings": {"slots": "3"}}, "'slots' is int, not '3'"),
    ],
)
def test_what_does_not_fit_is_refused_at_once(learner: Any, given: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=message):
        learner(net="mlp", **given)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_told_of_at_once(tmp_path):
    with pytest.raises(ConfigError, match="sees no GPU"):
        TAME(device="cuda")
    TAME(net="mlp").save(tmp_path / "model.tame")
    with pytest.raises(ConfigError, match="sees no GPU"):
        load(tmp_path / "model.tame", device="cuda")


def test_settings_may_be_a_table_as_a_file_has_them():
    learner = TAME(net="mlp", settings={"slots": 4, "detector": {"name": "cusum", "threshold": 30}})
    assert learner.settings == Settings(slots=4, detector=Cusum(threshold=30.0))


def test_a_part_may_be_named():
    assert Settings(detector="deviation").detector == Deviation()
    assert Settings(detector={"name": "cusum", "threshold": 30}).detector == Cusum(threshold=30.0)
    assert Settings(conduct={"probation": 16}).conduct == Careful(probation=16)
    assert Settings(workers="none").workers is None
    with pytest.raises(ConfigError, match="did you mean 'quorum'"):
        Settings(detector="quorumm")


def test_a_maker_that_takes_something_else_is_told_how_it_is_called():
    learner = TAME(net=lambda shape: nn.Linear(*shape, 2))  # type: ignore[arg-type,misc]
    with pytest.raises(ConfigError, match=r"when called as make\(\(3,\), \d+\)"):
        learner.observe(Batch(torch.zeros(2, 3), [0, 1]))


@pytest.mark.parametrize("kind", LEARNERS)
def test_a_net_that_heeds_no_number_of_outputs_is_refused_at_the_third_label(kind: Any):
    with pytest.raises(ConfigError, match="made for 3 outputs"):  # so many that slots grow, too
        kind(net=lambda shape, _: nn.Linear(*shape, 2)).observe(
            Batch(torch.zeros(20, 3), list(range(20)))
        )
    learner = kind(net=lambda shape, _: nn.Linear(*shape, 2))
    learner.observe(Batch(torch.zeros(2, 3), [0, 5]))
    before = snapshot(learner.state_dict())
    with pytest.raises(ConfigError, match=r"made for 3 outputs returned shape \(4, 2\)"):
        learner.observe(Batch(torch.zeros(2, 3), [0, 7]))
    assert difference(before, learner.state_dict()) is None
