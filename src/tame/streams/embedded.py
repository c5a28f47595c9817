"""5,000 real MNIST images that come with the package: 4,000 to learn from, 1,000 held out."""

from functools import cache
from importlib.resources import files

import numpy as np
from PIL import Image  # comes with matplotlib

from tame.streams.dataset import Dataset

SIDE, ROWS, COLUMNS, EACH, TRAIN = 28, 50, 100, 500, 400


@cache
def read() -> Dataset:
    """Return the embedded digits, 400 of each for training and 100 held out, always the same.

    >>> data = read()
    >>> data.x.shape, data.x.dtype, data.held_x.shape, data.held_y[::100].tolist()
    ((4000, 1, 28, 28), dtype('uint8'), (1000, 1, 28, 28), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """
    source = files("tame.streams").joinpath("data/mnist5k.png")
    with source.open("rb") as file, Image.open(file) as image:
        sheet = np.asarray(image)
    digits = (
        sheet.reshape(ROWS, SIDE, COLUMNS, SIDE).swapaxes(1, 2).reshape(10, EACH, 1, SIDE, SIDE)
    )
    labels = np.arange(10, dtype=np.int64)
    return Dataset(
        "embedded",
        digits[:, :TRAIN].reshape(-1, 1, SIDE, SIDE),
        labels.repeat(TRAIN),
        digits[:, TRAIN:].reshape(-1, 1, SIDE, SIDE),
        labels.repeat(EACH - TRAIN),
    )
