"""CN-DPM's convolutional form: sizes, a true bound, what is borrowed, and the whole contract."""

import math

import pytest
import torch
from worlds import feed, small_cndpm

from tame import Batch, load
from tame.checks import learner_checks
from tame.checks.failure import difference
from tame.config import build
from tame.errors import ConfigError, InputError
from tame.methods import dreaming
from tame.methods.cndpm import CNDPM, CNDPMSettings
from tame.methods.convolutions import Channels, Decoder, Picture, Residual
from tame.methods.mixture import Expert, Form, judge, lend
from tame.types import Change

CHECKS = dict(learner_checks())
SIDE = 12
TINY = Channels(4, 2, 4, 2)


def textures():
    """Return eight striped colour images, each of its own direction, period and colour."""
    rows, columns = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    waves = [(1, 0), (0, 1), (1, 1), (1, -1), (2, 0), (0, 2), (2, 2), (2, -2)]
    colours = torch.eye(3)[torch.arange(8) % 3] + 0.3
    stripes = [torch.cos(math.pi / 3 * (up * rows + along * columns)) for up, along in waves]
    return colours[:, :, None, None] * torch.stack(stripes)[:, None]


def small_conv(**changes: object):
    """Return settings under which images of 12x12 are learned in a few steps."""
    return small_cndpm(**({"form": "conv", "channels": TINY} | changes))


def coloured(batches: int, kinds: range, seed: int = 0):
    """Return batches of noisy byte images of some textures, labelled by their kind."""
    draws = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(batches):
        y = torch.randint(kinds.start, kinds.stop, (16,), generator=draws)
        noise = 10 * torch.randn(16, 3, SIDE, SIDE, generator=draws)
        found.append(Batch((128 + 90 * textures()[y] + noise).clamp(0, 255).to(torch.uint8), y))
    return found


def recruiting(seed: int = 0):
    """Return a learner that recruits an expert for each two kinds of such images."""
    return CNDPM(seed=seed, settings=small_conv(temperature=0.05))


def form(**changes: object):
    """Return that of small convolutional experts with one latent and a linear mean."""
    parts = {"latent": 1, "sigmoid": False, "picture": Picture((3, SIDE, SIDE), TINY)}
    return Form(3 * SIDE**2, **(parts | changes))


class Painted:
    """A learner of images that is given vectors of eight floats, so that the checks can feed it."""

    hints, unbounded = CNDPM.hints, CNDPM.unbounded

    def __init__(self, seed: int) -> None:
        self._inner = CNDPM(seed=seed, settings=small_conv())
        self.consolidate, self.sizes = self._inner.consolidate, self._inner.sizes
        self.state_dict, self.load_state_dict = self._inner.state_dict, self._inner.load_state_dict

    def observe(self, batch: Batch):
        plain = isinstance(batch, Batch) and batch.x.ndim > 0
        return self._inner.observe(Batch(paint(batch.x), batch.y) if plain else batch)

    def predict(self, x, when="ever"):
        return self._inner.predict(paint(x), when)


def paint(x):
    """Return images of vectors: as much of each texture as its number says."""
    if x.ndim != 2 or x.shape[1] != 8 or not x.is_floating_point():
        return x
    return torch.einsum("ni,ichw->nchw", x, textures().to(x.dtype))


@pytest.mark.parametrize("check", CHECKS)
def test_contract(check: str):
    CHECKS[check](Painted)


@pytest.mark.parametrize(
    ("channels", "latent", "experts", "slots", "published"),
    [
        (Channels(), 64, 5, 10, 4_600_000),  # CIFAR-10
        (Channels(), 64, 20, 100, 19_190_000),  # CIFAR-100
        (Channels(32, 4, 32, 32, 2), 32, 2, 10, 7_800_000),  # MNIST, then SVHN
    ],
)
def test_experts_have_the_published_number_of_parameters(
    channels, latent, experts, slots, published
):
    made = Form(3072, latent=latent, picture=Picture((3, 32, 32), channels))
    every = [Expert(made, number, slots) for number in range(experts)]
    assert round(sum(p.numel() for e in every for p in e.parameters()), -4) == published


