"""What our own presets reach on the test sets, in one screen: size, rivals, bound, what is left."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from tame.bench.grid import read_plan
from tame.bench.paper import measures
from tame.bench.paper.layout import section, table
from tame.bench.paper.measures import amount, difference, measured, number, share, signed
from tame.bench.paper.published import NOTHING, TABLE_1, TABLE_1_SETS, TABLE_2, TABLE_2_SETS
from tame.bench.paper.results import Group
from tame.bench.paper.rivals import Rivals
from tame.bench.wording import DASH, size

GRID, AGAIN = "headline", "confirm"
OURS, UNPRUNED, JOINT = "tame", "tame unpruned", "joint"
_SAMPLES, _STATE = "samples", "training_state"  # statistics: among samples (ours) or state (rivals)


class Budget(NamedTuple):
    """The most a stream's learner may be: parameters, bytes of samples and statistics."""

    title: str
    parameters: str
    kept: int  # 0: the paper keeps nothing to compare with


_DIGIT, _COLOUR = 784, 3072
MAIN = {
    "split-mnist": Budget("Split MNIST (5)", "37.02K", (2500 + 5 * 1000) * _DIGIT),
    "permuted-mnist": Budget("Permuted MNIST (20)", "55.53K", (5000 + 20 * 6000) * _DIGIT),
    "split-cifar10-5": Budget("Split CIFAR-10 (5) †", "9.02M", 8500 * _COLOUR),
    "split-cifar100-10": Budget("Split CIFAR-100 (10) †", "9.02M", 9500 * _COLOUR),
    "split-cifar100-20": Budget("Split CIFAR-100 (20)", "9.02M", 11_500 * _COLOUR),
    "svhn-mnist": Budget("SVHN-MNIST †", "2 x 62K, and a selector", 4500 * _COLOUR),
    "mnist-svhn": Budget("MNIST-SVHN †", "2 x 62K, and a selector", 4500 * _COLOUR),
    "embedded-split": Budget("embedded digits, split (5)", "37.02K", 0),
}
TRACKS = {
    "split-cifar100-20-scratch": "Split CIFAR-100 (20), nothing pre-trained",
    "split-mnist-one-pass": "Split MNIST (5), one pass",
    "permuted-mnist-one-pass": "Permuted MNIST (20), one pass",
}
BOUNDS = {"split-mnist-one-pass": "split-mnist", "permuted-mnist-one-pass": "permuted-mnist"}
_TITLES = {name: budget.title for name, budget in MAIN.items()} | TRACKS


def headline(rivals: Rivals) -> str:
    """Return the page's first part; nothing where the grid was never run."""
    if GRID not in rivals.grids:
        return ""
    return section(
        "What is reached",
        _LEAD,
        table(_FIRST, _first_rows(rivals)),
        _LEGEND,
        rivals.remarks.get(GRID, ""),
        "**Against rivals** in the same harness, strict, and how far ours is ahead, seed by seed. "
        "Their size, as ours, has every statistic that an answer multiplies with:",
        table(_SECOND, _second_rows(rivals)),
        _MISSING,
        table(_THIRD, _third_rows(rivals)),
        *_not_run(rivals),
        f"Made by `tame bench {GRID}` and `tame bench {AGAIN}`, whose cells "
        f"(`benchmarks/results/grids`) hold all other figures. {read_plan(GRID).about}",
    )


_LEAD = (
    "Our presets (`tame run NAME`), told nothing, neither boundaries nor tasks, in training or in "
    "use. Settings were fixed on training samples held back, and every cell was run once. "
    "Mean ± 95 % interval (n seeds), in per cent."
)
_LEGEND = (
    "*Strict* asks for the right label of all; the paper's figure asks for it within the "
    "right task only. *Again* is a second set of runs, on seeds and class orders nothing was "
    "chosen by. *Size* is non-zero parameters, all that prediction "
    "multiplies with; *kept* is the bytes of samples and statistics, at most those of the images "
    "the paper keeps; *state of training* is the active expert's: its weights before pruning, its "
    "optimiser and what it takes to undo its last steps. The CIFAR presets see every sample once, "
    "so that their rows count for one pass too. † The paper prints no size here; the limit is ours."
)
_MISSING = (
    "**What is missing** to 100: what experts get wrong when each sample goes to its own expert "
    "and nothing is pruned, what pruning adds (a dash: experts are not pruned), and what routing "
    "adds (less than nothing where the selector's opinion on labels mends an expert's). *Joint* "
    "trains the same network on everything at once, in many passes."
)
_FIRST = (
    "stream", "strict", "again", "size (at most)", "kept (at most)", "state of training",
    "paper: within task", "size",
)  # fmt: skip
_SECOND = ("stream", "rival", "strict", "ours less that", "size", "kept, with all state")
_THIRD = (
    "stream", "within segment", "selector", "experts", "delay", "false alarms", "experts' errors",
    "pruning", "routing", "joint",
)  # fmt: skip


