"""GDumb: the balanced memory by hand, and a network trained only when an answer is wanted."""

from collections import Counter
from dataclasses import replace

import pytest
import torch
from worlds import a, feed, small_gdumb

from tame import load
from tame.checks.failure import difference
from tame.core.codec import Codec
from tame.engine.recipe import Recipe
from tame.errors import InputError
from tame.methods.balanced import Balanced
from tame.methods.gdumb import GDumb, GDumbSettings
from tame.streams.split import Split

NET = {"name": "mlp", "hidden": [16]}


def offered(capacity, labels, seed=0):
    memory = Balanced(capacity, seed)
    memory.add(torch.arange(len(labels)), torch.tensor(labels))
    return memory


def kept(memory):
    return Counter(memory.columns()[1].tolist())


def test_every_label_gets_its_share_whatever_the_order():
    labels = [0] * 50 + [1] * 50 + [2] * 50
    assert kept(offered(30, labels)) == {0: 10, 1: 10, 2: 10}
    assert kept(offered(30, labels[::3] + labels[1::3] + labels[2::3])) == {0: 10, 1: 10, 2: 10}


def test_rare_labels_are_all_kept_and_leave_room_that_only_new_labels_take():
    """Two labels of 100, share 50: the first fills up to its share, not to the whole memory."""
    assert kept(offered(100, [0] * 3 + [1] * 500)) == {0: 3, 1: 50}
    assert kept(offered(100, [1] * 500 + [0] * 3)) == {0: 3, 1: 97}


def test_share_is_a_fraction_not_rounded_down():
    """Ten places for three labels: 10/3 lets every label have four, until the memory is full."""
    found = kept(offered(10, [0, 1, 2] * 20))
    assert sorted(found.values()) == [3, 3, 4]


def test_what_is_given_up_is_random_among_the_commonest():
    left = [
        set(offered(10, [0] * 10 + [1] * 5, seed).columns()[0].tolist()) & set(range(10))
        for seed in range(30)
    ]
    assert all(len(rest) == 5 for rest in left)
    assert len({frozenset(rest) for rest in left}) > 20


def test_rows_and_labels_stay_together():
    labels = [row % 7 for row in range(300)]
    x, slots = offered(40, labels).columns()
    assert (x % 7).tolist() == slots.tolist()


def test_batches_or_one_by_one_is_the_same():
    whole, single = offered(20, [0, 1, 1, 2] * 30), Balanced(20, 0)
    for row, label in enumerate([0, 1, 1, 2] * 30):
        single.add(torch.tensor([row]), torch.tensor([label]))
    assert difference(whole.state_dict(), single.state_dict()) is None


def test_nothing_is_trained_while_observing():
    learner = GDumb(net=NET, settings=small_gdumb())
    feed(learner, a(5))
    assert learner._fitted is None
    learner.predict(a(1)[0].x)
    assert learner._fitted is not None
    assert learner.state_dict()["kept"] is None


def test_answers_before_and_after_consolidating_agree():
    learner = GDumb(net=NET, settings=small_gdumb())
    feed(learner, a(5))
    x = a(1, seed=9)[0].x
    before = learner.predict(x)
    learner.consolidate()
    assert torch.equal(before, learner.predict(x))


def test_new_data_outdates_the_network():
    learner = GDumb(net=NET, settings=small_gdumb())
    feed(learner, a(5))
    learner.consolidate()
    assert learner.sizes().dense > 0
    feed(learner, a(1))
    assert learner.sizes().dense == 0


def test_embedded_digits_are_learned_from_a_balanced_memory():
    recipe = Recipe(batch=16, rate=0.02, weight_decay=1e-6)
    settings = GDumbSettings(memory=200, cycles=4, recipe=recipe)
    learner = GDumb(net={"name": "mlp", "hidden": [200]}, settings=settings)
    stream = Split(passes=1, batch=32).open(seed=0)
    feed(learner, stream.batches())
    assert set(kept(learner._memory).values()) == {20}
    parts = [learner.predict(part.x) == part.y for part in stream.held_out()]
    assert float(torch.cat(parts).float().mean()) > 0.7


@pytest.mark.parametrize("bad", [{"memory": 0}, {"cycles": 0}])
def test_impossible_settings_are_refused(bad):
    with pytest.raises(ValueError, match="not 0"):
        GDumbSettings(**bad)


def test_with_a_codec_it_keeps_coded_images_and_answers_alike_after_loading(tmp_path):
    segment = list(Split(order=(0,), batch=50).open(seed=0).batches())[:6]
    settings = replace(small_gdumb(), codec=Codec(share=0.25), memory=200)
    learner = GDumb(net="lenet", settings=settings)
    feed(learner, segment)
    assert learner.sizes().sample_bytes == 200 * (int(0.25 * 28 * 28) + 8)
    answers = learner.predict(segment[0].x)
    assert (answers == segment[0].y).double().mean() > 0.9
    learner.save(tmp_path / "model.tame")
    assert torch.equal(load(tmp_path / "model.tame").predict(segment[0].x), answers)


def test_a_codec_refuses_what_is_no_image_and_nothing_is_learned():
    learner = GDumb(net=NET, settings=replace(small_gdumb(), codec=Codec()))
    with pytest.raises(InputError, match="codec keeps images in bytes"):
        learner.observe(a(1)[0])
    assert learner.sizes().samples == 0
