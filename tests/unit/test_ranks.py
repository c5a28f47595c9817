"""Ranks that work together, played by threads: shares, messages, batch norm, a divided step."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Barrier, Thread
from typing import Any

import pytest
import torch
from torch import nn
from worlds import lesson

from tame.engine.eager import EagerStep, Manner
from tame.engine.parallel import ROOM, ParallelStep
from tame.engine.shared_norm import SharedNorm
from tame.engine.world import World, join
from tame.errors import WorldError

RANKS = 3


@dataclass
class Table:
    """Where threads lay down what they have to say."""

    barrier: Barrier = field(default_factory=lambda: Barrier(RANKS, timeout=20))
    said: dict[int, Any] = field(default_factory=dict)

    def hear(self, rank: int, value: Any) -> list[Any]:
        self.said[rank] = value
        self.barrier.wait()
        heard = [self.said[number] for number in range(RANKS)]
        self.barrier.wait()
        return heard


@dataclass(frozen=True)
class Threads(World):
    """A world whose ranks are threads of this process."""

    table: Table = field(default_factory=Table)

    def gather(self, values: torch.Tensor) -> list[torch.Tensor]:
        return self.table.hear(self.rank, values.clone())

    def add_up(self, values: torch.Tensor) -> torch.Tensor:
        return values.copy_(sum(self.gather(values)))


def together(play: Callable[[World], Any]) -> list[Any]:
    """Return what each rank of a world makes of its part, an error included."""
    table, found = Table(), {}

    def run(rank: int) -> None:
        try:
            found[rank] = play(Threads(rank, RANKS, table=table))
        except Exception as error:  # noqa: BLE001 (for the test to look at)
            found[rank] = error

    threads = [Thread(target=run, args=(rank,)) for rank in range(RANKS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[rank] for rank in range(RANKS)]


@pytest.fixture(autouse=True)
def double_precision():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("size", [1, 2, 3, 8])
@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 700])
def test_every_row_has_one_rank_or_all(size, count):
    shares = [World(rank, size).share(count) for rank in range(size)]
    rows = [row for share in shares for row in range(share.begin, share.end)]
    if count < size:
        assert {share.copies for share in shares} == {size}
        assert rows == list(range(count)) * size
    else:
        assert {share.copies for share in shares} == {1}
        assert rows == list(range(count))
        lengths = [share.end - share.begin for share in shares]
        assert max(lengths) - min(lengths) <= 1
    assert shares == [World(0, size).share(count, rank) for rank in range(size)]


def test_one_rank_that_says_so_is_enough():
    assert together(lambda world: world.anyone(world.rank == 1)) == [True] * RANKS
    assert together(lambda world: world.anyone(world.rank == 7)) == [False] * RANKS
    assert World().anyone(True)  # noqa: FBT003 (it is the message)


@pytest.mark.parametrize("sizes", [(0, 0, 0), (3, 0, 1000), (5, 5, 5)])
def test_messages_of_any_length_arrive_whole(sizes):
    sent = [bytes(range(256))[: size % 256] * (1 + size // 256) for size in sizes]
    assert together(lambda world: world.exchange(sent[world.rank])) == [sent] * RANKS


def test_ranks_that_do_not_agree_are_told_so():
    assert together(lambda world: world.agree("the same", "others differ")) == [None] * RANKS
    for rank, error in enumerate(together(lambda world: world.agree(str(world.rank), "no"))):
        assert isinstance(error, WorldError)
        assert str(error) == f"rank {rank} of {RANKS}: no"


def norm_case(kind: str):
    """Return a batch norm, a batch for it, and weights that make a loss of what comes out."""
    draws = torch.Generator().manual_seed(3)
    shape = (7, 4) if kind == "vectors" else (7, 4, 3, 2)
    norm = nn.BatchNorm1d(4) if kind == "vectors" else nn.BatchNorm2d(4)
    if kind == "plain":
        norm = nn.BatchNorm2d(4, affine=False, momentum=None)
    if kind == "untracked":
        norm = nn.BatchNorm2d(4, track_running_stats=False).eval()
    for parameter in norm.parameters():
        parameter.data = torch.rand(4, generator=draws)
    x = 5 + 2 * torch.randn(*shape, generator=draws)
    return norm, x, torch.randn(*shape, generator=draws)


def norm_run(norm: nn.Module, x: torch.Tensor, weights: torch.Tensor):
    x = x.clone().requires_grad_()
    for _ in range(2):  # the second time on running statistics that have moved
        out = norm(x)
    (out * weights).sum().backward()
    return out.detach(), x.grad, [p.grad for p in norm.parameters()], list(norm.buffers())


@pytest.mark.parametrize("kind", ["vectors", "images", "plain", "untracked"])
def test_shared_norm_is_batch_norm_over_all_rows(kind):
    whole, x, weights = norm_case(kind)

    def part(world: World):
        share, norm = world.share(len(x)), copy.deepcopy(whole)
        rows = slice(share.begin, share.end)
        with SharedNorm(world, share.copies):
            return norm_run(norm, x[rows], weights[rows])

    found = together(part)
    out, grad, own, buffers = norm_run(whole, x, weights)
    torch.testing.assert_close(torch.cat([part[0] for part in found]), out)
    torch.testing.assert_close(torch.cat([part[1] for part in found]), grad)
    for place, value in enumerate(own):
        torch.testing.assert_close(sum(part[2][place] for part in found), value)
    for part in found:
        torch.testing.assert_close(part[3], buffers)


def test_shared_norm_counts_copies_once_and_leaves_evaluation_alone():
    norm, x, _ = norm_case("images")
    whole = copy.deepcopy(norm)
    expected = whole(x[:2])

    def part(world: World):
        own = copy.deepcopy(norm)
        with SharedNorm(world, RANKS):
            trained = own(x[:2])
            return trained, list(own.buffers()), own.eval()(x)

    for trained, buffers, judged in together(part):
        torch.testing.assert_close(trained, expected)
        torch.testing.assert_close(buffers, list(whole.buffers()))
        torch.testing.assert_close(judged, whole.eval()(x))


class Forked(nn.Module):
    """Sends samples that begin with a positive number another way than the rest."""

    def __init__(self) -> None:
        super().__init__()
        self.ways = nn.ModuleList([nn.Linear(3, 2), nn.Linear(3, 2)])
        self.idle = nn.Parameter(torch.ones(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = x[:, 0] > 0
        out = x.new_zeros(len(x), 2)
        for way, chosen in ((self.ways[0], first), (self.ways[1], ~first)):
            if chosen.any():
                out[chosen] = way(x[chosen])
        return out


def stepped(net: nn.Module, world: World | None, batches: list[Any]):
    """Return the readings of batches and the weights after learning them."""
    optimiser = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, weight_decay=0.01)
    step: Any = EagerStep(net, optimiser, Manner())
    if world is not None:
        step = ParallelStep(step, world)
    readings = []
    for batch in batches:
        readings.append(step.measure(batch))
        step.learn(batch)
    return readings, net.state_dict()


def batches_of(*sizes: int):
    draws = torch.Generator().manual_seed(0)
    for size in sizes:
        x = torch.randn(size, 3, generator=draws).sort(0).values  # one way first, then the other
        yield lesson(x, torch.randint(2, (size,), generator=draws), 2)


@pytest.mark.parametrize("maker", [Forked, lambda: nn.Linear(3, 2)])
def test_a_divided_step_is_the_whole_one(maker):
    net, batches = maker(), list(batches_of(6, 3, 2, 1, RANKS * ROOM + 10))
    found = together(lambda world: stepped(copy.deepcopy(net), world, list(batches)))
    readings, weights = stepped(net, None, batches)
    for own_readings, own_weights in found:
        torch.testing.assert_close(torch.tensor(own_readings), torch.tensor(readings))
        torch.testing.assert_close(own_weights, weights, rtol=1e-12, atol=1e-12)


def test_networks_that_begin_differently_are_noticed():
    def part(world: World):
        net = nn.Linear(3, 2)
        nn.init.constant_(net.weight, 0.1 * world.rank)
        return stepped(net, world, list(batches_of(6)))

    for error in together(part):
        assert isinstance(error, WorldError)
        assert "the network is not the same on all ranks" in str(error)


@pytest.mark.parametrize("sizes", [(6, 6, 6), (6, 7, 6)])
def test_other_batches_on_other_ranks_are_noticed(sizes):
    def part(world: World):
        x = torch.full((sizes[world.rank], 3), float(world.rank))
        labels = torch.zeros(len(x), dtype=torch.int64)
        return stepped(nn.Linear(3, 2), world, [lesson(x, labels, 2)])

    for error in together(part):
        assert isinstance(error, WorldError)
        assert "were given different batches (" + ", ".join(map(str, sizes)) in str(error)


@pytest.mark.parametrize(
    ("names", "device", "message"),
    [
        ({"WORLD_SIZE": "2"}, "cpu", "MASTER_ADDR is not set; start with torchrun"),
        ({"WORLD_SIZE": "two"}, "cpu", "WORLD_SIZE is a whole number, 0 or more, not 'two'"),
        ({"TAME_TIMEOUT": "0"}, "cpu", "TAME_TIMEOUT is a number of seconds above 0, not '0'"),
        ({}, "cuda:1", "on 'cpu' or on 'cuda', a GPU each, not 'cuda:1'"),
        ({"LOCAL_RANK": "99"}, "cuda", "rank 0 has no GPU of its own"),
    ],
)
def test_a_world_that_cannot_begin_says_why(monkeypatch, names, device, message):
    if names.keys() != {"WORLD_SIZE"}:
        names = {"WORLD_SIZE": "2", "MASTER_ADDR": "x", "MASTER_PORT": "1", "RANK": "0"} | names
    for name in ("MASTER_ADDR", "MASTER_PORT", "RANK", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(WorldError, match=message), join(device):
        pass
