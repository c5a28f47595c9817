"""What each number of a report means, in a sentence or two."""

from tame.bench.markup import Markup, tag
from tame.bench.record import Record

_ALWAYS = {
    "Strict accuracy": "A held-out sample counts only if the answer is its own global label. The "
    "learner is told neither segment nor expert.",
    "Within-segment accuracy": "Counts the label's place within its segment, as the paper's "
    "released code does. It forgives misrouting: the second label of the wrong segment passes for "
    "the second label of the right one.",
    "Mean and pooled": "Accuracies are the unweighted mean over segments. Pooled is strict "
    "accuracy over all samples together, so that large segments weigh more.",
}
_WITH_EXPERTS = {
    "Oracle routing": "Strict accuracy if each sample is handed to the expert that stands for its "
    "segment: what the experts know when the selector makes no mistake.",
    "Selector accuracy": "The share of samples sent to an expert that stands for their segment. "
    "An expert stands for the segment most of its training samples came from.",
    "Delay": "Batches from the first batch that holds any sample of the new segment to the alarm; "
    "0 means that very batch.",
    "False alarm": "Any alarm that is not the first in a segment that changed something. A missed "
    "change is one with no alarm before the next.",
}
_THRESHOLD = (
    "What the {} must exceed for an alarm. There is none while an expert is too young to know what "
    "is ordinary."
)
_SIZES = {
    "Non-zero parameters": "Every parameter that prediction uses and that is not zero, biases and "
    "norms included.",
    "The paper's nominal count": "Dense parameters times the fraction kept in pruning, which is "
    "how the paper counts.",
    "Samples, training state": "Samples are the inputs kept in reservoirs. Training state is what "
    "only further learning needs: optimisers, detectors, generators.",
}


def glossary(record: Record) -> Markup:
    """Return the section that explains the numbers this report shows."""
    threshold = {"Threshold": _THRESHOLD.format(record.compares)}
    with_experts = {**_WITH_EXPERTS, **threshold} if record.has_experts else {}
    entries = {**_ALWAYS, **with_experts, **_SIZES}
    pairs = [tag("div", tag("dt", term), tag("dd", meaning)) for term, meaning in entries.items()]
    return tag("section", tag("h2", "What each number means"), tag("dl", *pairs))