def _not_run(rivals: Rivals) -> Iterator[str]:
    """Yield which streams ours has not been run on, and what others have there."""
    absent = [name for name in _TITLES if rivals.get(GRID, name, OURS) is None]
    told = []
    for name in absent:
        others = [f"{row} {_counted(one, measures.strict)}" for row, one in _others(rivals, name)]
        told.append(_TITLES[name] + (f" (there {', '.join(others)})" if others else ""))
    if told:
        yield f"**Not measured yet** with ours, on the test set: {'; '.join(told)}."


def _streams(rivals: Rivals) -> Iterator[tuple[str, str, Group]]:
    """Yield the name, title and runs of every stream our learner was run on."""
    for name, title in _TITLES.items():
        group = rivals.get(GRID, name, OURS)
        if group is not None:
            yield name, title, group


def _others(rivals: Rivals, name: str) -> Iterator[tuple[str, Group]]:
    """Yield the rivals' runs on a stream."""
    for (grid, stream, row), group in rivals.groups.items():
        if grid == GRID and stream == name and row not in (OURS, UNPRUNED, JOINT):
            yield row, group


def _first_rows(rivals: Rivals) -> Iterator[list[str]]:
    for name, title, group in _streams(rivals):
        budget = MAIN.get(name)
        again = rivals.get(AGAIN, name, OURS)
        yield [
            title,
            f"**{_counted(group, measures.strict)}**",
            _counted(again, measures.strict),
            _limited(
                amount(measured(group, measures.nonzero)), budget.parameters if budget else ""
            ),
            _limited(
                _written(group, _SAMPLES), size(budget.kept) if budget and budget.kept else ""
            ),
            _written(group, _STATE),
            *_published(name),
        ]


def _second_rows(rivals: Rivals) -> Iterator[list[str]]:
    for name, title, ours in _streams(rivals):
        for row, group in _others(rivals, name):
            ahead = difference(ours, group, measures.strict)
            strict, numbers = _counted(group, measures.strict), measured(group, measures.nonzero)
            kept = _written(group, _SAMPLES, _STATE)
            yield [title, row, strict, signed(ahead), amount(numbers), kept]


def _third_rows(rivals: Rivals) -> Iterator[list[str]]:
    for name, title, group in _streams(rivals):
        whole = rivals.get(GRID, name, UNPRUNED)
        bound = rivals.get(GRID, BOUNDS.get(name, name), JOINT)
        yield [
            title,
            share(measured(group, measures.within)),
            share(measured(group, measures.selector)),
            number(measured(group, measures.experts)),
            number(measured(group, measures.delay)),
            number(measured(group, measures.false_alarms)),
            *_split(group, whole),
            _counted(bound, measures.strict),
        ]


def _split(group: Group, whole: Group | None) -> tuple[str, str, str]:
    """Return what experts, pruning and routing cost, in points."""
    errors = measured(whole or group, _missing)
    pruning = difference(whole, group, measures.oracle)
    return share(errors), signed(pruning), signed(measured(group, _misrouted))


def _misrouted(run: dict[str, Any]) -> float | None:
    right, strict = measures.oracle(run), measures.strict(run)
    return None if right is None or strict is None else right - strict


def _missing(run: dict[str, Any]) -> float | None:
    right = measures.oracle(run)
    return None if right is None else 100.0 - right


def _counted(group: Group | None, measure: measures.Measure) -> str:
    found = measured(group, measure)
    return DASH if found is None else f"{share(found)} ({found.n})"


def _limited(found: str, most: str) -> str:
    return f"{found} ({most})" if most else found


def _written(group: Group, *parts: str) -> str:
    """Return the mean bytes of some parts of what is kept to go on learning."""

    def kept(run: dict[str, Any]) -> float | None:
        sizes = run.get("bytes")
        return None if sizes is None else sum(sizes[part] for part in parts)

    found = measured(group, kept)
    return DASH if found is None else size(round(found.mean))


def _published(data: str) -> tuple[str, str]:
    """Return the paper's accuracy on a stream, and its number of parameters where it has one."""
    own = next(row for row in TABLE_1[NOTHING] if row.method == OURS)
    if data in TABLE_1_SETS:
        cell = own.cells[TABLE_1_SETS.index(data)]
        return f"{cell.accuracy:.2f}", cell.parameters or DASH
    if data in TABLE_2_SETS:
        return f"{TABLE_2['TAME'][1][TABLE_2_SETS.index(data)]:.2f}", DASH
    return DASH, DASH
