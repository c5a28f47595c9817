"""Recorded steps on a GPU do what eager ones do; skipped where there is no GPU."""

from typing import Any

import pytest
import torch
from torch import nn
from worlds import a, b, changes, feed, lesson, small_settings

from tame import TAME, Batch, Inputs, Training
from tame.core.augment import Affine
from tame.core.blueprint import Blueprint
from tame.core.gradual import Gradual
from tame.core.moment_selector import MomentSelector
from tame.core.moments import Moments
from tame.core.network import Network
from tame.engine.fitting import Job, Samples, fit
from tame.engine.recipe import Recipe
from tame.nets.resnet import ResNet18

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
GPU = "cuda"


def learner(engine: Any, **more: Any) -> TAME:
    training = Training(engine=engine, precision="float32", **more)
    settings = small_settings(training=training)
    net = {"name": "mlp", "hidden": [16]}
    return TAME(net=net, seed=0, settings=settings, device=GPU)


def normed(shape: tuple[int, ...], outputs: int) -> nn.Module:
    """Return a small net with batch statistics and dropout."""
    layers = (nn.Linear(shape[0], 16), nn.BatchNorm1d(16), nn.Dropout(0.2), nn.Linear(16, outputs))
    return nn.Sequential(*layers)


def test_same_shifts_and_the_same_losses():
    stream = [*a(60), *b(60), *a(20, seed=5)]
    eager, captured = (feed(learner(engine), stream) for engine in ("eager", "captured"))
    assert changes(eager) == changes(captured)
    assert len(changes(eager)) == 2
    for one, other in zip(eager[:50], captured[:50], strict=True):
        assert one.loss == pytest.approx(other.loss, abs=1e-4)


@pytest.mark.parametrize("make", [None, normed], ids=["one-faced", "two-faced"])
def test_a_batch_that_surprised_changes_nothing(make: Any):
    settings = small_settings()
    made = TAME(net=make or {"name": "mlp", "hidden": [16]}, settings=settings, device=GPU)
    feed(made, a(60))
    expert = made._pool.active
    before = {k: v.clone() for k, v in expert.network.net.state_dict().items()}
    momentum = [
        entry["momentum_buffer"].clone() for entry in expert.network.optimiser.state.values()
    ]
    seen = made.observe(b(1)[0])
    assert seen.change == "recruited"
    after = expert.network.net.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())
    states = expert.network.optimiser.state.values()
    assert all(
        torch.equal(entry["momentum_buffer"], value)
        for entry, value in zip(states, momentum, strict=True)
    )


def test_experts_on_the_bench_do_not_share_memory():
    made = learner("captured")
    feed(made, [*a(60), *b(60)])
    first, second = made._pool.experts
    here = {p.data_ptr() for p in first.network.net.parameters()}
    there = {p.data_ptr() for p in second.network.net.parameters()}
    assert not here & there
    x, y = a(1, seed=9)[0]
    assert (made.predict_by(x, 0).cpu() == y).float().mean() > 0.9


def test_last_batch_and_new_labels_fall_back():
    made = learner("captured")
    feed(made, a(30))
    odd = [Batch(batch.x[:7], batch.y[:7]) for batch in a(2, seed=3)]
    more = [Batch(batch.x, batch.y + 40) for batch in a(5, seed=4)]
    seen = feed(made, [*odd, *a(3, seed=6), *more])
    assert len(seen) == 10
    assert all(torch.isfinite(torch.tensor(record.loss)) for record in seen)


def test_resumed_as_never_stopped(tmp_path):
    from tame import load

    torch.use_deterministic_algorithms(mode=True)
    try:
        whole, half = learner("captured"), learner("captured")
        stream = [*a(40), *b(40)]
        feed(whole, stream)
        feed(half, stream[:50])
        half.save(tmp_path / "half.tame")
        resumed = load(tmp_path / "half.tame", device=GPU)
        feed(resumed, stream[50:])
    finally:
        torch.use_deterministic_algorithms(mode=False)
    for one, other in zip(whole._pool.experts, resumed._pool.experts, strict=True):
        pairs = zip(one.network.net.parameters(), other.network.net.parameters(), strict=True)
        assert all(torch.equal(p, q) for p, q in pairs)


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_masks_hold_in_a_recorded_step(optimiser: Any):
    training = Training(engine="captured", optimiser=optimiser, rate=0.01)
    device = torch.device(GPU)
    plan = Blueprint(lambda s, n: nn.Linear(s[0], n), (8,), training, 0, device)
    network = Network(plan, 4, ("one",))
    mask = torch.zeros(4, 8, dtype=torch.bool, device=device)
    mask[:, ::2] = True
    with torch.no_grad():
        network.net.weight.mul_(mask)
    network.adopt(network.net, {"weight": mask}, 4)
    before = network.net.weight.detach().clone()
    for batch in a(12):
        x = batch.x[:, :8] if batch.x.shape[1] >= 8 else batch.x.repeat(1, 8)[:, :8]
        taught = lesson(x, batch.y, 4, GPU)
        network.measure(taught)
        network.learn(taught)
    weight = network.net.weight
    assert torch.equal(weight != 0, mask & (weight != 0))
    assert not torch.equal(weight[mask], before[mask])


