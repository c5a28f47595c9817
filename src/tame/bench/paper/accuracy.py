"""Tables 1, 2 and 3: the paper's accuracies beside ours."""

from collections.abc import Iterator

from tame.bench.paper import measures
from tame.bench.paper.layout import notes, section, table
from tame.bench.paper.measures import Measure, amount, measured, share
from tame.bench.paper.published import (
    BOTH,
    DOUBTS,
    NOTHING,
    SETS,
    TABLE_1,
    TABLE_1_SETS,
    TABLE_2,
    TABLE_2_SETS,
    TABLE_3,
    TABLE_3_SIZES,
    TRAINING,
    Cell,
    Row,
)
from tame.bench.paper.results import Group, Results
from tame.bench.presets import read_preset
from tame.bench.wording import DASH

MARKS = dict(zip(DOUBTS, ("(a)", "(b)", "(c)", "(d)", "(e)"), strict=True))
_TWIN = "-global"
_COLUMNS = (
    "method",
    "paper: accuracy",
    "paper: parameters",
    "ours: within segment",
    "ours: strict",
    "ours: non-zero",
    "ours: nominal",
    "labels",
    "n",
)
_FORMS = {
    BOTH: "Which task a test sample belongs to is told, so its label is chosen within that task.",
    TRAINING: "Labels compete across tasks; the task is guessed first.",
    NOTHING: "TAME's published figure is on labels renumbered in each task (local, read in its "
    "authors' code); BGD's on the split sets, near one task's share of all, can only be on global "
    "ones. Of CN-DPM and HCL the paper does not say.",
}


def found(results: Results, data: str, method: str) -> list[Group]:
    """Return the runs of a method on a data set: its own form of labels, then the global twin."""
    tail = "" if method == "tame" else f".{method}"
    groups = [results.get(name + tail) for name in (data, data + _TWIN)]
    return [group for group in groups if group is not None and group.method == method]


def table_1(results: Results) -> str:
    """Return Table 1, a part for each data set, in the paper's three groups."""
    parts = [
        section(SETS[data], _one_set(results, data, place), level=3)
        for place, data in enumerate(TABLE_1_SETS)
    ]
    forms = notes((f"*{title}.*", text) for title, text in _FORMS.items())
    doubts = notes((MARKS[name], text) for name, text in DOUBTS.items())
    return section(
        "Table 1: accuracy (%) and parameters",
        "The paper's accuracy corresponds to ours *within segment*; *strict* asks for the right "
        "segment too. `labels` is the form our runs had: *local* (renumbered from 0 in each "
        "segment: domain-incremental, as in the authors' code), *global* (class-incremental) or "
        "*shared* (the same labels in every segment by nature; both accuracies are then one). "
        "*Non-zero* counts every parameter prediction uses, biases and norms included; *nominal* "
        "is the parameters of our networks times the fraction kept; the paper's own formula is "
        "below, with all runs.",
        *parts,
        "The form of the labels in the paper's cells:",
        forms,
        "Published cells to be read with doubt:",
        doubts,
    )


def _one_set(results: Results, data: str, place: int) -> str:
    rows: list[list[str]] = []
    for title, methods in TABLE_1.items():
        rows.append([f"*{title}*", *[" "] * (len(_COLUMNS) - 1)])
        for row in methods:
            rows += _method_rows(results, data, row, row.cells[place])
    return table(_COLUMNS, rows)


def _method_rows(results: Results, data: str, row: Row, cell: Cell) -> Iterator[list[str]]:
    accuracy = DASH if cell.accuracy is None else f"{cell.accuracy:.2f}"
    mark = f" {MARKS[cell.doubt]}" if cell.doubt else ""
    groups = found(results, data, row.method)
    published = [accuracy + mark, cell.parameters or DASH]
    if not groups:
        yield [row.title, *published, *[DASH] * 6]
    for group in groups:
        twin = group.name.startswith(data + _TWIN)
        title = f"{row.title}, global labels" if twin else row.title
        yield [title, *([DASH, DASH] if twin else published), *_ours(group)]


def _ours(group: Group) -> list[str]:
    return [
        share(measured(group, measures.within)),
        share(measured(group, measures.strict)),
        amount(measured(group, measures.nonzero)),
        amount(measured(group, measures.nominal)),
        group.labels,
        str(len(group.runs)),
    ]


def table_2(results: Results) -> str:
    """Return Table 2: TAME and the two forms of HCL on five streams."""
    rows = []
    for title, (method, published) in TABLE_2.items():
        groups = [next(iter(found(results, data, method)), None) for data in TABLE_2_SETS]
        rows.append([f"{title}, paper", *(f"{value:.2f}" for value in published)])
        rows.append([f"{title}, ours within segment", *_shares(groups, measures.within)])
        rows.append([f"{title}, ours strict", *_shares(groups, measures.strict)])
        rows.append([f"{title}, labels and n", *(_form(group) for group in groups)])
    header = ["method", *(SETS[data] for data in TABLE_2_SETS)]
    return section("Table 2: accuracy (%) against HCL", table(header, rows))


def _shares(groups: list[Group | None], measure: Measure) -> list[str]:
    return [share(measured(group, measure)) for group in groups]


def _form(group: Group | None) -> str:
    return f"{group.labels}, n = {len(group.runs)}" if group else DASH


def table_3(results: Results) -> str:
    """Return Table 3: accuracy against the samples kept to retrain a pruned expert."""
    rows = []
    for data, published in TABLE_3.items():
        groups = [_retrained(results, data, size) for size in TABLE_3_SIZES]
        paper = [DASH if value is None else f"{value:.2f}" for value in published]
        rows.append([f"{SETS[data]}, paper", *paper])
        rows.append([f"{SETS[data]}, ours within segment", *_shares(groups, measures.within)])
        rows.append([f"{SETS[data]}, ours strict", *_shares(groups, measures.strict)])
        rows.append([f"{SETS[data]}, labels and n", *(_form(group) for group in groups)])
    header = ["data set", *(f"C_p = {size}" for size in TABLE_3_SIZES)]
    return section(
        "Table 3: C_p against accuracy (%)",
        "At the preset's own C_p the cell is read from the runs of Table 1 unless there is one of "
        "its own.",
        table(header, rows),
    )


def _retrained(results: Results, data: str, size: int) -> Group | None:
    own = results.get(f"{data}.cp{size}")
    if own is not None or read_preset(f"paper/{data}")["pruner"]["memory"] != size:
        return own
    return results.get(data)
