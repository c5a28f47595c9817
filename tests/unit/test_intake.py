"""What cannot be learned from is refused, saying what came and what would do."""

from typing import Any

import numpy as np
import pytest
import torch
from worlds import a, feed, small_tame

from tame import TAME, Batch, Inputs, TameError
from tame.core.inputs import InputStep
from tame.core.intake import Intake
from tame.errors import ConfigError, InputError

GOOD = torch.rand(4, 8)
LABELS = torch.tensor([0, 1, 2, 3])


def refusal(x: Any, y: Any, before: Any = None):
    intake = Intake(Inputs(), torch.device("cpu"))
    if before is not None:
        intake.keep(before, intake.begin(before), [0, 1])
    with pytest.raises(InputError) as error:
        intake.check(Batch(x, y))
    return str(error.value)


@pytest.mark.parametrize(
    ("x", "y", "said"),
    [
        (GOOD[:0], LABELS[:0], "the batch is empty; it needs at least one sample"),
        (GOOD.long(), LABELS, "x is int64; it must be uint8 or floating point"),
        (GOOD[:, 0], LABELS, "x has shape (4,); it must be (samples, features...)"),
        (GOOD, LABELS[:3], "4 samples came with labels of shape (3,)"),
        (GOOD, LABELS.view(4, 1), "4 samples came with labels of shape (4, 1)"),
        (GOOD, LABELS.float(), "labels are float32; they must be integers"),
        (GOOD, LABELS > 1, "labels are bool; they must be integers"),
        (GOOD, LABELS - 3, "label -3 is negative; labels are 0 or more"),
        (
            torch.tensor([[float("nan")] * 8, [0.0] * 8, [float("inf")] * 8]),
            LABELS[:3],
            (
                "x holds NaN or infinity (or what is infinite in single precision) in 2 of 3 "
                "samples; clean or drop them"
            ),
        ),
    ],
)
def test_refusals_say_what_came(x: Any, y: Any, said: str):
    assert refusal(x, y) == said


@pytest.mark.parametrize(
    ("x", "said"),
    [
        (GOOD[:, :7], "samples have shape (7,); this learner takes (8,)"),
        (GOOD.double(), "x is float64; this learner takes float32"),
        ((GOOD * 9).to(torch.uint8), "x is uint8; this learner takes float32"),
    ],
)
def test_what_changes_midway_is_refused(x: Any, said: str):
    assert refusal(x, LABELS, before=GOOD) == said


def test_a_pair_is_not_a_batch():
    with pytest.raises(InputError, match=r"observe takes a Batch\(x, y\), not tuple"):
        small_tame().observe((GOOD, LABELS))


def test_numpy_and_lists_are_taken():
    learner = small_tame()
    learner.observe(Batch(GOOD.numpy(), LABELS.numpy().astype(np.int32)))
    learner.observe(Batch(GOOD.tolist(), LABELS.tolist()))
    assert learner.predict(GOOD.numpy()).shape == (4,)


def test_a_net_that_does_not_fit_leaves_the_learner_as_it_was():
    learner = TAME(net="lenet")
    with pytest.raises(ConfigError, match="the net 'mlp' takes any shape"):
        learner.observe(Batch(GOOD, LABELS))
    assert learner.expert_ids == ()
    assert learner.predict(GOOD).tolist() == [-1] * 4
    learner.observe(Batch(torch.rand(4, 1, 28, 28), LABELS))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda _, n: torch.nn.Linear(8, n + 1), r"returned shape \(4, 3\) for 4 samples"),
        (lambda _, n: n, "returned int, not an nn.Module"),
    ],
)
def test_a_net_that_is_none_is_refused(make: Any, said: str):
    learner = small_tame(net=make)
    with pytest.raises(ConfigError, match=said):
        learner.observe(Batch(GOOD, LABELS))
    assert learner.expert_ids == ()


def test_a_net_is_a_name_or_a_callable():
    with pytest.raises(ConfigError, match="a net is a name or a callable"):
        TAME(net=3)
    with pytest.raises(ConfigError, match="no net named 'lenett'; did you mean 'lenet'"):
        TAME(net="lenett")


def test_a_refused_batch_opens_no_label():
    learner = small_tame()
    feed(learner, a(3))
    opened = learner._intake.labels.labels().tolist()
    with pytest.raises(TameError):
        learner.observe(Batch(GOOD[:, :7], LABELS + 100))
    assert learner._intake.labels.labels().tolist() == opened


def test_bytes_are_scaled_and_floats_left():
    images = torch.tensor([[[0, 255]]], dtype=torch.uint8)
    assert InputStep(Inputs(), (1, 2), torch.uint8)(images).flatten().tolist() == [-1.0, 1.0]
    floats = torch.tensor([[0.25, -3.0]])
    assert torch.equal(InputStep(Inputs(), (2,), torch.float32)(floats), floats)


def test_mean_and_std_by_channel():
    step = InputStep(Inputs(mean=(0.0, 1.0), std=(1.0, 2.0)), (2, 1, 1), torch.float32)
    assert step(torch.full((1, 2, 1, 1), 3.0)).flatten().tolist() == [3.0, 1.0]


def test_size_resizes_images_alone():
    step = InputStep(Inputs(size=(4, 4)), (3, 8, 8), torch.uint8)
    assert step(torch.zeros(2, 3, 8, 8, dtype=torch.uint8)).shape == (2, *step.output_shape)
    with pytest.raises(InputError, match="are not images and cannot be resized"):
        InputStep(Inputs(size=(4, 4)), (8,), torch.float32)


@pytest.mark.parametrize(
    "wrong", [{"mean": (0.5,)}, {"size": (4,)}, {"mean": (0.0,), "std": (0.0,)}]
)
def test_impossible_inputs_are_refused(wrong: dict[str, Any]):
    with pytest.raises(ValueError, match=r"mean and std|size|std is positive"):
        Inputs(**wrong)


def test_more_means_than_channels_is_refused():
    with pytest.raises(InputError, match="2 means for samples of shape"):
        InputStep(Inputs(mean=(0.0, 1.0), std=(1.0, 2.0)), (3, 4, 4), torch.uint8)
