"""HCL: the flow against autograd, the likelihood by hand, tasks found, and both guards."""

import math

import pytest
import torch
from torch.autograd.functional import jacobian
from worlds import a, b, changes, feed, small_hcl

from tame import Batch
from tame.methods.flow import Coupling, Flow
from tame.methods.hcl import HCL, HCLSettings, log_normal
from tame.methods.typical import Range, Typicality
from tame.methods.typical_tasks import Tasks
from tame.streams.split import Split


def shaken_flow(inputs=5):
    """Return a flow in double precision whose weights are far from the identity."""
    draws = torch.Generator().manual_seed(3)
    flow = Flow(inputs, couplings=3, hidden=7).double()
    with torch.no_grad():
        for parameter in flow.parameters():
            parameter.copy_(0.4 * torch.randn(parameter.shape, generator=draws))
    flow.standardise(2 + 3 * torch.randn(50, inputs, generator=draws).double(), 0.1)
    return flow


def test_flow_is_inverted_both_ways():
    flow = shaken_flow()
    x = torch.randn(20, 5, dtype=torch.float64)
    z, _ = flow(x)
    assert not torch.allclose(z, x, atol=0.1)
    assert torch.allclose(flow.inverse(z), x, atol=1e-9)
    assert torch.allclose(flow(flow.inverse(x))[0], x, atol=1e-9)


@pytest.mark.parametrize("inputs", [4, 5])
def test_log_determinant_is_that_of_the_jacobian(inputs):
    flow = shaken_flow(inputs)
    x = torch.randn(3, inputs, dtype=torch.float64)
    _, log_det = flow(x)
    for row, found in zip(x, log_det, strict=True):
        exact = jacobian(lambda one: flow(one[None])[0][0], row)
        assert found.item() == pytest.approx(torch.linalg.slogdet(exact)[1].item(), abs=1e-9)


def test_fresh_coupling_only_reorders():
    coupling = Coupling(4, 8, torch.tensor([3, 1, 0, 2]))
    z, log_det = coupling(torch.tensor([[10.0, 11.0, 12.0, 13.0]]))
    assert z.tolist() == [[13.0, 11.0, 10.0, 12.0]]
    assert log_det.tolist() == [0.0]


def test_loss_of_the_first_batch_by_hand():
    """A fresh flow only standardises and reorders; the means are the seed's."""
    learner = HCL(settings=small_hcl(couplings=1))
    x = torch.tensor([[0.0, 4.0], [2.0, 0.0]])
    loss = learner.observe(Batch(x, [7, 7])).loss
    spread = x.std(0)
    z = ((x - x.mean(0)) / spread)[:, learner._flow.couplings[0].order]
    squares = (z - learner._means[0, 0]).square().sum(1)
    expected = (0.5 * squares + math.log(2 * math.pi)).mean() + spread.log().sum()
    assert loss == pytest.approx(expected.item(), rel=1e-5)


def test_scores_are_bayes_rule_over_tasks_and_labels():
    learner = HCL(settings=small_hcl(couplings=1))
    learner.observe(Batch([[0.0, 1.0], [2.0, 0.5]], [0, 1]))
    learner._tasks._open()
    learner._tasks._slots[1] += [1]  # a second task, with label 1 alone
    z = torch.randn(6, 2)
    density = {pair: log_normal(z, learner._mean(*pair)) for pair in learner._tasks.pairs()}
    zero = density[0, 0] + math.log(1 / 2)
    one = torch.logaddexp(density[0, 1] + math.log(1 / 2), density[1, 1])
    posterior = torch.stack([zero, one], 1).softmax(1)
    assert torch.allclose(learner._scores(z).softmax(1), posterior, atol=1e-5)


def test_too_likely_is_as_strange_as_too_unlikely():
    typical = Typicality(Range(window=10, warmup=3, width=2.0))
    for value in (1.0, 2.0, 3.0):
        typical.add([value, 5.0])
    assert typical.accepts([2.0, 5.0])
    assert not typical.accepts([2.0 + 2.01, 5.0])
    assert not typical.accepts([2.0 - 2.01, 5.0])
    assert not typical.accepts([2.0, 5.1])  # one statistic is enough


