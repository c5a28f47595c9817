"""Experts pruned by others: the same bits as here, and clear words when something is missing."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import active_children
from typing import Any, ClassVar

import pytest
import torch
from worlds import NET, QUICK, a, b, c, feed, small_tame

from tame import TAME, Magnitude
from tame.bench.experiment import Experiment
from tame.bench.experiment import resolve as resolve_experiment
from tame.bench.preparation import prepare
from tame.checkpoint import pack, read, unpack
from tame.checks.failure import difference
from tame.checks.material import world
from tame.config import assignment
from tame.core.moment_selector import MomentSelector
from tame.engine.cluster import Ray
from tame.engine.journal import Journal
from tame.engine.processes import Outcomes, Processes, flow
from tame.errors import ConfigError, WorldError
from tame.nets import resolve

STREAM = a() + b() + c()
QUIET = MomentSelector(memory=64)  # trains nothing


def own_net(input_shape: tuple[int, ...], n_outputs: int) -> torch.nn.Module:
    return resolve(NET)(input_shape, n_outputs)


@dataclass
class Backwards:
    """Does the work here, last load first, and remembers how much there was."""

    device: ClassVar[str] = "cpu"

    sizes: list[int] = field(default_factory=list)

    def check(self) -> None: ...

    def each(self, work: Callable[[bytes], bytes], loads: Iterable[bytes]) -> Outcomes:
        given = list(loads)
        self.sizes.append(len(given))
        for number in reversed(range(len(given))):
            yield number, work(given[number])


@dataclass(frozen=True)
class Deadly(Magnitude):
    """Ends the process that prunes, unless that is the one it was made in."""

    maker: int = 0

    def prune(self, *given: Any) -> list[dict[str, torch.Tensor]]:
        if os.getpid() != self.maker:
            os._exit(9)
        return super().prune(*given)


def experiment(setting: str) -> Experiment:
    return resolve_experiment(None, [assignment(setting)])


def taught(workers: Any = None, net: Any = None, **parts: Any) -> TAME:
    """Return a learner of three experts, none of them pruned yet."""
    learner = small_tame(net=net, workers=workers, **parts)
    feed(learner, STREAM)
    assert learner.expert_ids == (0, 1, 2)
    return learner


@pytest.fixture(scope="module")
def alone():
    learner = taught()
    return learner.consolidate(), learner.state_dict()


def test_whoever_prunes_the_outcome_is_the_same(alone):
    workers, told = Backwards(), []
    learner = taught(workers)
    record = learner.consolidate(lambda *said: told.append(said))
    assert record == alone[0]
    assert list(record.pruned) == [0, 1, 2]
    assert difference(learner.state_dict(), alone[1]) is None
    assert [said for said in told if said[0] == "pruning 3 experts"] == [
        ("pruning 3 experts", done, 3) for done in range(4)
    ]


def test_only_what_has_changed_is_sent():
    workers = Backwards()
    learner = taught(workers)
    learner.consolidate()
    learner.consolidate()
    feed(learner, c(5, seed=9) + world(20, offset=7, seed=9))
    assert list(learner.consolidate().pruned) == [2, 3]
    assert workers.sizes == [3, 2]


def test_what_came_back_before_a_stop_is_not_sent_again(alone):
    saved, asked = [], iter(range(1, 100))

    def save(notes: dict[str, Any]) -> None:
        saved.append(pack({}, notes))
        raise KeyboardInterrupt

    sent = Backwards()
    learner = taught(sent, selector=QUIET)
    with pytest.raises(KeyboardInterrupt), Journal(None, save, lambda: next(asked) == 2).open():
        learner.consolidate()
    again = taught(sent, selector=QUIET)
    with Journal(unpack(saved[0], "notes")[1]).open():
        record = again.consolidate()
    assert sent.sizes == [3, 1]
    assert record.pruned == alone[0].pruned
    experts = (again.state_dict()["pool"], alone[1]["pool"])
    assert difference(*experts) is None


def test_one_expert_is_not_worth_sending():
    workers = Backwards()
    learner = small_tame(workers=workers)
    feed(learner, a(20))
    assert list(learner.consolidate().pruned) == [0]
    assert workers.sizes == []


def test_processes_prune_to_the_same_bits(alone):
    learner = taught(Processes(count=2), net=own_net)
    record = learner.consolidate()
    assert record == alone[0]
    assert difference(learner.state_dict(), alone[1]) is None


def test_a_worker_that_dies_is_an_error():
    pruner = Deadly(sparsity=0.5, memory=64, retraining=QUICK, maker=os.getpid())
    learner = taught(Processes(count=1), pruner=pruner)
    with pytest.raises(WorldError, match="a worker process has died"):
        learner.consolidate()


def test_whoever_loses_patience_does_not_wait_for_workers():
    before = set(active_children())

    def impatient(what: str, done: int, total: int) -> None:  # noqa: ARG001 (progress's)
        if what.startswith("pruning 3") and done == 1:
            raise KeyboardInterrupt

    learner = taught(Processes(count=2))
    with pytest.raises(KeyboardInterrupt):
        learner.consolidate(impatient)
    assert set(active_children()) <= before


def test_a_net_that_cannot_be_sent_is_named():
    def inner_net(input_shape: tuple[int, ...], n_outputs: int) -> torch.nn.Module:
        return own_net(input_shape, n_outputs)

    learner = taught(Processes(count=1), net=inner_net)
    with pytest.raises(ConfigError, match=r"cannot be sent .*inner_net.*top level of a module"):
        learner.consolidate()


def save_both(folder: str) -> None:
    """Save what Ray has pruned, and what this process has."""
    torch.set_num_threads(1)
    for name, workers in (("ray", Ray()), ("alone", None)):
        learner = taught(workers, net=own_net)
        assert list(learner.consolidate().pruned) == [0, 1, 2]
        learner.save(f"{folder}/{name}.tame")


def test_ray_prunes_to_the_same_bits(tmp_path):
    """In a process of its own, since Ray leaves processes behind that Python warns of."""
    pytest.importorskip("ray")
    code = f"import test_workers; test_workers.save_both({str(tmp_path)!r})"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=500)
    states = [read(tmp_path / f"{name}.tame")[1] for name in ("ray", "alone")]
    assert difference(*states) is None


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_that_is_not_there_is_named(monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(WorldError, match=r"Ray \(auto\) has failed"):
        list(Ray("auto").each(partial(bytes), [b""]))


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"pip install 'tame\[ray\]'"):
        prepare(experiment("workers=ray"))
    learner = taught(Ray())
    with pytest.raises(ConfigError, match=r"pip install 'tame\[ray\]'"):
        learner.consolidate()


def test_no_more_is_in_memory_than_is_under_way():
    begun, finished = [], []

    def first_done(under_way: list[bytes]) -> tuple[bytes, bytes]:
        assert len(under_way) <= 3
        finished.append(under_way[-1])
        return under_way[-1], under_way[-1] * 2

    def loads() -> Iterator[bytes]:
        for load in (b"a", b"b", b"c", b"d", b"e"):
            begun.append(load)
            assert len(begun) - len(finished) <= 4
            yield load

    outcome = dict(flow(loads(), lambda load: load, first_done, 3))
    assert outcome == {0: b"aa", 1: b"bb", 2: b"cc", 3: b"dd", 4: b"ee"}


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("workers=rai", "no worker named 'rai'; did you mean 'ray'"),
        ("workers={name='processes', count=-1}", "count is 0"),
        ("workers={name='ray', gpus=-1}", "gpus is 0"),
        ("workers.count=2", "'workers' is none and has no count"),
    ],
)
def test_wrong_workers_are_named(setting, message):
    with pytest.raises(ConfigError, match=message):
        experiment(setting)