def test_bound_falls_short_of_the_true_density_by_what_the_code_is_wrong():
    """With one latent the integral can be done: log p(x) - bound = KL(code, posterior)."""
    torch.manual_seed(0)
    density = Expert(form(), 0, 2).density.double()
    with torch.no_grad():
        density.decoder.layers[-1].weight.mul_(20)
        density.encoder.out.bias.copy_(torch.tensor([0.7, -1.0]))
        x = torch.rand(3, 3, SIDE, SIDE, dtype=torch.double)
        z = torch.linspace(-9, 9, 6001, dtype=torch.double)
        even = (torch.arange(6001, dtype=torch.double) + 0.5) / 6001
        noise = torch.special.ndtri(even)[None, :, None]
        bound, _ = density(x, noise, ())
        mean, log_variance = density.encoder(x, ())[0].split(1, 1)
        code = torch.distributions.Normal(mean, (0.5 * log_variance).exp()).log_prob(z)
        decoded = density.decoder(z[None, :, None])
        squares = (x.flatten(1)[:, None] - decoded).square().sum(2)
        joint = -0.5 * (squares + z.square() + (3 * SIDE**2 + 1) * math.log(2 * math.pi))
    step = z[1] - z[0]
    evidence = joint.logsumexp(1) + step.log()
    short = (code.exp() * (code - joint + evidence[:, None])).sum(1) * step
    assert short.min() > 0.05  # the code is not the posterior
    assert torch.allclose(evidence - bound, short, rtol=1e-3)


@pytest.mark.parametrize("sigmoid", [False, True])
def test_bound_sums_over_all_pixels_of_each_channel(sigmoid):
    expert = Expert(form(sigmoid=sigmoid), 0, 2)
    centre = torch.tensor([1.0, -1.0, 0.5])
    with torch.no_grad():
        for parameter in expert.parameters():
            parameter.zero_()
        expert.density.decoder.layers[-1].bias.copy_(centre)
    x = torch.rand(2, 3, SIDE, SIDE)
    mean = (centre.sigmoid() if sigmoid else centre)[:, None, None].expand_as(x)
    bound, _ = expert.density(x, torch.randn(2, 4, 1), ())
    expected = torch.distributions.Normal(mean, 1.0).log_prob(x).sum((1, 2, 3))
    assert torch.allclose(bound, expected)


def test_decoder_gives_images_in_the_order_of_the_samples_pixels():
    decoder = Decoder(Picture((3, SIDE, 16), TINY), 2)
    latents = torch.randn(5, 4, 2)
    whole = decoder(latents)
    assert whole.shape == (5, 4, 3 * SIDE * 16)
    one = decoder.layers(latents[3, 1:2])
    assert one.shape == (1, 3, SIDE, 16)
    assert torch.allclose(whole[3, 1], one.flatten(), atol=1e-6)


def test_no_gradient_reaches_the_lender_whose_features_count():
    experts = [Expert(form(), number, 2) for number in range(2)]
    x, noise = torch.rand(5, 3, SIDE, SIDE), torch.randn(5, 2, 1)
    judged = judge(experts, x, noise)
    (judged.evidence[:, 1].sum() + judged.labels[:, 1, 0].sum()).backward()
    reached = [any(bool(p.grad.any()) for p in expert.parameters()) for expert in experts]
    assert reached == [False, True]
    lenders = (experts[0].density.encoder.two, experts[0].classifier.stages[3])
    with torch.no_grad():
        for parameter in (p for lender in lenders for p in lender.parameters()):
            parameter.add_(torch.randn(parameter.shape))
    moved = judge(experts, x, noise)
    assert not torch.allclose(moved.evidence[:, 1], judged.evidence[:, 1])
    assert not torch.allclose(moved.labels[:, 1], judged.labels[:, 1])


def test_asleep_an_expert_borrows_what_it_borrows_awake():
    experts = [Expert(form(), number, 2) for number in range(3)]
    x, noise = torch.rand(5, 3, SIDE, SIDE), torch.randn(5, 2, 1)
    judged = judge(experts, x, noise)
    lent = lend((one.density.encoder for one in experts[:2]), x)
    shown = lend((one.classifier for one in experts[:2]), x)
    assert torch.equal(experts[2].density(x, noise, lent)[0], judged.evidence[:, 2])
    outputs = experts[2].classifier(x, shown)[0].log_softmax(1)
    assert torch.equal(outputs, judged.labels[:, 2])


def test_classifier_sees_each_image_by_itself():
    classifier = Residual(Picture((3, SIDE, SIDE), TINY), 0, 4)
    x = torch.rand(6, 3, SIDE, SIDE)
    alone = torch.cat([classifier(one[None], ())[0] for one in x])
    assert torch.allclose(classifier(x, ())[0], alone, atol=1e-5)
    assert torch.allclose(classifier(4 * x, ())[0], alone, atol=1e-2)  # whatever its contrast


