"""Images in fewer bytes, and a selector that keeps its samples so."""

import math

import pytest
import torch
from worlds import a, b, feed, small_tame

from tame import Batch, load
from tame.checks.failure import difference
from tame.core import codec
from tame.core.class_selector import ClassSelector
from tame.core.codec import Codec
from tame.core.distinct import Distinct
from tame.core.moment_selector import MomentSelector
from tame.engine.recipe import Recipe
from tame.errors import InputError


def photographs(count: int, *shape: int) -> torch.Tensor:
    """Return images of soft brightness, faint colours and a little noise."""
    torch.manual_seed(0)
    planes, height, width = shape if len(shape) == 3 else (1, *shape)
    coarse = 40 * torch.randn(count, 1, 4, 4) + 8 * torch.randn(count, planes, 4, 4)
    soft = torch.nn.functional.interpolate(coarse, (height, width), mode="bicubic")
    noise = 2 * torch.randn(count, planes, height, width)
    return (120 + soft + noise).clamp(0, 255).round().to(torch.uint8).view(count, *shape)


def quality(images: torch.Tensor, codec: Codec) -> float:
    """Return the peak signal to noise ratio of what comes back, in decibels."""
    back = codec.decode(codec.encode(images), tuple(images.shape[1:]))
    return 10 * math.log10(255**2 / (back.float() - images.float()).square().mean())


@pytest.mark.parametrize("shape", [(28, 28), (1, 28, 28), (3, 32, 32), (3, 33, 18), (3, 19, 50)])
def test_an_image_comes_back_in_its_shape_and_nearly_as_it_was(shape):
    images = photographs(6, *shape)
    back = Codec().decode(Codec().encode(images), shape)
    assert (back.shape, back.dtype) == (images.shape, torch.uint8)
    assert quality(images, Codec()) > 32


@pytest.mark.parametrize("share", [0.05, 0.172, 0.5, 1.0])
def test_every_image_of_a_shape_takes_the_share_of_its_bytes(share):
    for shape in ((3, 32, 32), (28, 28)):
        codes = Codec(share).encode(photographs(3, *shape))
        assert codes.shape == (3, int(share * math.prod(shape)))
        assert codes.dtype == torch.uint8


def test_more_bytes_tell_more():
    torch.manual_seed(0)
    images = photographs(20, 3, 32, 32)
    found = [quality(images, Codec(share)) for share in (0.03, 0.1, 0.2, 0.4, 0.8)]
    assert found == sorted(found)
    assert found[-1] > found[0] + 12


def test_bits_go_to_the_strong_waves_first_and_all_are_spent():
    plan = codec._plan((3, 32, 32), 0.2, torch.device("cpu"))
    bits = torch.cat([torch.full((count,), width) for count, width in plan.groups])
    assert 0.995 * 614 * 8 <= bits.sum() <= 614 * 8
    assert len(set(plan.order.tolist())) == len(plan.order)
    strongest = plan.deviations.argsort(descending=True)
    assert bits[strongest].tolist() == sorted(bits.tolist(), reverse=True)


def test_every_wave_is_where_it_belongs():
    """An image of one wave comes back as that wave, turned or not."""
    place = torch.arange(16)
    waves = torch.cos(math.pi / 16 * (place + 0.5) * place[:, None])
    for down, right in ((0, 1), (2, 0), (3, 3), (5, 1)):
        image = (128 + 60 * waves[down].unsqueeze(1) * waves[right]).round().byte().unsqueeze(0)
        for one in (image, image.mT.contiguous()):
            assert quality(one, Codec(0.5)) > 35


def test_extremes_stay_within_a_byte():
    for value in (0, 255):
        flat = torch.full((1, 3, 16, 16), value, dtype=torch.uint8)
        back = Codec().decode(Codec().encode(flat), (3, 16, 16))
        assert int((back.int() - value).abs().max()) < 5
    board = ((torch.arange(16).view(16, 1) + torch.arange(16)) % 2 * 255).byte().unsqueeze(0)
    back = Codec().decode(Codec().encode(board), (16, 16))
    assert back.float().mean() == pytest.approx(127.5, abs=5)


def test_parts_of_a_large_batch_are_written_alike():
    images = photographs(codec.CHUNK + 3, 3, 8, 8)
    codes = Codec().encode(images)
    assert torch.equal(codes[-3:], Codec().encode(images[-3:]))
    whole = Codec().decode(codes, (3, 8, 8))
    assert torch.equal(whole[-3:], Codec().decode(codes[-3:], (3, 8, 8)))


def test_what_cannot_be_is_refused():
    for wrong in (0.0, 1.01, -1):
        with pytest.raises(ValueError, match="share"):
            Codec(wrong)
    for x in (torch.rand(2, 3, 8, 8), torch.zeros(2, 4, 8, 8, dtype=torch.uint8), torch.rand(2, 9)):
        with pytest.raises(InputError, match="codec"):
            Codec().encode(x)


def test_a_memory_tells_samples_apart_by_what_they_were_not_by_what_is_kept():
    images = photographs(1, 3, 16, 16).repeat(2, 1, 1, 1)
    images[1, 0, 0, 0] ^= 1
    kept = Distinct(10, 0, Codec(0.02))
    for _ in range(3):
        kept.add(images, torch.tensor([0, 0]), 0)
    assert len(kept) == 2
    assert kept.columns()[0].shape == (2, 3, 16, 16)
    assert kept.columns(1)[0].shape == (1, 3, 16, 16)
    assert kept.nbytes() == 2 * (15 + 4 + 4 + 8)


def test_a_memory_with_a_codec_holds_the_samples_one_without_would():
    images, slots = photographs(60, 3, 16, 16), torch.arange(60)
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
    "codec": Codec(0.1),
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
    assert learner._selector.nbytes()[1] < 300 * (26 + 16) + 4 * 3 * 300 * 300
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
    step = learner._intake.ready
    router = learner._selector.router(step, [0, 1])
    other = x.clone()
    other[:, 7, 7] ^= 1
    kept, again = (selector.codec.encode(images) for images in (x, other))
    alike = (kept == again).all(1)
    assert alike.sum() > len(x) / 2
    net = getattr(router.scorer, "net", None) or router.scorer.views
    assert torch.equal(net(x[alike]), net(other[alike]))
    assert not torch.equal(net(x), net(x.flip(0)))


def test_samples_it_cannot_keep_are_refused_before_anything_is_learned():
    learner = small_tame(selector=ClassSelector(memory=300, codec=Codec()))
    before = learner.state_dict()
    with pytest.raises(InputError, match="leave the selector's codec out"):
        feed(learner, a(1))
    assert learner.state_dict()["intake"] == before["intake"]
