"""SVHN: house numbers in `.mat` files, digits cropped to 32x32."""

from pathlib import Path

import numpy as np

from tame.errors import DataError
from tame.streams.catalogue import SOURCES
from tame.streams.dataset import Array, Dataset
from tame.streams.folder import find, kept, pick

SHAPE = (32, 32, 3)


def read_svhn() -> Dataset:
    """Read SVHN's cropped digits; the file's label 10 is the digit 0."""
    return _svhn(find("svhn", SOURCES["svhn"].places, SOURCES["svhn"].pieces[0]))


def read_mat(path: Path) -> tuple[Array, Array]:
    """Return images (count, 3, 32, 32) and labels of one file."""
    from scipy.io import loadmat  # comes with scikit-learn

    try:
        found = loadmat(path, variable_names=("X", "y"), appendmat=False)
        images, labels = found["X"], found["y"].reshape(-1)
    except Exception as error:
        raise DataError(f"{path} cannot be read: {error!r}") from error
    if images.dtype != np.uint8 or images.shape != (*SHAPE, len(labels)):
        raise DataError(
            f"{path} is not a file of cropped digits: {images.dtype} images of shape "
            f"{images.shape}, {len(labels)} labels"
        )
    if not np.isin(labels, np.arange(1, 11)).all():
        raise DataError(f"{path} is not a file of cropped digits: its labels are not 1 to 10")
    return np.ascontiguousarray(images.transpose(3, 2, 0, 1)), labels.astype(np.int64) % 10


@kept
def _svhn(folder: Path) -> Dataset:
    train, held = (pick("svhn", folder, piece) for piece in SOURCES["svhn"].pieces)
    x, y = read_mat(train)
    held_x, held_y = read_mat(held)
    return Dataset("svhn", x, y, held_x, held_y)
