"""What the paper says beside its tables, measured: settings, the gap, returns, smoothing."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from tame.bench.paper import measures
from tame.bench.paper.layout import section, table
from tame.bench.paper.measures import Run, measured, number, share
from tame.bench.paper.published import (
    HYPER,
    HYPER_NAMES,
    SETS,
    TABLE_1,
    TABLE_1_SETS,
    TABLE_2,
    TABLE_2_SETS,
    TRAINED,
    TRAINING_NAMES,
    AuthorsCode,
)
from tame.bench.paper.results import Group, Results
from tame.bench.presets import presets, read_preset
from tame.bench.wording import DASH

_GAP = {
    "": "as the preset",
    ".balanced": "selector's buffer balanced by class",
    ".unpruned-experts": "experts not pruned",
    ".unpruned-selector": "selector not pruned",
    ".logits": "experts on raw logits, rate 0.02",
    ".logits-unpruned": "experts not pruned, raw logits, rate 0.02",
}
_CUT_SHORT = "Consolidation was cut short in these runs: they measure no accuracy."
_TWINS = ("-global", "-one-norm")
_RETURNS = {
    "returns-twice": "t1 t2 t3 t4 t5 t1 t2 t3 t4 t5",
    "returns-t2": "t1 t2 t3 t2 t4",
}


def hyper_table() -> str:
    """Return what the presets set beside what the paper prints: ours / paper."""
    rows = [[SETS[data], *_beside(_set_up(data), values)] for data, values in HYPER.items()]
    trained = [[SETS[data], *_beside(_taught(data), values)] for data, values in TRAINED.items()]
    return section(
        "Hyper-parameters: ours / the paper's",
        "Read from the presets `paper/*`; bold where they differ.",
        table(["data set", *HYPER_NAMES], rows),
        table(["data set", *TRAINING_NAMES], trained),
        "The paper gives Split CIFAR-100 (20) 200 epochs in one sentence and 15 in another, which "
        "can only mean Split CIFAR-100 (10).",
    )


def _set_up(data: str) -> list[Any]:
    preset = read_preset(f"paper/{data}")
    detector, pruner, selector = preset["detector"], preset["pruner"], preset["selector"]
    rates = [round(100 * part["sparsity"], 6) for part in (pruner, selector)]
    buffers = [selector["memory"], pruner["memory"]]
    return [detector["window"], detector["smoothing"], *buffers, *rates]


def _taught(data: str) -> list[Any]:
    preset = read_preset(f"paper/{data}")
    training, stream = preset["training"], preset["stream"]
    steps = training["milestones"]
    # The schedule counts an expert's own steps; its warm-up, where there is one, lasts an epoch.
    falls = ", ".join(f"{step / training['warmup']:g}" for step in steps) or "never"
    momentum = f"{training['momentum']:g}{' Nesterov' if training['nesterov'] else ''}"
    values = [training["rate"], momentum, training["weight_decay"]]
    return [stream["passes"], stream["batch"], *values, falls]


def _beside(ours: list[Any], published: tuple[Any, ...]) -> Iterator[str]:
    for value, other in zip(ours, published, strict=True):
        text = f"{_plain(value)} / {_plain(other)}"
        yield text if value == other else f"**{text}**"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def gap_tables(results: Results) -> str:
    """Return what each part costs or adds, changed one at a time."""
    return section(
        "The gap to the paper",
        "Each row turns one part into another form: the authors' code has it, or the paper's text "
        "does not; the difference is taken seed by seed against the preset's own runs. Only forms "
        "that have been run are listed.",
        *(section(SETS[data], _gap(results, data), level=3) for data in SETS if results.get(data)),
    )


def _gap(results: Results, data: str) -> str:
    base = results.get(data)
    rows = []
    for suffix, title in _GAP.items():
        group = results.get(data + suffix)
        if group is None:
            continue
        told = [title, f"`{data}{suffix}`", *_accuracies(group), _against(group, base, suffix)]
        rows.append([*told, str(len(group.runs))])
    if data == "split-mnist":
        rows.append(_authors())
    rows.append(["the paper", _source(data), f"{_published(data):.2f}", *[DASH] * 5])
    header = ["form", "read from", "within segment", "strict", "oracle routing", "selector"]
    return table([*header, "within segment, difference", "n"], rows)


def _source(data: str) -> str:
    return f"Table {1 if data in TABLE_1_SETS else 2}"


def _published(data: str) -> float:
    if data not in TABLE_1_SETS:
        return TABLE_2["TAME"][1][TABLE_2_SETS.index(data)]
    (row,) = (row for rows in TABLE_1.values() for row in rows if row.method == "tame")
    accuracy = row.cells[TABLE_1_SETS.index(data)].accuracy
    assert accuracy is not None  # noqa: S101 (printed for every set)
    return accuracy


def _authors() -> list[str]:
    code = AuthorsCode()
    title = "measured by running the authors' released code, experts unpruned, buffer balanced"
    shares = [f"{code.within_segment:.2f}", f"{code.strict:.2f}", DASH, f"{code.selector:.2f}"]
    return [title, DASH, *shares, DASH, "1"]


def _accuracies(group: Group | None) -> list[str]:
    kinds = (measures.within, measures.strict, measures.oracle, measures.selector)
    return [share(measured(group, kind)) for kind in kinds]


def _against(group: Group | None, base: Group | None, suffix: str) -> str:
    if not suffix:
        return DASH
    return measures.signed(measures.difference(group, base, measures.within))


def twin_table(results: Results) -> str:
    """Return the same streams in the other form: global labels, or one normalisation for all."""
    twins = [name.removeprefix("paper/") for name, _ in presets() if name.endswith(_TWINS)]
    pairs = [(twin.removesuffix(_TWINS[0]).removesuffix(_TWINS[1]), twin) for twin in twins]
    rows = [_twin_row(name, results.get(name)) for pair in pairs for name in pair]
    header = ["read from", "labels", "within segment", "strict", "oracle routing", "selector"]
    return section(
        "Twins: global labels, one normalisation",
        "The twins of the split streams keep their labels as they are; those of SVHN and MNIST "
        "normalise both alike, where the paper's form tells the domain.",
        table([*header, "experts", "false alarms", "n"], rows),
    )


def _twin_row(name: str, group: Group | None) -> list[str]:
    if group is None:
        return [f"`{name}`", *[DASH] * 8]
    counts = [measured(group, measures.experts), measured(group, measures.false_alarms)]
    shares = [group.labels, *_accuracies(group)]
    return [f"`{name}`", *shares, *map(number, counts), str(len(group.runs))]


def returns_table(results: Results) -> str:
    """Return whether segments that came before are met by the expert that learned them."""
    rows = [[order, f"`{name}`", *_returned(results.get(name))] for name, order in _RETURNS.items()]
    header = ["sequence", "read from", "experts needed", "experts found"]
    header += [
        "runs with as many as needed",
        "changes noticed",
        "returns recognised",
        "false alarms",
    ]
    return section(
        "Segments that return (Split MNIST)",
        "A return is recognised when the first alarm in its segment switches to an expert that "
        "stands for it.",
        _CUT_SHORT if any(g and g.shortened for g in map(results.get, _RETURNS)) else "",
        table([*header, "n"], rows),
    )


def _returned(group: Group | None) -> list[str]:
    if group is None:
        return [DASH] * 7
    runs = group.runs
    right = sum(run["experts"] == measures.distinct(run) for run in runs)
    noticed = sum(len(run["detection"]["delays"]) for run in runs)
    counts = [recognised(run) for run in runs]
    return [
        str(measures.distinct(group.first)),
        number(measured(group, measures.experts)),
        f"{right} of {len(runs)}",
        f"{noticed} of {sum(measures.changes(run) for run in runs)}",
        f"{sum(known for known, _ in counts)} of {sum(all_ for _, all_ in counts)}",
        number(measured(group, measures.false_alarms)),
        str(len(runs)),
    ]


def recognised(run: Run) -> tuple[int, int]:
    """Return how many returning segments went to an expert of theirs at once, and of how many."""
    stands = {row["id"]: row["stands_for"] for row in run["expert_table"]}
    segments = [*run["segments"], {"start": float("inf"), "origin": None}]
    seen: set[int] = set()
    known = total = 0
    for segment, following in pairwise(segments):
        if segment["origin"] in seen:
            first = _first_alarm(run, segment["start"], following["start"])
            total += 1
            known += first.get("change") == "switched" and (
                stands.get(first["expert"]) == segment["origin"]
            )
        seen.add(segment["origin"])
    return known, total


def _first_alarm(run: Run, start: float, end: float) -> dict[str, Any]:
    kinds = ("switched", "recruited")
    inside = (s for s in run["shifts"] if start <= s["step"] < end and s["change"] in kinds)
    return next(inside, {})


def smoothing_table(results: Results) -> str:
    """Return how many experts are created with and without smoothing the loss."""
    names = {"split-mnist": "alpha = 0.2", "split-mnist.unsmoothed": "alpha = 1, no smoothing"}
    columns: dict[str, Callable[[Run], float | None]] = {
        "experts created": lambda run: 1 + sum(s["change"] == "recruited" for s in run["shifts"]),
        "experts at the end": measures.experts,
        "changes noticed": measures.noticed,
        "missed": measures.missed,
        "false alarms": measures.false_alarms,
        "restarts": measures.restarts,
    }
    rows = []
    for name, title in names.items():
        group = results.get(name)
        cells = [number(measured(group, measure)) for measure in columns.values()]
        rows.append([title, f"`{name}`", *cells, str(len(group.runs)) if group else DASH])
    return section(
        "With and without smoothing (Split MNIST, 5 segments, 4 changes)",
        table(["loss", "read from", *columns, "n"], rows),
    )
