"""Images in fewer bytes, and a selector that keeps its samples so."""

import math

import pytest
import torch
from worlds import a, b, feed, small_tame

from tame import Batch, load
from tame.checks.failure import difference
from tame.core.class_selector import ClassSelector
from tame.core.codec import Codec
from tame.core.distinct import Distinct
from tame.core.moment_selector import MomentSelector
from tame.engine.recipe import Recipe
from tame.errors import InputError

FINE = Codec(luma=64, chroma=64, step=4.0)


def smooth(count: int, *shape: int) -> torch.Tensor:
    """Return images without sharp edges, as photographs mostly are."""
    torch.manual_seed(0)
    planes, height, width = shape if len(shape) == 3 else (1, *shape)
    coarse = torch.rand(count, planes, 4, 4) * 200 + 20
    fine = torch.nn.functional.interpolate(coarse, (height, width), mode="bicubic")
    return fine.clamp(0, 255).round().to(torch.uint8).view(count, *shape)


def quality(images: torch.Tensor, codec: Codec) -> float:
    """Return the peak signal to noise ratio of what comes back, in decibels."""
    back = codec.decode(codec.encode(images), tuple(images.shape[1:]))
    return 10 * math.log10(255**2 / (back.float() - images.float()).square().mean())


@pytest.mark.parametrize("shape", [(28, 28), (1, 28, 28), (3, 32, 32), (3, 33, 18), (3, 19, 50)])
def test_an_image_comes_back_in_its_shape_and_nearly_as_it_was(shape):
    images = smooth(6, *shape)
    back = Codec().decode(Codec().encode(images), shape)
    assert (back.shape, back.dtype) == (images.shape, torch.uint8)
    assert quality(images, Codec()) > 27


def test_the_bytes_are_those_of_the_kept_waves():
    colour, grey = smooth(3, 3, 32, 32), smooth(3, 28, 28)
    assert Codec().encode(colour).shape == (3, 16 * 36 + 2 * 4 * 15)
    assert Codec(luma=10).encode(grey).shape == (3, 16 * 10)
    assert Codec().encode(colour).dtype == torch.int8


def test_more_waves_tell_more():
    torch.manual_seed(0)
    noisy = (smooth(20, 3, 32, 32).float() + 12 * torch.randn(20, 3, 32, 32)).clamp(0, 255).byte()
    found = [quality(noisy, Codec(luma, chroma)) for luma, chroma in ((6, 3), (20, 9), (64, 64))]
    assert found == sorted(found)
    assert quality(smooth(20, 32, 32), FINE) > 40


def test_every_wave_is_where_it_belongs():
    """An image of one wave has one number other than nought, the same as its transpose's."""
    place = torch.arange(8)
    waves = torch.cos(math.pi / 8 * (place + 0.5) * place[:, None])
    for down, right in ((0, 1), (2, 0), (3, 3), (7, 7)):
        image = (128 + 60 * waves[down].unsqueeze(1) * waves[right]).round().byte()
        codes = Codec(luma=64, step=8.0).encode(image.unsqueeze(0))[0]
        assert int((codes.abs() > 2).sum()) == 1
        turned = Codec(luma=64, step=8.0).encode(image.T.contiguous().unsqueeze(0))[0]
        assert sorted(codes.tolist()) == sorted(turned.tolist())


def test_extremes_stay_within_a_byte():
    for value in (0, 255):
        flat = torch.full((1, 3, 16, 16), value, dtype=torch.uint8)
        assert (
            int((Codec().decode(Codec().encode(flat), (3, 16, 16)).int() - value).abs().max()) < 5
        )
    board = (torch.arange(16).view(16, 1) + torch.arange(16)) % 2 * 255
    back = Codec().decode(Codec().encode(board.byte().unsqueeze(0)), (16, 16))
    assert back.float().mean() == pytest.approx(127.5, abs=5)