def test_networks_fitted_side_by_side_are_those_fitted_alone():
    device = torch.device(GPU)
    recipe = Recipe(epochs=3, batch=16, rate=0.05)

    def jobs() -> list[Job]:
        made = []
        for seed, count in enumerate((50, 64, 33)):
            torch.manual_seed(seed)
            x = torch.randn(count, 8)
            samples = Samples(x, (x.sum(1) > 0).long(), lambda raw, _a, _o: raw, 2).to(device)
            net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)).to(device)
            made.append(Job(net, samples, torch.Generator().manual_seed(seed)))
        return made

    together, alone = jobs(), jobs()
    fit(together, recipe)
    for job in alone:
        fit([job], recipe)
    for one, other in zip(together, alone, strict=True):
        pairs = zip(one.net.parameters(), other.net.parameters(), strict=True)
        assert all(torch.allclose(p, q, atol=1e-5) for p, q in pairs)


def bright(count: int, shade: float = 0.5, seed: int = 0) -> list[Batch]:
    """Return batches of images, of two shades that tell the label."""
    draws = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(count):
        y = torch.randint(0, 2, (32,), generator=draws)
        x = torch.rand(32, 1, 28, 28, generator=draws) * 0.2 + y.view(-1, 1, 1, 1) * shade
        found.append(Batch(x, y))
    return found


@pytest.mark.parametrize("place", ["cpu", GPU])
def test_augmented_images_learn_as_they_do_eagerly(place: str):
    found = []
    for engine in ("eager", "captured"):
        training = Training(engine=engine, precision="float32", rate=0.02)
        inputs = Inputs(augment=Affine(rotation=20.0))
        settings = small_settings(inputs=inputs, training=training)
        made = TAME(net="lenet", settings=settings, device=GPU)
        stream = [*bright(40), Batch(*(part[:9] for part in bright(1, seed=3)[0])), *bright(10)]
        found.append(feed(made, [Batch(batch.x.to(place), batch.y) for batch in stream]))
    for one, other in zip(*found, strict=True):
        assert one.loss == pytest.approx(other.loss, abs=2e-3)
    assert found[0][-1].loss < 0.5 * found[0][0].loss


def test_masks_tightened_on_the_way_hold_in_a_recorded_step():
    pruner = Gradual(nonzero=90, pace=10.0, every=5, memory=64)
    stream = [*a(60), *b(60)]
    found = []
    for engine in ("eager", "captured"):
        training = Training(engine=engine, precision="float32")
        settings = small_settings(training=training, pruner=pruner)
        made = TAME(net={"name": "mlp", "hidden": [16]}, seed=0, settings=settings, device=GPU)
        found.append((made, changes(feed(made, stream))))
    (eager, one), (captured, other) = found
    assert one == other
    for expert, twin in zip(eager._pool.experts, captured._pool.experts, strict=True):
        kept = twin.network.masks
        assert {n: int(m.sum()) for n, m in expert.network.masks.items()}.keys() == kept.keys()
        assert sum(int(m.sum()) for m in kept.values()) == sum(
            int(m.sum()) for m in expert.network.masks.values()
        )
        parameters = dict(twin.network.net.named_parameters())
        assert all(not parameters[name][~mask].any() for name, mask in kept.items())


def test_a_trunk_is_run_once_a_batch_and_its_features_are_lent():
    inputs = Inputs(trunk=ResNet18(stem="small"))
    settings = small_settings(inputs=inputs, selector=MomentSelector(memory=64))
    draws = torch.Generator().manual_seed(0)
    made = TAME(net={"name": "mlp", "hidden": []}, settings=settings, device=GPU)
    told = Moments()
    for _ in range(8):
        x = torch.randint(0, 256, (16, 3, 8, 8), generator=draws, dtype=torch.uint8)
        y = torch.arange(16) % 2
        made.observe(Batch(x, y))
        told.add(made._intake.ready(x.to(GPU)), y, 0)
    assert torch.allclose(made._selector._moments.means(), told.means(), rtol=0.05, atol=0.02)
    assert len(made.predict(x)) == 16
