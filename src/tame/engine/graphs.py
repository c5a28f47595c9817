"""CUDA graphs: record work once, replay it without paying for every launch."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from tame.engine.randomness import seeded

WARM_UPS = 3


def record(work: Callable[[], None], pool: torch.cuda._POOL_HANDLE | None) -> torch.cuda.CUDAGraph:
    """Record work that has been warmed up; it is not done while recorded."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
        work()
    return graph


@contextmanager
def unchanged(tensors: Iterable[Tensor], device: torch.device) -> Iterator[None]:
    """Put tensors and global generators back, in place, after work that was only practice."""
    places = list(tensors)
    with torch.no_grad(), seeded(0, device):
        kept = [place.detach().clone() for place in places]
        with torch.enable_grad():
            yield
        for place, before in zip(places, kept, strict=True):
            place.copy_(before)
    torch.cuda.synchronize(device)


def practise(work: Callable[[], None]) -> None:
    """Do work a few times on a side stream, as recording asks for."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UPS):
            work()
    torch.cuda.current_stream().wait_stream(stream)


def replayed(
    work: Callable[[], None], changed: Iterable[Tensor], device: torch.device
) -> Callable[[], None]:
    """Return what does work at every call: itself, or on a GPU a recording of it, made now.

    Tensors it reads are filled in place between calls. `changed` is what it trains.
    """
    if device.type != "cuda":
        return work
    with unchanged(changed, device):
        practise(work)
        graph = record(work, None)
    return graph.replay


def everything(net: nn.Module, optimiser: torch.optim.Optimizer) -> list[Tensor]:
    """Return every tensor that training changes."""
    states = [
        value
        for entry in optimiser.state.values()
        for value in entry.values()
        if isinstance(value, Tensor)
    ]
    return [*net.parameters(), *net.buffers(), *states]


def open_state(optimiser: torch.optim.Optimizer) -> None:
    """Give an optimiser the state it would open in its first step, as zeros.

    A momentum of zero makes the first step what it is without one, bit for bit.
    """
    momentum = bool(optimiser.defaults.get("momentum"))
    adam = "betas" in optimiser.defaults
    for group in optimiser.param_groups:
        for parameter in group["params"]:
            state = optimiser.state[parameter]
            if state:
                continue
            if momentum:
                state["momentum_buffer"] = torch.zeros_like(parameter)
            elif adam:
                state["step"] = torch.zeros((), device=parameter.device)
                state["exp_avg"] = torch.zeros_like(parameter)
                state["exp_avg_sq"] = torch.zeros_like(parameter)
