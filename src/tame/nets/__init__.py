"""Networks: each a small frozen maker, called as `make(input_shape, n_outputs)`."""

from collections.abc import Mapping
from typing import Any

from tame.config import build_part
from tame.errors import ConfigError
from tame.registry import NETS
from tame.types import NetMaker


def resolve(net: str | Mapping[str, Any] | NetMaker) -> NetMaker:
    """Return the maker a name, a table or a callable stands for.

    >>> resolve({"name": "mlp", "hidden": [8]})((2,), 3)
    Sequential(...)
    """
    if isinstance(net, str | Mapping):
        maker: NetMaker = build_part(NETS, net, "net")
        return maker
    if callable(net):
        return net
    raise ConfigError(f"a net is a name or a callable (input_shape, n_outputs), not {net!r}")