def test_old_batches_leave_the_window():
    typical = Typicality(Range(window=2, warmup=2, width=3.0))
    for value in (100.0, 1.0, 1.2):
        typical.add([value])
    assert not typical.accepts([50.0])


def test_known_task_takes_over_only_with_labels_it_knows():
    tasks = Tasks(Range(window=5, warmup=2, width=3.0))
    for value in (1.0, 1.1, 1.2):
        tasks.place([0, 1], lambda _, value=value: [value])
    for value in (9.0, 9.1, 9.2):
        tasks.place([0, 1], lambda _, value=value: [value])
    assert tasks.active == 1
    assert tasks.place([1], lambda _: [1.1]).value == "switched"
    assert tasks.active == 0
    assert tasks.place([2], lambda _: [9.1]).value == "recruited"
    assert len(tasks) == 3


def test_shift_is_found_at_once_and_none_without_one():
    learner = HCL(settings=small_hcl())
    assert changes(feed(learner, a(60) + b(5))) == [(60, "recruited", 1)]


@pytest.mark.parametrize("guard", ["functional", "generative"])
def test_guard_holds_what_plain_training_loses(guard):
    """Labels 0 to 3, then 4 to 7 elsewhere: without the guard the first latents move away."""
    later = [Batch(batch.x, batch.y + 4) for batch in b(60)]
    errors = []
    for strength in (0.0, 1.0):
        learner = HCL(settings=small_hcl(guard=guard, strength=strength))
        feed(learner, a(60))
        old = learner._copy(learner._flow)
        feed(learner, later)
        x = a(1, seed=9)[0].x
        errors.append(float((learner._flow(x)[0] - old(x)[0]).square().sum(1).mean().detach()))
    assert errors[1] < errors[0] / 2


def test_no_guard_before_a_second_task():
    learner = HCL(settings=small_hcl())
    feed(learner, a(3))
    assert float(learner._guard(4)) == 0.0


def test_functional_guard_is_nothing_for_an_unchanged_flow():
    learner = HCL(settings=small_hcl())
    feed(learner, a(60) + b(1))
    learner._flow.load_state_dict(learner._old.state_dict())
    assert float(learner._guard(16).detach()) == pytest.approx(0.0, abs=1e-6)


def test_pixels_are_dequantised_for_training_and_fixed_for_answers():
    learner = HCL(settings=small_hcl())
    raw = torch.tensor([[0, 255, 128, 7]], dtype=torch.uint8)
    learner.observe(Batch(raw, [0]))
    first, second = (learner._vectors(raw, dequantise=True) for _ in range(2))
    assert not torch.equal(first, second)
    fixed = learner._vectors(raw, dequantise=False)
    expected = 0.05 + 0.9 * (0.875 * raw.double() / 255 + 0.125 * 0.5)
    assert torch.allclose(fixed.sigmoid().double(), expected, atol=1e-6)


def test_state_brings_its_orders_and_means_along():
    one, other = (HCL(seed=seed, settings=small_hcl()) for seed in (0, 1))
    feed(one, a(10))
    other.load_state_dict(one.state_dict())
    x = a(1, seed=9)[0].x
    assert torch.equal(one._flow(x)[0], other._flow(x)[0])
    assert torch.equal(one.predict(x), other.predict(x))


def test_embedded_digits_are_learned():
    learner = HCL(settings=HCLSettings(couplings=2, hidden=64))
    stream = Split(order=(0, 1), passes=3, batch=32).open(seed=0)
    found = changes(feed(learner, stream.batches()))
    assert (75, "recruited") in [change[:2] for change in found]
    parts = [learner.predict(part.x) == part.y for part in stream.held_out()]
    assert float(torch.cat(parts).float().mean()) > 0.6


@pytest.mark.parametrize("bad", [{"couplings": 0}, {"warmup": 1}, {"window": 10}])
def test_impossible_settings_are_refused(bad):
    with pytest.raises(ValueError, match=f"not {next(iter(bad.values()))}"):
        HCLSettings(**bad)
