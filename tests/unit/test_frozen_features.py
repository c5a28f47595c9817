"""The closed-form methods on frozen features: each against the same thing computed on all data."""

import numpy as np
import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from torch import nn
from worlds import a, b, feed

from tame import Batch, load
from tame.core.inputs import Inputs
from tame.errors import ConfigError
from tame.methods.frozen import Frozen
from tame.methods.ncm import NCM, NCMSettings
from tame.methods.ranpac import RIDGES, RanPAC, RanPACSettings
from tame.methods.slda import SLDA, SLDASettings
from tame.streams.split import Split

NET = {"name": "mlp", "hidden": [4]}
CPU = torch.device("cpu")


def uneven(batches=25, features=5, labels=3, seed=0):
    """Return correlated batches of random sizes."""
    draws = torch.Generator().manual_seed(seed)
    mix = torch.randn(features, features, generator=draws)
    centres = 2 * torch.randn(labels, features, generator=draws)
    found = []
    for _ in range(batches):
        size = int(torch.randint(1, 9, (1,), generator=draws))
        y = torch.randint(0, labels, (size,), generator=draws)
        found.append(Batch(centres[y] + torch.randn(size, features, generator=draws) @ mix, y))
    return found


def whole(batches):
    return torch.cat([x for x, _ in batches]), torch.cat([y for _, y in batches])


def by_label(values, learner):
    """Return rows by slot as rows by label."""
    return values[learner._frozen.intake.labels.labels().argsort()]


