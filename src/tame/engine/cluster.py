"""Work that can be done in any order, done by a Ray cluster."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tame.engine.processes import Outcomes, Work, flow
from tame.errors import ConfigError, WorldError

LEAST = 16  # under way at least, so that a cluster that grows on demand sees the demand


@dataclass(frozen=True)
class Ray:
    """A Ray cluster: the one at `address`, or without an address one of this machine's cores.

    `address` is what `ray.init` takes: "auto" for the cluster this machine belongs to, "host:port"
    or "ray://host:port". Where Ray has been started already, that one is used. `gpus` is how much
    of a GPU each piece of work is given, 0.25 say; without any, it is computed on a processor.

    >>> Ray(gpus=0.5).device
    'cuda'
    """

    address: str = ""
    gpus: float = 0.0

    def __post_init__(self) -> None:
        if self.gpus < 0:
            raise ValueError(f"gpus is 0 (none) or more, not {self.gpus}")

    @property
    def device(self) -> str:
        """Where the work is computed."""
        return "cuda" if self.gpus else "cpu"

    def check(self) -> None:
        """Make sure that Ray is installed."""
        _library()

    def each(self, work: Work, loads: Iterable[bytes]) -> Outcomes:
        """Yield the number of each load and what became of it, whichever is done first."""
        ray = _library()
        with _connected(ray, self.address):
            share = {"num_cpus": 1, "num_gpus": self.gpus}
            far = ray.remote(**share)(work_far).remote
            sent = ray.put(work)
            most = max(LEAST, 2 * int(ray.cluster_resources().get("CPU", 0)))

            def first_done(under_way: list[Any]) -> tuple[Any, bytes]:
                done = ray.wait(under_way, num_returns=1)[0][0]
                return done, ray.get(done)

            yield from flow(loads, lambda load: far(sent, load), first_done, most)


def work_far(work: Work, load: bytes) -> bytes:
    """Do one piece of work on whatever machine of the cluster this is."""
    return work(load)


def _library() -> Any:
    try:
        import ray
    except ImportError as error:
        raise ConfigError(
            "workers 'ray' need Ray, which is not installed: pip install 'tame[ray]'"
        ) from error
    return ray


@contextmanager
def _connected(ray: Any, address: str) -> Iterator[None]:
    """Use the Ray this process has started, or start it and end it afterwards."""
    begun = ray.is_initialized()
    try:
        if not begun:
            _start(ray, address)
        yield
    except (ray.exceptions.RayError, ConnectionError) as error:
        last = str(error).strip().splitlines()[-1]
        raise WorldError(f"Ray ({address or 'on this machine'}) has failed: {last}") from error
    finally:
        if not begun:
            ray.shutdown()


def _start(ray: Any, address: str) -> None:
    if address:
        ray.init(address, log_to_driver=False)
        return
    where = {"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}}
    ray.init("local", include_dashboard=False, log_to_driver=False, runtime_env=where)
