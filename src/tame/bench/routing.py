"""Where the selector sent the samples of each segment: a matrix anyone can read."""

from collections import Counter
from typing import Any

from tame.bench.drawing import origin_colour, swatch
from tame.bench.markup import Markup, joined, table, tag
from tame.bench.record import Record
from tame.bench.wording import DASH, percent, whole

MOST_COLUMNS = 30
_STRONG = 0.5  # from this share on a cell is so dark that its number is white
_NOTE = (
    "Rows are the true segments of the held-out samples, columns the experts they were sent to. "
    "The stronger a cell's colour, the larger its share of the row; framed is the expert that "
    "stands for the segment."
)


def routing(record: Record) -> Markup:
    """Return the section with the routing matrix and what each expert stands for."""
    sums: Counter[str] = Counter()
    for row in record.result["per_segment"]:
        sums.update(row["routed"])
    # The table, not only the routes: an expert that was sent nothing has a column too.
    sums.update({str(expert): 0 for expert in record.stands_for})
    columns = sorted(dict(sums.most_common(MOST_COLUMNS)), key=_by_number)
    rest = len(sums) - len(columns)  # summed up in one last column
    head = ["segment", *(_expert(record, column) for column in columns)]
    head += [f"{rest} others"] if rest else []
    rows = [_row(record, row, columns, rest) for row in record.result["per_segment"]]
    matrix = tag("div.matrix", table([*head, "sent right"], rows))
    note = tag("p.note", _NOTE)
    return tag("section", tag("h2", "Routing"), matrix, note, _experts(record))


def _row(record: Record, row: dict[str, Any], columns: list[str], rest: int) -> list[object]:
    routed = row["routed"]
    total = sum(routed.values())
    name = joined([swatch(origin_colour(row["origin"])), " ", row["name"]])
    own = [_origin(record, column) == row["origin"] for column in columns]
    counts = [routed.get(column, 0) for column in columns]
    cells = [_cell(n, total, own=mine) for n, mine in zip(counts, own, strict=True)]
    if rest:
        cells.append(_cell(total - sum(counts), total, own=False))
    return [name, *cells, percent(row["selector"])]


def _cell(count: int, total: int, *, own: bool) -> Markup:
    share = count / total if total else 0.0
    kinds = "td.cell" + ".own" * own + ".strong" * (share >= _STRONG) + ".none" * (not count)
    style = {"style": f"--share:{share:.3f}", "title": percent(share)} if count else {}
    return tag(kinds, whole(count), attributes=style)


def _experts(record: Record) -> Markup:
    rows = []
    for row in record.result["expert_table"][:MOST_COLUMNS]:
        origin = row["stands_for"]
        name = DASH if origin is None else record.names.get(origin, str(origin))
        stands = joined([swatch(origin_colour(origin)), " ", name])
        rows.append([f"expert {row['id']}", tag("td.word", stands), whole(row["samples"])])
    return table(["expert", tag("th.word", "stands for"), "samples learned"], rows)


def _expert(record: Record, column: str) -> Markup:
    colour = origin_colour(_origin(record, column))
    return joined([swatch(colour), f" expert {column}"])


def _origin(record: Record, column: str) -> int | None:
    return record.stands_for.get(int(column)) if column.isdecimal() else None


def _by_number(column: str) -> tuple[int, str]:
    return (int(column) if column.isdecimal() else 0, column)
