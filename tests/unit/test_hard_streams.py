"""Hard streams hold exactly what their truth says."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

from tame.bench.metrics import shares
from tame.errors import ConfigError
from tame.streams.blurry import Blurry
from tame.streams.burst import Burst
from tame.streams.course import Course
from tame.streams.domains import Domains
from tame.streams.embedded import read
from tame.streams.imbalance import Imbalance
from tame.streams.permute import Permute
from tame.streams.relabel import Relabel
from tame.streams.rotation import turned
from tame.streams.schedule import Pool, schedule
from tame.streams.split import Split


def drawn(stream: Any):
    """Return all samples and labels of a stream."""
    x, y = zip(*stream.batches(), strict=True)
    return torch.cat(x), torch.cat(y)


def texts(x: Any):
    return [sample.numpy().tobytes() for sample in x]


def labels(stream: Any):
    return [batch.y.tolist() for batch in stream.batches()]


def test_a_blend_gives_way_linearly_and_loses_no_sample():
    plain = Split(order=(0, 1), batch=16).open(seed=0)
    stream = Split(order=(0, 1), batch=16, blend=20).open(seed=0)
    truth = stream.truth()
    new = [shares(truth, step).get(1, 0.0) for step in range(len(stream))]
    zone = np.array(new[40:60])
    np.testing.assert_allclose(zone, (np.arange(20) + 0.5) / 20, atol=1 / 16)
    assert all(a <= b + 1 / 16 for a, b in pairwise(new))
    assert set(new[:40]) == {0.0}
    assert set(new[60:]) == {1.0}
    assert truth.starts == (0, next(step for step, share in enumerate(new) if share > 0))
    assert truth.settled == (0, 1 + max(step for step, share in enumerate(new) if share < 1))
    assert truth.settled[1] - truth.starts[1] >= 18
    assert sorted(texts(drawn(stream)[0])) == sorted(texts(drawn(plain)[0]))


def test_composition_counts_what_is_in_the_batch():
    stream = Split(order=(0, 1, 0), batch=16, blend=20, smallest_batch=3).open(seed=0)
    truth = stream.truth()
    for step, batch in enumerate(stream.batches()):
        found = np.bincount(batch.y.numpy() // 2, minlength=2)
        assert dict(truth.composition(step)) == {o: n for o, n in enumerate(found.tolist()) if n}
        assert sum(shares(truth, step).values()) == pytest.approx(1.0)


def test_a_blend_too_long_for_a_segment_is_refused():
    Split(order=(0, 1), batch=16, blend=100).open(seed=0)
    with pytest.raises(ConfigError, match="segment 1 has 800 samples, too few for blends over 51"):
        Split(order=(0, 1, 0), batch=16, blend=51).open(seed=0)


def test_sudden_changes_settle_at_once():
    pure = Split(order=(0, 1), batch=300).open(seed=0).truth()
    mixed = Split(order=(0, 1), batch=300, straddle=True).open(seed=0).truth()
    assert (pure.starts, pure.settled) == ((0, 3), (0, 3))
    assert (mixed.starts, mixed.settled) == ((0, 2), (0, 3))


def test_labels_are_wrong_in_bursts_and_nowhere_else():
    plain = Split(order=(0, 1), classes=5, batch=20).open(seed=0)
    stream = Split(order=(0, 1), classes=5, batch=20, burst=Burst(every=30, batches=4)).open(seed=0)
    assert stream.truth().bursts == (
        (30, 34),
        (60, 64),
        (90, 94),
        (130, 134),
        (160, 164),
        (190, 194),
    )
    spoiled = {step for begin, end in stream.truth().bursts for step in range(begin, end)}
    for step, (good, bad) in enumerate(zip(plain.batches(), stream.batches(), strict=True)):
        assert torch.equal(good.x, bad.x)
        assert bool((good.y != bad.y).all()) == (step in spoiled)
        assert bool((good.y == bad.y).all()) == (step not in spoiled)
        assert set(bad.y.tolist()) <= set(range(5) if step < 100 else range(5, 10))


def test_a_burst_may_spoil_a_share_of_the_labels():
    course = {"order": (0,), "batch": 20}
    plain = Split(**course).open(seed=0)
    stream = Split(**course, burst=Burst(every=10, batches=2, share=0.25)).open(seed=0)
    pairs = zip(plain.batches(), stream.batches(), strict=True)
    wrong = [int((one.y != two.y).sum()) for one, two in pairs]
    assert wrong[10:12] == [5, 5]
    assert sum(wrong) == 5 * 2 * len(stream.truth().bursts) > 0


def test_pixels_are_spoiled_in_bursts_and_labels_stay():
    course = {"order": (0,), "batch": 20}
    plain = Split(**course).open(seed=0)
    burst = Burst(every=10, batches=2, kind="pixels", share=0.5)
    stream = Split(**course, burst=burst).open(seed=0)
    for step, (good, bad) in enumerate(zip(plain.batches(), stream.batches(), strict=True)):
        assert torch.equal(good.y, bad.y)
        changed = (good.x != bad.x).flatten(1).double().mean(1)
        inside = any(begin <= step < end for begin, end in stream.truth().bursts)
        assert bool((changed > 0.4).all()) == inside
        assert bool((changed == 0).all()) != inside
        assert bool((changed <= 0.5).all())


def test_no_burst_touches_a_change():
    course = {"batch": 16, "blend": 10, "straddle": True, "burst": Burst(every=12, batches=3)}
    truth = Split(order=(0, 1, 2), **course).open(seed=0).truth()
    assert truth.bursts
    for begin, end in truth.bursts:
        for start, settled in zip(truth.starts[1:], truth.settled[1:], strict=True):
            assert end < start or begin >= settled + 12


def test_each_origin_turns_a_little_more_with_each_of_its_batches():
    course = {"order": (0, 1, 0), "batch": 100}
    plain = list(Split(**course).open(seed=0).batches())
    stream = Split(**course, rotation=48.0).open(seed=0)
    first = [48.0 * step / 16 for step in range(8)]
    angles = [*first, *(48.0 * step / 8 for step in range(8)), *(24.0 + angle for angle in first)]
    assert len(plain) == len(stream) == 24
    for batch, still, angle in zip(stream.batches(), plain, angles, strict=True):
        assert torch.equal(batch.x, turned(still.x, angle))
        assert torch.equal(batch.y, still.y)
    truth = stream.truth()
    assert truth.settled == truth.starts
    assert truth.bursts == ()


def test_held_out_samples_are_turned_by_all_the_angles():
    still = Split(order=(0,)).open(seed=0).held_out()[0]
    held = Split(order=(0,), rotation=80.0).open(seed=0).held_out()[0]
    assert torch.equal(held.y, still.y)
    options = torch.stack([turned(still.x, 80.0 * (k + 0.5) / 200) for k in range(200)]).flatten(2)
    hits = (options == held.x.flatten(1)).all(-1)
    assert hits.any(0).all()
    assert hits.any(1).double().mean() > 0.95


def test_a_full_turn_brings_an_image_back_and_samples_that_are_none_are_refused():
    x = torch.from_numpy(read().x[::800])
    assert torch.equal(turned(x, 0.0), x)
    assert (turned(x, 360.0).int() - x.int()).abs().max() <= 1
    assert torch.equal(turned(x, 90.0), x.rot90(1, (2, 3)))
    with pytest.raises(ConfigError, match="rotation turns images, not samples of shape"):
        turned(x.flatten(1), 10.0)


def test_lengths_are_in_batches_and_samples_come_again_only_after_all():
    stream = Split(order=(0, 1, 0), lengths=(60, 3, 5), batch=16).open(seed=0)
    assert stream.truth().starts == (0, 60, 63)
    assert len(stream) == 68
    x, _ = drawn(stream)
    assert len(set(texts(x[:800]))) == 800
    assert set(texts(x[800:960])) <= set(texts(x[:800]))
    same = Split(order=(0, 1), lengths=(4,), batch=16).open(seed=0)
    assert same.truth().starts == (0, 4)
    some = Split(order=(0, 1), lengths=(4, 0), batch=16).open(seed=0)
    assert len(some) == 4 + 50
    with pytest.raises(ConfigError, match="2 lengths do not fit 3 segments"):
        Split(order=(0, 1, 0), lengths=(1, 2)).open(seed=0)


def test_a_drawn_order_never_repeats_at_once_and_follows_the_seed():
    order = Split(drawn=200, lengths=(1,)).open(seed=0).truth().origins
    assert len(order) == 200
    assert set(order) == set(range(5))
    assert all(a != b for a, b in pairwise(order))
    assert order == Split(drawn=200, lengths=(1,)).open(seed=0).truth().origins
    assert order != Split(drawn=200, lengths=(1,)).open(seed=1).truth().origins
    assert Split(classes=10, drawn=3, lengths=(1,)).open(seed=0).truth().origins == (0, 0, 0)


def test_batches_of_one_to_sixteen():
    stream = Split(order=(0, 1), batch=16, smallest_batch=1).open(seed=0)
    sizes = [len(batch) for batch in stream.batches()]
    assert set(sizes) == set(range(1, 17))
    assert sum(sizes) == 1600
    assert sum(sizes[: stream.truth().starts[1]]) == 800
    ones = Split(order=(0,), batch=1).open(seed=0)
    assert [len(batch) for batch in ones.batches()] == [1] * 800


def test_classes_fall_off_from_the_first_to_the_last():
    course = {"classes": 5, "batch": 100}
    stream = Split(**course, imbalance=Imbalance(classes=16.0, segments=4.0)).open(seed=0)
    counts = np.bincount(drawn(stream)[1].numpy())
    assert counts.tolist() == [400, 200, 100, 50, 25, 100, 50, 25, 12, 6]
    assert [len(part.y) for part in stream.held_out()] == [500, 500]
    other = Split(**course, imbalance=Imbalance(classes=16.0, segments=4.0)).open(seed=1)
    assert sorted(texts(drawn(other)[0])) != sorted(texts(drawn(stream)[0]))


def test_segments_share_the_classes_declared():
    stream = Split(classes=2, overlap=1, batch=100).open(seed=0)
    truth = stream.truth()
    assert truth.labels == {0: (0, 1, 2), 1: (2, 3, 4), 2: (4, 5, 6), 3: (6, 7, 8), 4: (8, 9, 0)}
    bounds = [*truth.starts, len(stream)]
    batches = labels(stream)
    for origin, (begin, end) in enumerate(pairwise(bounds)):
        shown = [label for batch in batches[begin:end] for label in batch]
        assert set(shown) == set(truth.labels[origin])
        assert len(shown) == 1200
    with pytest.raises(ConfigError, match="an overlap of 3 does not fit 5 segments of 2 classes"):
        Split(overlap=3).open(seed=0)


def test_all_labels_change_their_meaning_for_the_same_images():
    stream = Relabel(segments=4, batch=4000).open(seed=0)
    said = []
    for batch in stream.batches():
        pairs = sorted(zip(texts(batch.x), batch.y.tolist(), strict=True))
        said.append([label for _, label in pairs])
    assert len(said) == 4
    for one in range(4):
        assert set(said[one]) == set(range(10))
        for two in range(one):
            assert all(a != b for a, b in zip(said[one], said[two], strict=True))
    held = stream.held_out()
    assert all(torch.equal(part.x, held[0].x) for part in held)
    assert held[0].y.tolist() == read().held_y.tolist()
    meaning = {(a, b) for a, b in zip(held[0].y.tolist(), held[2].y.tolist(), strict=True)}
    assert meaning == {(a, b) for a, b in zip(said[0], said[2], strict=True)}
    with pytest.raises(ConfigError, match="10 labels have 1 to 10 meanings, not 11"):
        Relabel(segments=11).open(seed=0)


def test_blurry_classes_wander_and_disjoint_ones_do_not():
    stream = Blurry(segments=5, disjoint=0.5, level=0.1, batch=40, straddle=True).open(seed=3)
    truth = stream.truth()
    assert truth.blurry
    own = {label: origin for origin, group in truth.labels.items() for label in group}
    assert sorted(own) == list(range(10))
    x, y = drawn(stream)
    assert len(set(texts(x))) == 4000
    bounds = [*(40 * start for start in truth.starts), 4000]
    place = np.searchsorted(bounds[1:], np.arange(4000), side="right")
    away = {label: int((place[y.numpy() == label] != own[label]).sum()) for label in own}
    assert sum(count == 0 for count in away.values()) == 5
    # 40 of the 400 of each of the others are dealt out; a fifth of them lands at home again.
    assert all(15 <= count <= 40 for count in away.values() if count)
    assert sum(away.values()) == pytest.approx(5 * 40 * 0.8, abs=25)


def test_blurry_extremes():
    pure = Blurry(segments=5, level=0.0, batch=40).open(seed=0)
    assert all(len(pure.truth().composition(step)) == 1 for step in range(len(pure)))
    mixed = Blurry(segments=5, disjoint=0.0, level=1.0, batch=400).open(seed=0)
    assert all(len(mixed.truth().composition(step)) == 5 for step in range(len(mixed)))
    with pytest.raises(ConfigError, match="order names all"):
        Blurry(segments=5, order=(0, 1)).open(seed=0)


def test_origins_of_the_same_name_are_alike():
    assert Domains(data=("embedded", "embedded")).open(seed=0).truth().alike == {1: 0}
    assert Permute(segments=3).open(seed=0).truth().alike == {}


@pytest.mark.parametrize(
    "make",
    [
        lambda: Split(blend=10, smallest_batch=4, burst=Burst(every=12, batches=2), rotation=20.0),
        lambda: Blurry(imbalance=Imbalance(classes=3.0), blend=4, batch=16),
        lambda: Relabel(segments=2, drawn=5, lengths=(9,), straddle=True, batch=7),
    ],
)
def test_any_batch_can_be_the_first_and_no_held_out_sample_is_shown(make: Any):
    stream, again = make().open(seed=5), make().open(seed=5)
    whole = list(stream.batches())
    for start in (1, 23, len(whole) - 2):
        for one, two in zip(whole[start:], again.batches(start), strict=True):
            assert torch.equal(one.x, two.x)
            assert torch.equal(one.y, two.y)
    held = {text for part in stream.held_out() for text in texts(part.x)}
    assert not held & set(texts(torch.cat([batch.x for batch in whole])))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Split(smallest_batch=33), "smallest_batch is between 0 and batch, not 33"),
        (lambda: Split(blend=-1), "drawn, blend and lengths are 0 or more"),
        (lambda: Split(order=(0,), drawn=3), "order and drawn exclude each other"),
        (lambda: Burst(every=5, batches=5), "a burst has 1 to 4 of 5 batches"),
        (lambda: Burst(share=0.0), "the share of a burst is above 0, at most 1, not 0.0"),
        (lambda: Imbalance(classes=0.5), "an imbalance is 1"),
        (lambda: Blurry(level=1.5), "disjoint and level are fractions"),
    ],
)
def test_impossible_options_are_refused(make: Any, said: str):
    with pytest.raises(ValueError, match=said):
        make()


def test_a_segment_without_samples_is_refused():
    full, empty = (Pool(np.arange(n), np.zeros(n, int)) for n in (5, 0))
    assert len(schedule([full, empty], (0,), Course(), seed=0).numbers) == 5
    with pytest.raises(ConfigError, match="segment 1 has no samples to show"):
        schedule([full, empty], (0, 1), Course(lengths=(3,)), seed=0)


def test_a_segment_of_one_class_has_no_wrong_labels():
    noise = Burst(every=5, batches=1, kind="pixels")
    assert Split(classes=1, batch=20, burst=noise).open(seed=0).truth().bursts
    with pytest.raises(ConfigError, match="one label has no wrong ones"):
        Split(classes=1, batch=20, burst=Burst(every=5, batches=1)).open(seed=0)
