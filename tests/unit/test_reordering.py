"""Reordered pixels: the same whether a batch is reordered or cut out of a whole copy."""

from typing import Any

import numpy as np
import torch

from tame.streams.permute import Permute
from tame.streams.reordering import COPIES, Desk, Reordered

SAMPLES = np.arange(5 * 2 * 3, dtype=np.uint8).reshape(5, 2, 3)
PIXELS = np.array([3, 5, 0, 1, 4, 2])
WANTED = SAMPLES.reshape(5, 6)[:, PIXELS].reshape(5, 2, 3)


class Counting(Reordered):
    """Notes how many samples each call reorders."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.reordered: list[int] = []

    def _reorder(self, samples: np.ndarray) -> np.ndarray:
        self.reordered.append(len(samples))
        return super()._reorder(samples)


def test_what_comes_again_is_reordered_once():
    shown = Counting(SAMPLES, PIXELS, Desk())
    for rows in ([0, 1, 2], [3, 4], [1, 0], [4, 2, 0]):
        assert np.array_equal(shown[np.array(rows)], WANTED[rows])
    assert shown.reordered == [3, 2, 5]


def test_a_desk_has_room_for_two_orders():
    desk = Desk()
    orders = [Counting(SAMPLES, np.roll(PIXELS, shift), desk) for shift in range(COPIES + 1)]
    for shown in orders * 2:
        shown[np.arange(5)]
        shown[np.arange(5)]
    assert [shown.reordered for shown in orders] == [[5, 5, 5, 5]] * (COPIES + 1)


def test_what_lies_in_a_file_is_never_copied_whole(tmp_path):
    np.save(tmp_path / "x.npy", SAMPLES)
    shown = Counting(np.load(tmp_path / "x.npy", mmap_mode="r"), PIXELS, Desk())
    for _ in range(4):
        assert np.array_equal(shown[np.arange(4)], WANTED[:4])
    assert shown.reordered == [4] * 4


def test_a_batch_of_the_second_pass_is_the_callers_own():
    stream = Permute(segments=2, passes=2, batch=512).open(seed=0)
    batches = list(stream.batches())
    again = stream.batches(len(batches) - 2)
    kept = batches[-2].x.clone()
    batches[-2].x.zero_()
    assert torch.equal(next(again).x, kept)
