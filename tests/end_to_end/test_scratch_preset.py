"""CIFAR-100 with nothing pre-trained: inside the paper's parameters and the bytes of its images."""

from tame.bench.experiment import resolve
from tame.nets import resolve as resolve_net

EXPERTS, SLOTS = 20, 160  # slots are doubled from ten as labels come
IMAGE = (3, 32, 32)
BYTES = 3 * 32 * 32
KEYS = 16  # of an entry: a key of eight bytes, label and expert
TRAINING = 1_482_344  # what training an expert needs, as a run tells it


def test_what_is_kept_takes_no_more_bytes_than_the_papers_images():
    settings = resolve("split-cifar100-20-scratch").settings
    coded = int(settings.selector.codec.share * BYTES) + KEYS
    own = EXPERTS * settings.pruner.memory * (BYTES + KEYS - 4)
    kept = settings.selector.memory * coded + own + TRAINING
    assert kept <= (7500 + EXPERTS * 200) * BYTES


def test_experts_and_selector_are_smaller_than_the_papers():
    experiment = resolve("split-cifar100-20-scratch")
    net = resolve_net(experiment.net)(IMAGE, SLOTS)
    expert = sum(parameter.numel() for parameter in net.parameters())
    assert EXPERTS * expert + experiment.settings.selector.nonzero <= 9_020_000