class Trunk(nn.Module):
    """A net with a trunk that doubles its inputs."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.full((1,), 2.0))
        self.head = nn.Linear(2, outputs)

    def features(self, x):
        return self.factor * x

    def forward(self, x):
        return self.head(self.features(x))


def make_trunk(_shape, outputs):
    return Trunk(outputs)


def test_means_are_exact():
    batches = uneven()
    learner = NCM(net=NET)
    feed(learner, batches)
    x, y = whole(batches)
    exact = torch.stack([x[y == label].double().mean(0) for label in range(3)])
    assert torch.allclose(by_label(learner.means(), learner), exact, atol=1e-12)
    nearest = torch.cdist(x.double(), exact).argmin(1)
    assert torch.equal(learner.predict(x), nearest)


def test_unit_length_compares_directions():
    learner = NCM(net=NET, settings=NCMSettings(unit_length=True))
    learner.observe(Batch([[9.0, 0.0], [0.0, 1.0]], [0, 1]))
    assert learner.predict([[0.2, 0.1], [2.0, 3.0]]).tolist() == [0, 1]


def test_pooled_scatter_is_the_within_label_covariance():
    batches = uneven()
    learner = SLDA(net=NET, settings=SLDASettings(scatter="pooled"))
    feed(learner, batches)
    x, y = whole(batches)
    means = torch.stack([x[y == label].double().mean(0) for label in range(3)])
    away = x.double() - means[y]
    assert torch.allclose(learner.covariance(), away.T @ away / len(x), atol=1e-10)
    assert torch.allclose(by_label(learner._means, learner), means, atol=1e-12)


def test_pooled_form_is_sklearns_discriminant_analysis():
    x, y = whole(uneven(60))
    each = int(y.bincount().min())
    rows = torch.cat([(y == label).nonzero().squeeze(1)[:each] for label in range(3)])
    x, y = x[rows], y[rows]  # balanced: the method has no priors
    learner = SLDA(net=NET, settings=SLDASettings(scatter="pooled", shrinkage=0.0))
    for part in torch.randperm(len(y)).split(7):
        learner.observe(Batch(x[part], y[part]))
    model = LinearDiscriminantAnalysis(solver="lsqr").fit(x.double().numpy(), y.numpy())
    fresh = torch.randn(200, 5)
    weights, bias = learner.classifier()
    ours = by_label((fresh.double() @ weights + bias).T, learner).T
    theirs = torch.from_numpy(model.decision_function(fresh.double().numpy()))
    centred = [scores - scores.mean(1, keepdim=True) for scores in (ours, theirs)]
    assert torch.allclose(*centred, atol=1e-6)
    assert np.array_equal(learner.predict(fresh).numpy(), model.predict(fresh.double().numpy()))


@pytest.mark.parametrize("form", ["paper", "code"])
def test_scatter_follows_the_rule_one_sample_at_a_time(form):
    batches = uneven(10)
    learner = SLDA(net=NET, settings=SLDASettings(scatter=form))
    feed(learner, batches)
    covariance, means, counts = torch.zeros(5, 5).double(), torch.zeros(3, 5).double(), [0] * 3
    for time, (f, y) in enumerate(zip(*whole(batches), strict=True)):
        away = f.double() - means[y]
        if counts[y] or form == "code":
            covariance = (time * covariance + time / (time + 1) * away.outer(away)) / (time + 1)
        else:
            covariance = time * covariance / (time + 1)
        means[y] += away / (counts[y] + 1)
        counts[y] += 1
    assert torch.allclose(learner.covariance(), covariance, atol=1e-9)


def test_shrinkage_of_one_is_nearest_mean():
    batches = uneven()
    learner = SLDA(net=NET, settings=SLDASettings(shrinkage=1.0))
    nearest = NCM(net=NET)
    feed(learner, batches)
    feed(nearest, batches)
    x = torch.randn(100, 5)
    assert torch.equal(learner.predict(x), nearest.predict(x))


def test_ranpac_is_ridge_regression_on_all_data():
    batches = uneven()
    learner = RanPAC(net=NET, settings=RanPACSettings(width=30, ridge=0.7))
    feed(learner, batches)
    x, y = whole(batches)
    hidden = torch.relu(x @ learner._projection).double().numpy()
    target = np.eye(3)[y.numpy()]
    model = Ridge(alpha=0.7, fit_intercept=False, solver="cholesky").fit(hidden, target)
    assert np.allclose(by_label(learner.weights().T, learner).numpy(), model.coef_, atol=1e-6)


def test_ridge_is_the_best_on_every_fifth_sample():
    batches = uneven(60, seed=2)
    learner = RanPAC(net=NET, settings=RanPACSettings(width=30))
    feed(learner, batches)
    x, y = whole(batches)
    hidden, target = torch.relu(x @ learner._projection).double(), torch.eye(3).double()[y]
    held = torch.arange(len(x)) % 5 == 4

    def error(ridge):
        h, t = hidden[~held], target[~held]
        found = torch.linalg.solve(h.T @ h + ridge * torch.eye(30), h.T @ t)
        return float((hidden[held] @ found - target[held]).square().sum())

    assert learner.ridge() == min(RIDGES[4:], key=error)
    assert RIDGES[4] < learner.ridge() < RIDGES[-1]


def test_no_projection_is_plain_ridge_on_the_features():
    learner = RanPAC(net=NET, settings=RanPACSettings(width=0, ridge=1.0))
    learner.observe(Batch([[1.0, 0.0], [0.0, 2.0]], [0, 1]))
    assert torch.allclose(learner.weights(), torch.tensor([[0.5, 0.0], [0.0, 0.4]]).double())


@pytest.mark.parametrize("method", [NCM, SLDA, RanPAC])
def test_order_and_batching_change_nothing(method):
    x, y = whole(uneven())
    forms = {
        NCM: NCMSettings(),
        SLDA: SLDASettings(scatter="pooled"),
        RanPAC: RanPACSettings(width=30, ridge=1.0),
    }
    one, two = (method(net=NET, settings=forms[method]) for _ in range(2))
    one.observe(Batch(x, y))
    for part in torch.randperm(len(y)).split(3):
        two.observe(Batch(x[part], y[part]))
    fresh = torch.randn(100, 5)
    assert torch.equal(one.predict(fresh), two.predict(fresh))


@pytest.mark.parametrize("method", [NCM, SLDA, RanPAC])
def test_embedded_digits_are_learned_from_pixels(method):
    settings = RanPACSettings(width=200) if method is RanPAC else None
    learner = method(net="lenet", settings=settings)
    stream = Split(passes=1, batch=64).open(seed=0)
    feed(learner, stream.batches())
    parts = [learner.predict(part.x) == part.y for part in stream.held_out()]
    assert float(torch.cat(parts).float().mean()) > 0.75


def test_net_without_weights_to_load_gives_its_inputs():
    batch = Batch(torch.zeros(2, 1, 32, 32), [0, 1])
    for net in ("lenet", "resnet18"):
        frozen = Frozen(net, 0, Inputs(), "auto", CPU)
        frozen.admit(batch)
        assert frozen.trunk is None
        assert frozen.vectors(batch.x).shape == (2, 1024)


def test_trunk_of_a_net_of_your_own_is_taken_and_never_trained():
    learner = NCM(net=make_trunk)
    feed(learner, [Batch([[1.0, 3.0]], [0])] * 3)
    assert learner.means().tolist() == [[2.0, 6.0]]
    trunk = learner._frozen.trunk
    assert not trunk.training
    assert not any(parameter.requires_grad for parameter in trunk.parameters())


def test_random_trunk_is_taken_when_asked_for_and_is_the_seeds():
    net, settings = {"name": "resnet18", "stem": "small"}, NCMSettings(features="trunk")
    batch = Batch(torch.rand(2, 1, 8, 8), [0, 1])
    one, two, other = (NCM(net=net, seed=seed, settings=settings) for seed in (0, 0, 1))
    feed(one, [batch])
    feed(two, [batch])
    feed(other, [batch])
    assert one.means().shape == (2, 512)
    assert torch.equal(one.means(), two.means())
    assert not torch.equal(one.means(), other.means())


def test_trunk_that_is_not_there_is_refused():
    learner = NCM(net=NET, settings=NCMSettings(features="trunk"))
    with pytest.raises(ConfigError, match="has no trunk"):
        learner.observe(Batch([[0.0, 1.0]], [0]))


def test_trunk_is_saved_with_the_learner(tmp_path):
    learner = SLDA(net=make_trunk)
    feed(learner, uneven(features=2))
    with torch.no_grad():
        learner._frozen.trunk.factor.fill_(3.0)
    learner.save(tmp_path / "model.tame")
    again = load(tmp_path / "model.tame", net=make_trunk)
    assert float(again._frozen.trunk.factor) == 3.0


def test_moved_world_is_added_not_forgotten():
    """Closed forms forget nothing: two worlds one after the other equal both at once."""
    one, two = NCM(net=NET), NCM(net=NET)
    feed(one, a(20) + b(20))
    feed(two, [both for pair in zip(a(20), b(20), strict=True) for both in pair])
    assert torch.allclose(one.means().sort(0).values, two.means().sort(0).values)


@pytest.mark.parametrize(
    ("settings", "bad"), [(SLDASettings, {"shrinkage": -1}), (RanPACSettings, {"width": -1})]
)
def test_impossible_settings_are_refused(settings, bad):
    with pytest.raises(ValueError, match="not -1"):
        settings(**bad)
