"""Streams cut from data sets: orders with returns, passes, and batches across boundaries."""

from typing import Any

import numpy as np
import pytest
import torch

from tame.errors import ConfigError
from tame.streams.embedded import read
from tame.streams.permute import Permute
from tame.streams.split import Split


def shown(stream: Any):
    """Return all samples of a stream as text, in order."""
    return [x.numpy().tobytes() for batch in stream.batches() for x in batch.x]


def test_each_pass_shows_every_sample_once_in_a_new_order():
    once, twice = (shown(Split(order=(0,), passes=p).open(seed=0)) for p in (1, 2))
    assert len(once) == 800
    assert twice[:800] == once
    assert sorted(twice[800:]) == sorted(once)
    assert twice[800:] != once


def test_a_return_shows_the_same_samples_in_another_order():
    found = shown(Split(order=(0, 1, 0)).open(seed=0))
    assert sorted(found[:800]) == sorted(found[1600:])
    assert found[:800] != found[1600:]


def test_batches_end_with_their_segment_unless_they_straddle():
    pure = Split(order=(0, 1), batch=300).open(seed=0)
    mixed = Split(order=(0, 1), batch=300, straddle=True).open(seed=0)
    assert [len(batch) for batch in pure.batches()] == [300, 300, 200, 300, 300, 200]
    assert [len(batch) for batch in mixed.batches()] == [300, 300, 300, 300, 300, 100]
    assert pure.truth().starts == (0, 3)
    assert mixed.truth().starts == (0, 2)
    assert dict(mixed.truth().composition(2)) == {0: 200, 1: 100}
    assert shown(pure) == shown(mixed)


def test_segments_shorter_than_a_batch_may_share_one():
    stream = Split(order=(0, 1, 2), batch=2000, straddle=True).open(seed=0)
    assert stream.truth().starts == (0, 0, 0)
    assert dict(stream.truth().composition(0)) == {0: 800, 1: 800, 2: 400}


def test_split_shows_its_classes_and_no_others():
    stream = Split(classes=5).open(seed=0)
    assert stream.truth().labels == {0: (0, 1, 2, 3, 4), 1: (5, 6, 7, 8, 9)}
    labels = [set(batch.y.tolist()) for batch in stream.batches()]
    assert set.union(*labels[:63]) == {0, 1, 2, 3, 4}
    assert set.union(*labels[63:]) == {5, 6, 7, 8, 9}


def test_permutation_moves_pixels_the_same_way_for_all_images():
    stream = Permute(segments=3, order=(1,), batch=4000).open(seed=0)
    whole = Permute(segments=3, order=(0,), batch=4000).open(seed=0)
    moved, plain = next(stream.batches()), next(whole.batches())
    assert torch.equal(plain.y, moved.y)
    flat, base = moved.x.flatten(1), plain.x.flatten(1)
    assert not torch.equal(flat, base)
    assert torch.equal(flat.sort(1).values, base.sort(1).values)
    other = Permute(segments=3, order=(2,), batch=4000).open(seed=0)
    assert not torch.equal(next(other.batches()).x.flatten(1), flat)
    held = stream.held_out()[0]
    assert sorted(held.x[0].flatten().tolist()) == sorted(read().held_x[0].flatten().tolist())


def test_held_out_samples_are_never_shown():
    stream = Split().open(seed=0)
    held = {x.numpy().tobytes() for part in stream.held_out() for x in part.x}
    assert sum(len(part.x) for part in stream.held_out()) == 1000
    assert not held & set(shown(stream))


def test_embedded_data_is_balanced():
    data = read()
    assert np.bincount(data.y).tolist() == [400] * 10
    assert np.bincount(data.held_y).tolist() == [100] * 10


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Split(order=(0, 5)).open(seed=0), "order names segment 5; there are 5"),
        (lambda: Split(classes=3).open(seed=0), "10 classes do not divide into 3 a segment"),
        (lambda: Split(data="embeded").open(seed=0), "no dataset named 'embeded'; did you mean"),
    ],
)
def test_what_cannot_be_cut_is_refused(make: Any, said: str):
    with pytest.raises(ConfigError, match=said):
        make()


@pytest.mark.parametrize("wrong", [{"batch": 0}, {"passes": 0}])
def test_impossible_courses_are_refused(wrong: dict[str, Any]):
    with pytest.raises(ValueError, match="passes and batch are 1 or more"):
        Split(**wrong)
