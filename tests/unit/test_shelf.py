"""Packed experts: nothing of them is lost, and they answer as they did."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from worlds import a, b, c, changes, feed, small_settings, small_tame

import tame
from tame import TAME, Batch, checkpoint
from tame.checks.failure import difference, snapshot
from tame.cli.inspect import inspect
from tame.core.pool import OPEN, ExpertPool
from tame.errors import CheckpointError
from tame.streams.split import Split


def normed(shape: tuple[int, ...], outputs: int) -> nn.Module:
    """Return a net with counters of its own, draws, and convolutions where there are images."""
    if len(shape) == 3:
        body: list[nn.Module] = [nn.Conv2d(shape[0], 6, 5, stride=3), nn.BatchNorm2d(6)]
        return nn.Sequential(*body, nn.ReLU(), nn.Flatten(), nn.LazyLinear(outputs))
    body = [nn.Linear(shape[0], 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1)]
    return nn.Sequential(*body, nn.Linear(16, outputs))


def unpacked(monkeypatch: pytest.MonkeyPatch):
    """Keep every expert awake from now on."""
    monkeypatch.setattr(ExpertPool, "shelve", lambda _: None)


def three(net: Any = None):
    """Return a learner of three experts, two of them packed."""
    learner = small_tame(net=net)
    feed(learner, a() + b() + c())
    learner.consolidate()
    return learner


def samples():
    return torch.cat([batch.x for batch in a(3, seed=7) + b(3, seed=8) + c(3, seed=9)])


def stripped(expert: Any):
    """Return an expert's state but for what is dropped on packing (and the sign of zeros)."""
    state = expert.state_dict()
    masks = state["network"]["masks"]
    net = {k: v + 0.0 if k in masks else v for k, v in state["network"]["net"].items()}
    state["network"] |= {"optimiser": {}, "draws": [], "net": net}
    return state | {"draws": None}


@pytest.mark.parametrize("net", [None, normed], ids=["mlp", "normed"])
def test_an_expert_comes_back_bit_for_bit(net: Any, monkeypatch: pytest.MonkeyPatch):
    packed = three(net)._pool
    unpacked(monkeypatch)
    dense = three(net)._pool
    assert packed.shelf.ids.tolist() == [0, 1]
    assert len(dense.shelf) == 0
    for one, other in zip(packed.experts, dense.experts, strict=True):
        assert difference(stripped(one), stripped(other)) is None
    assert all(packed.open(number).network.masks for number in (0, 1))


def test_images_come_back_in_their_memory_format(monkeypatch: pytest.MonkeyPatch):
    stream = list(Split(order=(0, 1)).open(seed=0).batches())[:70]
    learner = TAME(net="lenet", settings=small_settings())
    feed(learner, stream[:40])
    pool = learner._pool
    pool.recruit()
    kept = {}
    real = ExpertPool.shelve

    def noting(self: ExpertPool) -> None:
        kept.update(snapshot(stripped(self.awake[0])))
        real(self)

    monkeypatch.setattr(ExpertPool, "shelve", noting)
    learner.observe(stream[40])
    learner.consolidate()
    assert pool.shelf.ids.tolist() == [0]
    found = stripped(pool.open(0))
    assert difference(found, kept) is None
    for name, value in found["network"]["net"].items():
        assert value.stride() == kept["network"]["net"][name].stride(), name


def test_minus_zero_without_a_mask_comes_back():
    learner = small_tame()
    feed(learner, a() + b())
    learner.consolidate()
    pool = learner._pool
    expert = pool.switch(pool.open(0))
    name, bias = next((n, p) for n, p in expert.network.net.named_parameters() if "bias" in n)
    with torch.no_grad():
        bias[:2] = torch.tensor([-0.0, 0.0])
    pool.switch(pool.experts[1])
    pool.shelve()
    found = pool.open(0).network.net.get_parameter(name)
    assert found[:2].signbit().tolist() == [True, False]


@pytest.mark.parametrize("net", [None, normed], ids=["mlp", "normed"])
def test_a_packed_model_answers_as_a_dense_one(net: Any, monkeypatch: pytest.MonkeyPatch):
    packed = three(net)
    unpacked(monkeypatch)
    dense = three(net)
    x = samples()
    assert torch.equal(packed.route(x), dense.route(x))
    assert torch.equal(packed.predict(x), dense.predict(x))
    assert torch.allclose(packed.model(x), dense.model(x), atol=1e-5)
    for number in packed.expert_ids:
        assert torch.equal(packed.predict_by(x, number), dense.predict_by(x, number))
    one, two = packed.sizes(), dense.sizes()
    assert (one.nonzero, one.dense, one.samples) == (two.nonzero, two.dense, two.samples)
    assert one.paper_count == two.paper_count
    assert one.training_bytes < two.training_bytes


def test_the_state_of_the_optimiser_is_gone_once_packed():
    learner = small_tame()
    feed(learner, a() + b())
    assert learner._pool.awake[0].network.optimiser.state
    learner.consolidate()
    assert not learner._pool.open(0).network.optimiser.state


def test_an_expert_that_is_switched_to_is_awake_and_learns():
    learner = three()
    pool = learner._pool
    before = snapshot(stripped(pool.open(0)))
    seen = feed(learner, a(30, seed=5))
    assert changes(seen) == [(180, "switched", 0)]
    assert pool.shelf.ids.tolist() == [1]
    assert [expert.id for expert in pool.awake] == [0, 2]
    expert = pool.active
    assert expert.network.steps == before["network"]["steps"] + 30
    assert expert.memory.seen == before["memory"]["seen"] + 30 * 16
    inside = before["network"]["masks"]
    for name, mask in inside.items():
        assert torch.equal(expert.network.masks[name], mask)
        assert not expert.network.net.get_parameter(name)[~mask].any()
    assert difference(before["network"]["net"], expert.network.state_dict()["net"]) is not None


