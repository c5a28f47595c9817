"""Every group of runs with every measure: what all other tables are drawn from."""

from tame.bench.paper import measures
from tame.bench.paper.layout import section, table
from tame.bench.paper.measures import amount, measured, number, share
from tame.bench.paper.results import Group, Results
from tame.bench.wording import DASH

_SHARES = {
    "within segment": measures.within,
    "strict": measures.strict,
    "oracle routing": measures.oracle,
    "selector": measures.selector,
}
_COUNTS = {
    "experts": measures.experts,
    "noticed": measures.noticed,
    "missed": measures.missed,
    "delay": measures.delay,
    "false alarms": measures.false_alarms,
    "restarts": measures.restarts,
    "repeated prunings": measures.repeats,
}


def inventory(results: Results) -> str:
    """Return all measures of all groups."""
    rows = [_row(results.groups[name]) for name in sorted(results.groups)]
    counted = [_counted(results.groups[name]) for name in sorted(results.groups)]
    return section(
        "All runs",
        "Accuracies in per cent, unweighted means over segments. *Delay*: batches from a change to "
        "its alarm, mean over the changes of a run. A count without an interval was the same in "
        "every run.",
        table(["read from", "method", "labels", *_SHARES, *_COUNTS, "n"], rows),
        section("Parameters", _ABOUT_COUNTS, level=3),
        table(["read from", "non-zero", "our nominal", "the paper's formula", "n"], counted),
        section("Changes", level=3),
        table(["read from", "preset", "changed", "version"], [_made(g) for g in _sorted(results)]),
    )


_ABOUT_COUNTS = (
    "The paper's formula is experts x 61.7K x 2 % + 61.7K x 50 %: 37.02K for 5 experts, 55.53K for "
    "20, with 61.7K for LeNet's 61,706 parameters with 10 outputs even where a network has fewer. "
    "*Our nominal* is the same with the networks as they are. *Non-zero* adds what pruning leaves "
    "alone: biases and norms. For Split CIFAR-100 (20) the formula gives 20 x 9.23M x 2 % + "
    "11.19M x 50 % = 9.28M with a ResNet-18 as selector; the paper prints 9.02M, which no ordinary "
    "count of ResNet-18 gives. It would come out if the 513,000 parameters of its ImageNet output "
    "were taken off twice, (11,689,512 - 2 x 513,000) / 2 + 20 x 2 % x 9,228,549 = 9.02M; that may "
    "be a coincidence. Neither masks nor the samples kept are counted by the paper, and the "
    "samples (Permuted MNIST: 20 x 6,000 + 5,000 images) dwarf the networks."
)


def _sorted(results: Results) -> list[Group]:
    return [results.groups[name] for name in sorted(results.groups)]


def _row(group: Group) -> list[str]:
    shares = [share(measured(group, measure)) for measure in _SHARES.values()]
    # A selector or expert that was barely retrained says nothing about accuracy.
    shares = ["(cut short)"] * len(shares) if group.shortened else shares
    counts = [number(measured(group, measure)) for measure in _COUNTS.values()]
    return [f"`{group.name}`", group.method, group.labels, *shares, *counts, str(len(group.runs))]


def _counted(group: Group) -> list[str]:
    own = [amount(measured(group, m)) for m in (measures.nonzero, measures.nominal)]
    return [f"`{group.name}`", *own, amount(measures.formula(group)), str(len(group.runs))]


def _made(group: Group) -> list[str]:
    changed = ", ".join(f"`{change}`" for change in group.changes)
    version = (group.first.get("versions") or {}).get("tame", DASH)
    return [f"`{group.name}`", f"`{group.first.get('preset', DASH)}`", changed, str(version)]
