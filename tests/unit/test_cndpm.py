"""CN-DPM: scores from known densities, surprise, sleep, and the shared features."""

import math

import pytest
import torch
from worlds import a, feed, small_cndpm

from tame import Batch
from tame.methods.cndpm import CNDPM, CNDPMSettings
from tame.methods.dreaming import Rates
from tame.methods.mixture import Expert, Form, judge
from tame.streams.split import Split
from tame.types import Change

TWO_PI = math.log(2 * math.pi)


@torch.no_grad()
def pin(expert, centre, logits=None):
    """Make an expert's density the unit Gaussian around a point, its classifier constant."""
    for parameter in expert.parameters():
        parameter.zero_()
    expert.density.decoder[-1].bias.copy_(torch.tensor(centre))
    if logits is not None:
        expert.classifier.out.bias[: len(logits)] = torch.tensor(logits)


def pinned(*centres: list[float], counts, **changes: object):
    """Return a learner whose experts are such Gaussians, and whose steps change nothing."""
    changes = {"slots": 2, "log_alpha": -1e9} | changes
    rates = Rates(0.0, 0.0, density_steps=1, classifier_steps=1, batch=2)
    learner = CNDPM(settings=small_cndpm(rates=rates, **changes))
    learner._intake.keep(torch.zeros(1, 2), learner._intake.begin(torch.zeros(1, 2)), [0, 1])
    learner._make_room()
    for centre, count in zip(centres, counts, strict=True):
        learner.built.sleep(torch.zeros(2, 2), torch.tensor([0, 1]), count)
        pin(learner.built.experts[-1], centre)
    return learner


def test_bound_is_the_gaussians_log_density_where_nothing_is_encoded():
    expert = Expert(Form(2, 4, 4, 3, 5, sigmoid=False), 0, 2)
    pin(expert, [1.0, -1.0])
    bound, _ = expert.density(torch.tensor([[3.0, 0.0]]), torch.randn(1, 5, 3), ())
    assert bound.item() == pytest.approx(-0.5 * (4 + 1) - TWO_PI)


def test_divergence_of_the_code_by_hand():
    expert = Expert(Form(2, 4, 4, 1, 1, sigmoid=False), 0, 2)
    pin(expert, [0.0, 0.0])
    with torch.no_grad():
        expert.density.encoder.out.bias.copy_(torch.tensor([2.0, math.log(4.0)]))
    bound, _ = expert.density(torch.zeros(1, 2), torch.zeros(1, 1, 1), ())
    divergence = 0.5 * (4 + 4 - 1 - math.log(4))
    assert bound.item() == pytest.approx(-TWO_PI - divergence)


def test_bytes_have_a_sigmoid_mean():
    learner = CNDPM(settings=small_cndpm())
    learner.observe(Batch(torch.zeros(1, 2, dtype=torch.uint8), [0]))
    other = CNDPM(settings=small_cndpm())
    other.observe(Batch(torch.zeros(1, 2), [0]))
    assert (learner.built.form.sigmoid, other.built.form.sigmoid) == (True, False)


def test_counts_grow_by_the_responsibilities_of_known_densities():
    learner = pinned([0.0, 0.0], [2.0, 0.0], counts=[30.0, 10.0])
    learner.observe(Batch([[0.5, 0.0]], [1]))
    odds = 30 / 10 * math.exp(-0.5 * 0.5**2 + 0.5 * 1.5**2)
    share = odds / (1 + odds)
    assert learner.built.counts == pytest.approx([30 + share, 10 + 1 - share])


def test_classifier_takes_part_in_the_responsibility_at_its_temperature():
    learner = pinned([0.0, 0.0], [0.0, 0.0], counts=[1.0, 1.0], temperature=0.5)
    pin(learner.built.experts[0], [0.0, 0.0], [0.0, 1.0])
    learner.observe(Batch([[0.0, 0.0]], [1]))
    first = 1 / (1 + math.exp(-2.0))  # logits 0 and 1 at temperature 1/2
    share = first / (first + 0.5)
    assert learner.built.counts == pytest.approx([1 + share, 2 - share])


def test_only_what_no_expert_explains_goes_to_the_memory():
    learner = pinned([0.0, 0.0], counts=[10.0], log_alpha=0.0)
    pin(learner.built.fallow, [6.0, 0.0])
    seen = learner.observe(Batch([[0.0, 0.0], [6.0, 0.0], [5.0, 0.0]], [0, 1, 1]))
    assert seen.change is Change.NONE
    assert learner.state_dict()["memory"][0].tolist() == [[6.0, 0.0], [5.0, 0.0]]
    assert learner.built.counts == pytest.approx([11.0])


def test_alpha_decides_between_placeholder_and_expert():
    """With equal densities a sample is surprising exactly if alpha exceeds the count."""
    found = []
    for log_alpha in (math.log(9.9), math.log(10.1)):
        learner = pinned([0.0, 0.0], counts=[10.0], log_alpha=log_alpha)
        pin(learner.built.fallow, [0.0, 0.0])
        learner.observe(Batch([[1.0, 1.0]], [0]))
        found.append(learner.sizes().samples)
    assert found == [0, 1]


