"""Tables 1, 2 and 3: the paper's accuracies beside ours."""

from collections.abc import Iterator

from tame.bench.grid import read_plan
from tame.bench.grids import grids
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
from tame.bench.paper.rivals import Rivals, kept_bytes, told_when, untold
from tame.bench.presets import read_preset
from tame.bench.wording import DASH, size

MARKS = dict(zip(DOUBTS, ("(a)", "(b)", "(c)", "(d)", "(e)"), strict=True))
_TWIN = "-global"
_GRID_2 = "table2"
_COLUMNS = (
    "method",
    "paper: accuracy",
    "paper: parameters",
    "ours: within segment",
    "ours: strict",
    "ours: non-zero",
    "ours: nominal",
    "bytes kept",
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


def table_1(results: Results, rivals: Rivals | None = None) -> str:
    """Return Table 1, a part for each data set, in the paper's three groups."""
    rivals = rivals or Rivals()
    parts = [
        section(SETS[data], _regime(rivals, data), _one_set(results, rivals, place), level=3)
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
        "A row marked * comes from a grid of `tame bench`, all of whose methods saw the same "
        "streams, and may differ from the paper's setting in passes and networks. "
        "*Non-zero* counts every parameter prediction uses, biases and norms included; *nominal* "
        "is the parameters of our networks times the fraction kept; the paper's own formula is "
        "below, with all runs.",
        *parts,
        "The form of the labels in the paper's cells:",
        forms,
        "Published cells to be read with doubt:",
        doubts,
    )


def _regime(rivals: Rivals, data: str) -> str:
    """Say under which regime a grid's rows were made."""
    if data not in rivals.grids:
        return ""
    about = read_plan(data).about if data in dict(grids()) else ""
    return f"Rows marked * are of the grid `{data}`: {about}".strip()


def _one_set(results: Results, rivals: Rivals, place: int) -> str:
    data = TABLE_1_SETS[place]
    rows: list[list[str]] = []
    for title, methods in TABLE_1.items():
        rows.append([f"*{title}*", *[" "] * (len(_COLUMNS) - 1)])
        for row in methods:
            rows += _method_rows(results, rivals, data, (row, row.cells[place]))
        rows += _further_rows(rivals, data, title)
    return table(_COLUMNS, rows)


def _method_rows(
    results: Results, rivals: Rivals, data: str, given: tuple[Row, Cell]
) -> Iterator[list[str]]:
    row, cell = given
    accuracy = DASH if cell.accuracy is None else f"{cell.accuracy:.2f}"
    mark = f" {MARKS[cell.doubt]}" if cell.doubt else ""
    groups = found(results, data, row.method)
    of_grid = rivals.of(data)
    grid = [(name, of_grid[name]) for name in of_grid if name in _rows_of(row.method)]
    published = [accuracy + mark, cell.parameters or DASH]
    if not groups and not grid:
        yield [row.title, *published, *[DASH] * (len(_COLUMNS) - 3)]
    for group in groups:
        twin = group.name.startswith(data + _TWIN)
        title = f"{row.title}, global labels" if twin else row.title
        yield [title, *([DASH, DASH] if twin else published), *_ours(group)]
    for number, (name, group) in enumerate(grid):
        first = not number and not groups
        title = row.title if name == row.method else name.upper()
        yield [f"{title} *", *(published if first else [DASH, DASH]), *_ours(group)]
        yield from _one_by_one(title, group)


def _one_by_one(title: str, group: Group) -> Iterator[list[str]]:
    """Yield the figure of a method shown groups in testing, when each sample comes alone."""
    if "TEST_GROUP" in group.first["told"]["testing"]:
        alone = share(measured(group, untold))
        yield [f"{title} *, one sample at a time", DASH, DASH, DASH, alone, *_ours(group)[2:]]


def _further_rows(rivals: Rivals, data: str, title: str) -> Iterator[list[str]]:
    """Yield the rows of a grid that the paper has not, where what they are told puts them."""
    known = {name for rows in TABLE_1.values() for row in rows for name in _rows_of(row.method)}
    for name, group in rivals.of(data).items():
        if name not in known and told_when(group) == title:
            kept = ", keeps everything" if group.first["unbounded"] else ""
            yield [f"{name} *{kept}", DASH, DASH, *_ours(group)]


def _rows_of(method: str) -> tuple[str, ...]:
    """Return what a method of the paper is called in a grid: HCL has two forms."""
    return ("hcl-fr", "hcl-gr") if method == "hcl" else (method,)


def _ours(group: Group) -> list[str]:
    return [
        share(measured(group, measures.within)),
        share(measured(group, measures.strict)),
        amount(measured(group, measures.nonzero)),
        amount(measured(group, measures.nominal)),
        _size(group),
        group.labels,
        str(len(group.runs)),
    ]


def _size(group: Group) -> str:
    found = measured(group, kept_bytes)
    return DASH if found is None else size(found.mean)


def table_2(results: Results, rivals: Rivals | None = None) -> str:
    """Return Table 2: TAME and the two forms of HCL on five streams."""
    rivals = rivals or Rivals()
    rows = []
    for title, (method, published) in TABLE_2.items():
        groups = [
            next(iter(found(results, data, method)), rivals.get(_GRID_2, data, method))
            for data in TABLE_2_SETS
        ]
        rows.append([f"{title}, paper", *(f"{value:.2f}" for value in published)])
        rows.append([f"{title}, ours within segment", *_shares(groups, measures.within)])
        rows.append([f"{title}, ours strict", *_shares(groups, measures.strict)])
        rows.append([f"{title}, labels and n", *(_form(group) for group in groups)])
    header = ["method", *(SETS[data] for data in TABLE_2_SETS)]
    about = f"HCL is of the grid `{_GRID_2}`: {read_plan(_GRID_2).about}"
    noted = about if _GRID_2 in rivals.grids else ""
    return section("Table 2: accuracy (%) against HCL", noted, table(header, rows))


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