def test_what_cannot_be_is_refused():
    for wrong in ({"luma": 0}, {"chroma": 65}, {"step": 0.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Codec(**wrong)
    for x in (torch.rand(2, 3, 8, 8), torch.zeros(2, 4, 8, 8, dtype=torch.uint8), torch.rand(2, 9)):
        with pytest.raises(InputError, match="codec"):
            Codec().encode(x)


def test_a_memory_tells_samples_apart_by_what_they_were_not_by_what_is_kept():
    images = smooth(1, 3, 16, 16).repeat(2, 1, 1, 1)
    images[1, 0, 0, 0] ^= 1
    kept = Distinct(10, 0, Codec(luma=1, chroma=1))
    for _ in range(3):
        kept.add(images, torch.tensor([0, 0]), 0)
    assert len(kept) == 2
    assert kept.columns()[0].shape == (2, 3, 16, 16)
    assert kept.columns(1)[0].shape == (1, 3, 16, 16)
    assert kept.nbytes() == 2 * (4 + 2 * 1 + 4 + 4 + 8)


def test_a_memory_with_a_codec_holds_the_samples_one_without_would():
    images, slots = smooth(60, 3, 16, 16), torch.arange(60)
    plain, short = Distinct(20, 1), Distinct(20, 1, Codec())
    for memory in (plain, short):
        memory.add(images[:40], slots[:40], 0)
        memory.add(images[10:], slots[10:], 0)
    assert torch.equal(plain.columns()[1], short.columns()[1])
    again = Distinct(20, 1, Codec())
    again.load_state_dict(short.state_dict())
    assert torch.equal(again.columns()[0], short.columns()[0])


def seen(batches: list[Batch]) -> list[Batch]:
    """Return the batches as small images: a point's coordinates are the grey of four quarters."""
    scaled = [(batch.x * 20 + 128).clamp(0, 255).byte() for batch in batches]
    wide = [x[:, :4].view(-1, 2, 2).repeat_interleave(8, 1).repeat_interleave(8, 2) for x in scaled]
    return [Batch(x, batch.y) for x, batch in zip(wide, batches, strict=True)]


SMALL = {
    "net": {"name": "mlp", "hidden": [16]},
    "memory": 300,
    "codec": Codec(luma=3),
    "training": Recipe(epochs=2, batch=32, rate=0.05),
}
SELECTORS = pytest.mark.parametrize(
    "selector",
    [
        ClassSelector(enough=1.01, **SMALL),
        MomentSelector(share=1.0, **SMALL),
    ],
    ids=["classes", "moments"],
)


@SELECTORS
def test_a_selector_learns_from_what_it_kept_and_survives_saving(selector, tmp_path):
    learner = small_tame(selector=selector)
    feed(learner, seen(a(60) + b(60)))
    assert learner._selector.nbytes()[1] < 300 * (4 * 3 + 16) + 4 * 3 * 300 * 300
    learner.consolidate()
    learner.save(tmp_path / "learner.tame")
    other = load(tmp_path / "learner.tame")
    x = torch.cat([batch.x for batch in seen(a(4, seed=7) + b(4, seed=8))])
    assert difference(learner.state_dict(), other.state_dict()) is None
    assert torch.equal(learner.predict(x), other.predict(x))


@SELECTORS
def test_a_network_is_asked_about_images_as_they_would_have_been_kept(selector):
    learner = small_tame(selector=selector)
    feed(learner, seen(a(60) + b(60)))
    learner.consolidate()
    x = torch.cat([batch.x for batch in seen(a(2) + b(2))]).clamp(9, 240)
    board = (torch.arange(16).view(16, 1) + torch.arange(16)) % 2
    step = learner._intake.ready
    router = learner._selector.router(step, [0, 1])
    other = (x + 6 * board - 3).byte()
    assert torch.equal(selector.codec.encode(x), selector.codec.encode(other))
    net = getattr(router.scorer, "net", None) or router.scorer.views
    assert torch.equal(net(x), net(other))
    assert not torch.equal(net(x), net(x.flip(0)))


def test_samples_it_cannot_keep_are_refused_before_anything_is_learned():
    learner = small_tame(selector=ClassSelector(memory=300, codec=Codec()))
    before = learner.state_dict()
    with pytest.raises(InputError, match="leave the selector's codec out"):
        feed(learner, a(1))
    assert learner.state_dict()["intake"] == before["intake"]