def test_unused_experts_get_no_gradient_and_do_not_move():
    learner = recruiting()
    feed(learner, coloured(8, range(2)) + coloured(8, range(2, 4)))
    before = [[p.detach().clone() for p in e.parameters()] for e in learner.built.experts]
    learner.observe(coloured(1, range(2, 4), seed=5)[0])
    moved = [
        any(not torch.equal(p, old) for p, old in zip(e.parameters(), kept, strict=True))
        for e, kept in zip(learner.built.experts, before, strict=True)
    ]
    assert moved == [False, True]
    assert all(p.grad is None for p in learner.built.experts[0].parameters())


def test_textures_of_new_labels_recruit_and_are_found_again_by_density_alone():
    learner = recruiting()
    stream = [coloured(12, range(2 * part, 2 * part + 2), seed=part) for part in range(3)]
    seen = feed(learner, [batch for part in stream for batch in part])
    found = [(one.step // 12, one.expert) for one in seen if one.change is Change.RECRUITED]
    assert found == [(1, 1), (2, 2)]
    fresh = coloured(8, range(6), seed=9)  # more than are judged at once
    x, y = torch.cat([batch.x for batch in fresh]), torch.cat([batch.y for batch in fresh])
    assert float((learner.route(x) == y // 2).float().mean()) > 0.9
    assert float((learner.predict(x) == y).float().mean()) > 0.9
    assert torch.equal(learner.predict(x)[64:80], learner.predict(x[64:80]))


def test_file_resumes_with_experts_that_borrow(tmp_path):
    stream = coloured(12, range(2)) + coloured(12, range(2, 4)) + coloured(12, range(4, 6))
    whole, first = recruiting(5), recruiting(5)
    expected = feed(whole, stream)
    seen = feed(first, stream[:20])
    assert first.expert_ids == (0, 1)
    first.save(tmp_path / "model.tame")
    second = load(tmp_path / "model.tame")
    assert repr(seen + feed(second, stream[20:])) == repr(expected)
    assert second.expert_ids == (0, 1, 2)
    assert difference(whole.state_dict(), second.state_dict()) is None


def test_grey_images_are_seen_too():
    learner = CNDPM(settings=small_conv())
    learner.observe(Batch(torch.zeros(2, 28, 28, dtype=torch.uint8), [0, 1]))
    assert learner.built.form.picture.shape == (1, 28, 28)


@pytest.mark.parametrize("shape", [(8,), (SIDE, SIDE), (3, 8, 8), (3, 12, 14), (1, 3, 12, 12)])
def test_what_is_no_such_image_is_refused_and_nothing_changed(shape):
    learner = CNDPM(settings=small_conv())
    before = repr(learner.state_dict())
    with pytest.raises(InputError, match=r"multiples of 4 and 12 or more, not \("):
        learner.observe(Batch(torch.zeros(2, *shape), [0, 1]))
    assert repr(learner.state_dict()) == before
    learner.observe(coloured(1, range(2))[0])


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"form": "cnn"}, "'form' cannot be 'cnn'; known: conv, mlp"),
        ({"channels": {"density": 0}}, "density is 1 or more, not 0"),
        ({"channels": {"widht": 4}}, "unknown key 'channels.widht'"),
    ],
)
def test_impossible_settings_are_refused(table, told):
    with pytest.raises(ConfigError, match=told):
        build(CNDPMSettings, table)


def test_a_form_that_is_none_is_refused():
    with pytest.raises(ValueError, match="form is 'mlp' or 'conv', not 'cnn'"):
        CNDPMSettings(form="cnn")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_on_a_gpu_it_recruits_and_resumes(tmp_path):
    stream = coloured(12, range(2)) + coloured(12, range(2, 4), seed=1)
    learner = CNDPM(settings=small_conv(temperature=0.05), device="cuda")
    feed(learner, stream)
    assert learner.expert_ids == (0, 1)
    learner.save(tmp_path / "model.tame")
    again = load(tmp_path / "model.tame", device="cuda")
    x = coloured(2, range(4), seed=9)[0].x
    assert torch.equal(learner.predict(x), again.predict(x))
    assert math.isfinite(again.observe(stream[0]).loss)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_on_a_gpu_a_recorded_night_teaches_what_an_eager_one_does(monkeypatch):
    stream = coloured(12, range(2))
    taught = []
    for recorded in (True, False):
        if not recorded:
            monkeypatch.setattr(dreaming, "replayed", lambda work, *_: work)
        learner = CNDPM(settings=small_conv(temperature=0.05), device="cuda")
        with torch.backends.cudnn.flags(deterministic=True, benchmark=False, allow_tf32=False):
            feed(learner, stream)
        taught.append(learner.built.experts[0].state_dict())
    for name, value in taught[0].items():
        assert torch.allclose(value, taught[1][name], atol=1e-3), name
