"""The leaderboard as a page and as text: tables by stream, and two pictures."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from tame.bench.grid import Grid
from tame.bench.leaderboard import ACCURACY, MEANS, OVER_TIME, Board, Column, Row
from tame.bench.leaderboard_figures import bytes_figure, segments_figure
from tame.bench.markup import Markup, table, tag
from tame.bench.page import framed, section
from tame.bench.paper.measures import signed
from tame.bench.store import write_text
from tame.bench.wording import DASH

_NOTES = {
    "±": "half of the 95 % interval of the mean over n seeds (Student's t); none for one seed",
    "strict": "share of held-out samples given their own global label, mean over segments",
    "one sample, untold": "the same for a method told something in testing, when it is not told: "
    "each sample alone",
    "within segment": "counts the label's place within its segment; forgives the wrong segment",
    "to the best": "paired difference of strict accuracy, seed by seed, to the best row whose "
    "memory is bounded",
    "ACC, BWT, FWT": "Lopez-Paz and Ranzato 2017: mean of the accuracy matrix's last row; change "
    "since an origin was first learned; accuracy before that, less chance among the labels seen",
    "forgetting": "Chaudhry et al. 2018: best earlier accuracy less the last",
    "average anytime": "mean over segments of the mean accuracy on what had come by then",
    "prequential": "each batch is predicted before it is learned",
    "worst dip": "largest fall of the accuracy on what was known, probed 1, 4, 16, ... batches "
    "after a shift, of the learner as it is (not consolidated)",
    "ARI": "adjusted Rand index of the expert that learned a sample and its true segment",
    "ECE": "expected calibration error, 15 bins, in per cent (Guo et al. 2017)",
    "bytes kept": "model, samples and all that further learning needs",
    "MACs": "multiply-accumulates of convolutions and matrix products, as computed",
}
_UNBOUNDED = "keeps everything"
Lines = list[list[str]]


def write_leaderboard(grid: Grid, boards: Sequence[Board], root: Path) -> tuple[Path, Path]:
    """Write `leaderboard.html` and `leaderboard.md`; return where they are."""
    html, text = root / "leaderboard.html", root / "leaderboard.md"
    write_text(html, page(grid.name, boards, grid.about))
    write_text(text, markdown(grid.name, boards, grid.about))
    return html, text


def markdown(name: str, boards: Sequence[Board], about: str = "") -> str:
    """Return the leaderboard as Markdown, with the regime it was fixed to."""
    parts = [f"# {name}", about]
    for board in boards:
        parts.append(f"## {board.stream}")
        for title, head, lines in _tables(board):
            parts += [f"### {title}", _markdown_table(head, lines)]
    parts += ["### What each number means", *(f"- **{k}**: {v}" for k, v in _NOTES.items())]
    parts.append(_made(boards))
    return "\n\n".join(part for part in parts if part) + "\n"


def page(name: str, boards: Sequence[Board], about: str = "") -> str:
    """Return the leaderboard as one self-contained page."""
    regime = [tag("p", about)] if about else []
    sections = [tag("header", tag("h1", "leaderboard"), tag("p.lead", name), *regime)]
    for board in boards:
        tables = [
            joined for title, head, lines in _tables(board)
            for joined in (tag("h3", title), _html_table(head, lines))
        ]  # fmt: skip
        sections.append(section(board.stream, *tables))
        sections.append(section(f"{board.stream}: accuracy against bytes", bytes_figure(board)))
        sections.append(section(f"{board.stream}: after each segment", segments_figure(board)))
    entries = [tag("div", tag("dt", term), tag("dd", what)) for term, what in _NOTES.items()]
    sections.append(section("What each number means", tag("dl", *entries)))
    sections.append(tag("p.note", _made(boards)))
    return framed(f"leaderboard: {name}", sections)


def _tables(board: Board) -> Iterator[tuple[str, list[str], Lines]]:
    yield (
        "Accuracy",
        ["method", "n", *_titles(ACCURACY), "to the best"],
        [
            [*_start(row), *_figures(row, ACCURACY), _to_best(board, row)] if row else [title]
            for title, row in _lines(board)
        ],
    )
    yield (
        "Over time",
        ["method", "n", *_titles(OVER_TIME)],
        [
            [*_start(row), *_figures(row, OVER_TIME)] if row else [title]
            for title, row in _lines(board)
        ],
    )
    yield (
        "Means",
        ["method", "n", *_titles(MEANS), "device", "told"],
        [
            [*_start(row), *_figures(row, MEANS), _device(row), _told(row)] if row else [title]
            for title, row in _lines(board)
        ],
    )


def _lines(board: Board) -> Iterator[tuple[str, Row | None]]:
    """Yield each group's title, then its rows."""
    for title, rows in board.groups:
        yield title, None
        for row in rows:
            yield "", row


def _titles(columns: Sequence[Column]) -> list[str]:
    return [column.title for column in columns]


def _device(row: Row) -> str:
    """Return where its runs computed."""
    return ", ".join(sorted({str(run["hardware"].get("gpu") or "CPU") for run in row.runs}))


def _start(row: Row) -> list[str]:
    return [row.name, str(len(row.runs))]


def _figures(row: Row, columns: Sequence[Column]) -> list[str]:
    return [column.form(row.over_seeds(column.measure)) for column in columns]


def _to_best(board: Board, row: Row) -> str:
    if row is board.best:
        return "best"
    found = board.to_best(row)
    fewer = found is not None and found.n < len(row.runs)
    return signed(found) + (f" (n = {found.n})" if found is not None and fewer else "")


def _told(row: Row) -> str:
    return f"{row.told}; {_UNBOUNDED}" if row.unbounded else row.told


def _markdown_table(head: list[str], lines: Lines) -> str:
    padded = [
        line if len(line) > 1 else [f"*{line[0]}*", *[""] * (len(head) - 1)] for line in lines
    ]
    rows = [head, ["---"] * len(head), *padded]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows
    )


def _html_table(head: list[str], lines: Lines) -> Markup:
    wide = {"colspan": len(head), "scope": "rowgroup", "style": "text-align:left"}
    rows: list[list[object]] = []
    for line in lines:
        single = len(line) == 1
        rows.append([tag("td", tag("i", line[0]), attributes=wide)] if single else [*line])
    return table(head, rows)


def _made(boards: Sequence[Board]) -> str:
    """Say what the results were made with; more than one source is worth knowing."""
    runs = [run for board in boards for row in board.rows for run in row.runs]
    sources = sorted({str(run["versions"].get("source", DASH)) for run in runs})
    machines = sorted(
        {str(run["hardware"].get("gpu") or run["hardware"].get("cpu")) for run in runs}
    )
    warning = " (not all runs were made by the same code)" if len(sources) > 1 else ""
    return f"{len(runs)} runs; source {', '.join(sources)}{warning}; on {', '.join(machines)}"
