"""iTAML: the rule by hand, its memory, and what a group of samples is worth."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn
from worlds import a

from tame import Batch
from tame.core.settings import Training
from tame.methods.exemplars import Exemplars
from tame.methods.itaml import ITAML, ITAMLSettings, task_losses
from tame.types import Hint

PLAIN = Training(rate=1.0, momentum=0.0, nesterov=False, weight_decay=0.0, clip=0.0,
                 precision="float32")  # fmt: skip


class Linear(nn.Module):
    """Outputs that are each its own weight times the input: gradients are known."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return x[:, :1] * self.weight


def make_linear(_shape, outputs):
    return Linear(outputs)


def learner(training: Training = PLAIN, **settings: object) -> ITAML:
    return ITAML(net=make_linear, settings=ITAMLSettings(slots=4, training=training, **settings))


def weights(made: ITAML):
    return made._single.built.net.weight.tolist()


def test_losses_are_of_the_tasks_outputs_alone():
    outputs = torch.tensor([[2.0, -1.0, 50.0]])
    mask = torch.tensor([True, True, False])
    expected = (math.log1p(math.exp(-2.0)) + math.log1p(math.exp(-1.0))) / 2
    assert float(task_losses(outputs, torch.tensor([0]), mask)) == pytest.approx(expected)


def test_first_task_takes_the_whole_step():
    made = learner()
    made.inform(Hint(task=0, tasks=2))
    made.observe(Batch([[1.0]], [5]))
    # one output in the task so far: gradient of BCE at 0 towards 1 is -1/2
    assert weights(made) == pytest.approx([0.5, 0.0, 0.0, 0.0])


def test_second_task_steps_from_the_same_weights_and_goes_part_of_the_way():
    made = learner(memory=4)
    made.inform(Hint(task=0, tasks=2))
    made.observe(Batch([[1.0]], [5]))
    made.inform(Hint(task=1, tasks=2))
    made.observe(Batch([[1.0]], [7]))
    # both tasks step from (0.5, 0): task 0 by 1 - s(0.5) on the first, task 1 by 1/2 on the second
    pull = math.exp(-0.5 * 1 / 2)
    own = 1 - 1 / (1 + math.exp(-0.5))
    assert made.pull() == pytest.approx(pull)
    assert weights(made) == pytest.approx([0.5 + pull * own / 2, pull * 0.5 / 2, 0.0, 0.0])


def test_the_public_codes_form_does_not_go_back():
    made = learner(memory=4, restore=False)
    made.inform(Hint(task=0, tasks=2))
    made.observe(Batch([[1.0]], [5]))
    made.inform(Hint(task=1, tasks=2))
    made.observe(Batch([[1.0]], [7]))
    pull = math.exp(-0.5 * 1 / 2)
    own = 1 - 1 / (1 + math.exp(-0.5))
    assert weights(made) == pytest.approx([0.5 + pull * own, pull * 0.5, 0.0, 0.0])


def test_memory_is_the_first_of_each_class_equally():
    kept = Exemplars(6)
    kept.add(torch.arange(8.0)[:, None], torch.tensor([0, 1, 0, 1, 0, 1, 0, 1]), 0)
    assert kept.of(0)[0].flatten().tolist() == [0, 2, 4, 1, 3, 5]
    kept.add(torch.tensor([[9.0]]), torch.tensor([2]), 1)
    assert kept.of(0)[0].flatten().tolist() == [0, 2, 1, 3]
    assert kept.of(1)[0].flatten().tolist() == [9]
    assert (len(kept), kept.tasks()) == (5, [0, 1])
    x, slots, tasks = kept.draw(9, 1, torch.Generator().manual_seed(0))
    assert sorted(x.flatten().tolist()) == [0, 1, 2, 3]
    assert set(tasks.tolist()) == {0}
    assert set(slots.tolist()) == {0, 1}


def two_tasks() -> ITAML:
    """Return a learner of two tasks of two classes each, told which is which."""
    made = ITAML(net={"name": "mlp", "hidden": [16]})
    for task, labels in ((0, (0, 1)), (1, (2, 3))):
        made.inform(Hint(task=task, tasks=2))
        for batch in a(40):
            rows = torch.isin(batch.y, torch.tensor(labels))
            made.observe(Batch(batch.x[rows], batch.y[rows]))
    return made


def test_a_group_shares_its_task_and_beats_single_noisy_samples():
    made = two_tasks()
    batch = a(20, seed=7)
    x, y = torch.cat([b.x for b in batch]), torch.cat([b.y for b in batch])
    x = x[y < 2] + 0.9 * torch.randn(
        int((y < 2).sum()), 8, generator=torch.Generator().manual_seed(1)
    )
    alone, together = made.predict(x), made.predict_told(x, Hint(group=20))
    assert all(len({int(label) // 2 for label in part}) == 1 for part in together.split(20))
    assert (alone >= 2).any()
    assert float((together < 2).double().mean()) > float((alone < 2).double().mean())


def test_group_of_one_is_the_untold_answer():
    made = two_tasks()
    x = a(1, seed=7)[0].x
    assert torch.equal(made.predict_told(x, Hint(group=1)), made.predict(x))
    assert torch.equal(made.predict_told(x, Hint()), made.predict(x))


def test_answering_adapts_a_copy_alone():
    made = two_tasks()
    before = made._single.built.net[1].weight.detach().clone()
    made.predict_told(a(1)[0].x, Hint(group=16))
    assert torch.equal(before, made._single.built.net[1].weight)
    adapted = next(iter(made._adapted.values()))
    assert not torch.equal(before, adapted[1].weight)


def test_told_state_survives_a_file(tmp_path):
    from tame import load

    made = two_tasks()
    made.save(tmp_path / "m.tame")
    again = load(tmp_path / "m.tame")
    x = a(2, seed=3)[0].x
    assert torch.equal(made.predict_told(x, Hint(group=8)), again.predict_told(x, Hint(group=8)))
    for one in (made, again):
        one.inform(Hint(task=0, tasks=2))
        one.observe(a(1, seed=4)[0])
    assert torch.equal(made._single.built.net[1].weight, again._single.built.net[1].weight)


def test_impossible_settings_are_refused():
    with pytest.raises(ValueError, match="memory is 1 or more"):
        ITAMLSettings(memory=0)


def test_the_schedule_begins_anew_with_each_task():
    made = learner(replace(PLAIN, milestones=(1,), decay=0.0), memory=4)
    made.inform(Hint(task=0, tasks=2))
    made.observe(Batch([[1.0]], [5]))
    before = weights(made)
    made.observe(Batch([[1.0]], [5]))
    assert weights(made) == before  # the rate has fallen to nothing
    made.inform(Hint(task=1, tasks=2))
    made.observe(Batch([[1.0]], [7]))
    assert weights(made) != before


def test_each_task_may_have_a_rate_of_its_own():
    made = learner(memory=4, rates=(1.0, 0.0))
    made.inform(Hint(task=3, tasks=3))
    made.observe(Batch([[1.0]], [5]))
    before = weights(made)
    assert before[0] > 0
    for task in (7, 1):  # the last rate is also that of all later ones
        made.inform(Hint(task=task, tasks=3))
        for _ in range(2):
            made.observe(Batch([[1.0]], [task]))
            assert weights(made) == before