def test_counting_as_the_code_does_counts_surprises_too():
    learner = pinned([0.0, 0.0], counts=[10.0], log_alpha=0.0, counting="code")
    pin(learner.built.fallow, [6.0, 0.0])
    learner.observe(Batch([[6.0, 0.0]], [1]))
    assert learner.built.counts == pytest.approx([11.0])


def test_full_memory_recruits_and_is_emptied():
    learner = CNDPM(settings=small_cndpm(memory=40))
    feed(learner, a(2))
    assert (learner.expert_ids, learner.sizes().samples) == ((), 32)
    feed(learner, a(1))
    assert (learner.expert_ids, learner.sizes().samples) == ((0,), 0)
    assert learner.built.counts == [48.0]


def test_new_labels_recruit_an_expert_which_the_density_alone_finds_again():
    learner = CNDPM(settings=small_cndpm(temperature=0.05))
    near = [Batch(3 * batch.x, batch.y) for batch in a(20)]
    far = [Batch(-3 * batch.x, batch.y + 4) for batch in a(20, seed=1)]
    found = [seen for seen in feed(learner, near + far) if seen.change is Change.RECRUITED]
    assert [(seen.step >= 20, seen.expert) for seen in found] == [(True, 1)]
    assert learner.expert_ids == (0, 1)
    fresh = 3 * a(1, seed=9)[0].x
    assert learner.route(fresh).tolist() == [0] * 16
    assert learner.route(-fresh).tolist() == [1] * 16


def test_prediction_is_the_mixture_of_known_parts():
    learner = pinned([0.0, 0.0], [2.0, 0.0], counts=[3.0, 1.0])
    pin(learner.built.experts[0], [0.0, 0.0], [0.0, 3.0])  # favours label 1
    pin(learner.built.experts[1], [2.0, 0.0], [9.0, 0.0])  # is sure of label 0
    middle = 1 + 0.5 * math.log(3)  # where both have the same say the surer one wins
    x = torch.tensor([[0.0, 0.0], [middle, 0.0], [2.0, 0.0]])
    assert learner.predict(x).tolist() == [1, 0, 0]
    assert learner.predict_by(x, 0).tolist() == [1, 1, 1]
    assert learner.route(x + torch.tensor([-0.01, 0.0]))[1] == 0
    assert learner.route(x + torch.tensor([0.01, 0.0]))[1] == 1


def test_before_any_expert_the_commonest_label_is_given():
    learner = CNDPM(settings=small_cndpm())
    learner.observe(Batch(torch.eye(8)[:3], [7, 4, 4]))
    assert learner.predict(torch.eye(8)).tolist() == [4] * 8


def test_no_gradient_reaches_the_lender():
    experts = [Expert(Form(4, 6, 3, 2, 2), number, 2) for number in range(2)]
    judged = judge(experts, torch.rand(5, 4), torch.randn(5, 2, 2))
    (judged.evidence[:, 1].sum() + judged.labels[:, 1, 0].sum()).backward()
    reached = [any(bool(p.grad.any()) for p in expert.parameters()) for expert in experts]
    assert reached == [False, True]


def test_five_experts_on_digits_have_the_published_number_of_parameters():
    experts = [Expert(Form(784), number, 10) for number in range(5)]
    assert round(sum(p.numel() for e in experts for p in e.parameters()), -3) == 524_000


def test_classifiers_grow_and_keep_what_they_know():
    learner = CNDPM(settings=small_cndpm(slots=4))
    feed(learner, a(10))
    before = learner.built.experts[0].classifier.out.weight[:4].detach().clone()
    learner._intake.labels.open([9])
    learner._make_room()
    out = learner.built.experts[0].classifier.out
    assert out.out_features == 8
    assert torch.equal(out.weight[:4], before)
    feed(learner, a(1))  # the optimiser goes on with the wider layer


def test_state_brings_its_placeholder_along():
    one, other = (CNDPM(seed=seed, settings=small_cndpm()) for seed in (0, 1))
    feed(one, a(10))
    other.load_state_dict(one.state_dict())
    x = a(1, seed=9)[0].x
    assert torch.equal(one.predict(x), other.predict(x))
    pairs = zip(one.built.fallow.parameters(), other.built.fallow.parameters(), strict=True)
    assert all(torch.equal(mine, theirs) for mine, theirs in pairs)


def test_embedded_digits_recruit_an_expert_a_pair():
    rates = Rates(2e-3, 1e-3, density_steps=150, classifier_steps=100)
    settings = CNDPMSettings(memory=100, draws=2, rates=rates)
    learner = CNDPM(settings=settings)
    stream = Split(order=(0, 1), passes=1, batch=20).open(seed=0)
    feed(learner, stream.batches())
    assert learner.expert_ids == (0, 1)
    parts = [learner.predict(part.x) == part.y for part in stream.held_out()]
    assert float(torch.cat(parts).float().mean()) > 0.7


@pytest.mark.parametrize("bad", [{"memory": 0}, {"temperature": 0.0}, {"draws": 0}])
def test_impossible_settings_are_refused(bad):
    with pytest.raises(ValueError, match="not 0"):
        CNDPMSettings(**bad)