def test_what_it_learned_is_packed_again():
    learner = three()
    feed(learner, a(30, seed=5) + b(5, seed=6))
    expected = snapshot(stripped(learner._pool.awake[0]))
    learner.consolidate()
    assert learner._pool.shelf.ids.tolist() == [0, 2]
    assert difference(stripped(learner._pool.open(0)), expected) is None


@pytest.mark.parametrize("net", [None, normed], ids=["mlp", "normed"])
@pytest.mark.parametrize("stop", [70, 130, 185, 200])
def test_saved_and_resumed_is_never_having_stopped(stop: int, net: Any, tmp_path: Path):
    """Before anything is packed, with packed experts, and after one was opened again."""
    stream = a() + b() + c() + a(20, seed=5) + b(20, seed=6)

    def run(learner: Any, batches: list[Batch], start: int = 0):
        for place, batch in enumerate(batches, start):
            learner.observe(batch)
            if place % 60 == 55:
                learner.consolidate()

    whole, first = small_tame(net=net), small_tame(net=net)
    run(whole, stream)
    run(first, stream[:stop])
    first.save(tmp_path / "model.tame")
    second = tame.load(tmp_path / "model.tame", net=net)
    run(second, stream[stop:], stop)
    for learner in (whole, second):
        learner.consolidate()
    assert difference(whole.state_dict(), second.state_dict()) is None
    assert len(whole._pool.shelf) > 0


def test_more_labels_than_slots_while_an_expert_is_packed():
    learner = three()
    pool = learner._pool
    before = snapshot(pool.state_dict()["shelf"])
    more = [Batch(batch.x + 9, batch.y + 20) for batch in a(60, seed=3)]
    more += [Batch(batch.x - 9, batch.y + 40) for batch in a(60, seed=4)]
    feed(learner, more)
    assert len(learner._intake.labels) == 12
    assert difference(before, pool.state_dict()["shelf"]) is None  # probed, and left as it was
    x, y = a(1, seed=7)[0]
    assert torch.equal(learner.predict_by(x, 0), y)
    pool.switch(pool.open(0))
    feed(learner, a(5, seed=8))
    assert pool.active.network.slots == 20
    learner.consolidate()
    assert torch.equal(learner.predict(x, "now"), y)


def test_what_is_done_to_an_opened_expert_is_forgotten():
    pool = three()._pool
    expert, before = pool.open(0), snapshot(stripped(pool.open(0)))
    with torch.no_grad():
        for parameter in expert.network.net.parameters():
            parameter.zero_()
    expert.memory.add(*(column[:5] for column in expert.memory.columns()))
    pool._opened.clear()
    assert difference(stripped(pool.open(0)), before) is None


def test_an_expert_opened_before_it_woke_does_not_take_its_place():
    pool = three()._pool
    old = pool.open(0)
    pool._opened.clear()
    awake = pool.switch(pool.open(0))
    assert awake is not old
    pool.switch(pool.awake[1])
    assert pool.switch(old) is awake is pool.active


def test_few_are_open_at_a_time():
    pool = three()._pool
    pool._opened.update({100 + number: pool.open(0) for number in range(OPEN)})
    pool.open(1)
    assert len(pool._opened) == OPEN
    assert 1 in pool._opened


def test_experts_are_a_sequence_whoever_is_packed():
    experts = three()._pool.experts
    assert [expert.id for expert in experts] == [0, 1, 2]
    assert len(experts) == 3
    assert experts[-1].id == 2
    assert [expert.id for expert in experts[:2]] == [0, 1]


DAMAGES = ["values", "gaps", "rest", "kind", "form", "order", "cut"]
DAMAGES += ["places", "escapes", "text", "layout", "missing", "negative", "awake"]


def damaged(shelf: dict[str, Any], how: str):
    """Change a saved shelf in one way."""
    table = shelf["table"].clone()
    one_more = {"values": 0, "gaps": 1, "rest": 2, "kind": 3, "form": 4}
    if how in one_more:
        table[0, one_more[how]] += 1
        return shelf | {"table": table}
    changed = {
        "order": {"ids": shelf["ids"].flip(0)},
        "cut": {"values": shelf["values"][:-1]},
        "places": {"gaps": torch.full_like(shelf["gaps"], 254)},
        "escapes": {"gaps": torch.full_like(shelf["gaps"], 255)},
        "text": {"forms": ["{"] * len(shelf["forms"])},
        "layout": {"layouts": [shelf["layouts"][0] | {"slots": 7}]},
        "missing": {"layouts": []},
        "negative": {"table": -table},
        "awake": {"ids": shelf["ids"] + 1},
    }
    return shelf | changed[how]


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_shelf_is_refused(how: str, tmp_path: Path):
    path = tmp_path / "model.tame"
    three().save(path)
    header, state = checkpoint.read(path)
    state["pool"]["shelf"] = damaged(state["pool"]["shelf"], how)
    del header["format"], header["made_by"]
    checkpoint.write(path, header, state)
    with pytest.raises(CheckpointError, match="does not fit tame"):
        tame.load(path)
    if how not in ("awake", "layout"):  # twice there, or of another net: it can be listed
        with pytest.raises(CheckpointError, match="are damaged"):
            inspect(path)


def test_a_state_without_a_learner_is_no_model(tmp_path: Path):
    path = tmp_path / "state.tame"
    checkpoint.write(path, {"format": 2}, {"x": torch.zeros(2)})
    for ask in (tame.load, inspect):
        with pytest.raises(CheckpointError, match="no learner"):
            ask(path)
