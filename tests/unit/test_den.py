"""DEN: each stage by itself, and that earlier tasks keep what they had."""

import pytest
import torch
from worlds import a

from tame import Batch
from tame.errors import ConfigError
from tame.methods.den import DEN, DENSettings
from tame.methods.den_stages import Stages, Teaching, group_shrunk, selected, shrunk
from tame.methods.growing import Growing, Head
from tame.types import Hint, silent

NET = {"name": "mlp", "hidden": [12, 8]}


def network() -> Growing:
    """Return two layers of three and two units on four inputs, and heads of two tasks."""
    net = Growing.made(4, (3, 2), torch.Generator().manual_seed(0))
    for task in (0, 1):
        weight = torch.randn(2, 2, generator=torch.Generator().manual_seed(task))
        net.heads[task] = Head(weight, torch.zeros(2), [2 * task, 2 * task + 1], [3, 2])
    return net


def stages(net: Growing, **settings: float) -> Stages:
    return Stages(net, 1, DENSettings(**settings), torch.Generator().manual_seed(0), silent)


def teaching():
    x = torch.randn(32, 4, generator=torch.Generator().manual_seed(5))
    return Teaching(x, torch.stack([x[:, 0] > 0, x[:, 0] <= 0], 1).float())


def test_proximal_steps_by_hand():
    assert shrunk(torch.tensor([0.3, -0.05, -0.2]), 0.1).tolist() == pytest.approx([0.2, 0, -0.1])
    rows = group_shrunk(torch.tensor([[0.6, 0.8], [0.06, 0.08]]), 0.5)
    assert rows.flatten().tolist() == pytest.approx([0.3, 0.4, 0.0, 0.0])


def test_selection_follows_non_zero_paths_from_the_head_down():
    first = torch.ones(3, 4)
    second = torch.tensor([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    head = torch.tensor([[0.0, 1.0], [0.0, 0.0]])
    kept = selected([first, second], head)
    assert [units.tolist() for units in kept] == [[False, True, False], [False, True]]


def test_added_units_change_no_earlier_task():
    net, x = network(), torch.randn(5, 4, generator=torch.Generator().manual_seed(9))
    before = net.outputs(x, 0)
    net.add_units(0, torch.ones(2, 4), torch.ones(2))
    net.add_units(1, torch.ones(1, 5), torch.ones(1))
    net.widen(1, torch.ones(2, 1))
    assert torch.equal(net.outputs(x, 0), before)
    assert net.widths == net.heads[1].widths == [5, 3]
    assert net.heads[0].widths == [3, 2]


def test_expansion_trains_added_units_and_the_head_alone():
    net = network()
    old = [weight.clone() for weight in net.weights]
    head = net.heads[0].weight.clone()
    stages(net, iterations=30, units=4, group=0.0)._expand(teaching(), [3, 2])
    assert net.widths == [7, 6]
    assert torch.equal(net.weights[0][:3], old[0])
    assert torch.equal(net.weights[1][:2, :3], old[1])
    assert not net.weights[1][:2, 3:].any()  # old units do not listen to added ones
    assert torch.equal(net.heads[0].weight, head)


def test_units_that_the_group_penalty_empties_go_again():
    net = network()
    stages(net, iterations=5, units=4, group=10.0)._expand(teaching(), [3, 2])
    assert net.widths == net.heads[1].widths == [3, 2]
    assert net.heads[1].weight.shape == (2, 2)


def test_split_takes_the_most_moved_and_puts_the_old_back():
    net = network()
    before = net.clone()
    net.weights[1][0] += 1.0  # far
    net.weights[0][1] += 0.5  # farther than the threshold, but not the farthest
    net.weights[0][2] += 2.0
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(9))
    moved = net.weights[0][2].clone()
    head = net.heads[1].weight.clone()
    assert stages(net, units=1)._split(before, [3, 2])
    assert net.widths == [4, 3]
    assert torch.equal(net.weights[0][2], before.weights[0][2])
    assert torch.equal(net.weights[0][3], moved)
    assert not torch.equal(net.weights[0][1], before.weights[0][1])  # one a layer, the farthest
    assert torch.equal(net.heads[1].weight[:, 2], head[:, 0])
    assert not net.heads[1].weight[:, 0].any()
    net.weights[0][1] -= 0.5
    assert torch.allclose(net.outputs(x, 0), before.outputs(x, 0), atol=1e-6)


def test_nothing_that_stayed_is_split():
    net = network()
    assert not stages(net)._split(net.clone(), [3, 2])
    assert net.widths == [3, 2]


def test_drift_penalty_holds_selected_units():
    moved = []
    for drift in (0.0, 50.0):
        net = network()
        before = net.weights[0].clone()
        stages(net, iterations=100, drift=drift, rate=0.01)._select(teaching())
        moved.append(float((net.weights[0] - before).norm()))
    assert moved[1] < 0.5 * moved[0]


def two_tasks(**settings: float) -> DEN:
    made = DEN(net=NET, settings=DENSettings(**settings))
    for task, labels in ((0, (0, 1)), (1, (2, 3))):
        made.inform(Hint(task=task))
        for batch in a(20):
            rows = torch.isin(batch.y, torch.tensor(labels))
            made.observe(Batch(batch.x[rows], batch.y[rows]))
    made.consolidate()
    return made


def test_a_task_told_is_answered_in_its_own_labels_and_rightly():
    made = two_tasks()
    batch = a(1, seed=7)[0]
    for task in (0, 1):
        rows = batch.y // 2 == task
        found = made.predict_told(batch.x[rows], Hint(task=task))
        assert float((found == batch.y[rows]).double().mean()) > 0.9
    assert set(made.predict_told(batch.x, Hint(task=1)).tolist()) <= {2, 3}


def test_it_grows_only_where_the_loss_asks_for_it():
    grown, enough = two_tasks(enough=0.0, group=0.0), two_tasks(enough=100.0, split=1e9)
    assert min(grown._done.widths[0] - 12, grown._done.widths[1] - 8) >= 10
    assert enough._done.widths == [12, 8]


def test_a_boundary_without_data_after_it_changes_no_answer():
    made = two_tasks()
    x = a(1, seed=7)[0].x
    before = made.predict(x)
    made.inform(Hint(task=2))
    made.consolidate()
    assert torch.equal(made.predict(x), before)
    assert made.sizes().samples == 0


def test_other_nets_are_refused():
    with pytest.raises(ConfigError, match="its net is an mlp"):
        DEN(net="lenet")


def test_resumed_in_the_second_task_equals_never_stopped(tmp_path):
    from tame import load
    from tame.checks.failure import difference

    made = two_tasks()
    made.save(tmp_path / "m.tame")
    again = load(tmp_path / "m.tame")
    for one in (made, again):
        one.inform(Hint(task=0))
        one.observe(a(1, seed=4)[0])
        one.consolidate()
    assert difference(made.state_dict(), again.state_dict()) is None
