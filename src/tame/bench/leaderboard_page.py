"""The leaderboard as a page and as text: tables by stream, and two pictures."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tame.bench.grid import Grid
from tame.bench.leaderboard import ACCURACY, EXPERTS, MEANS, OVER_TIME, Board, Column, Row
from tame.bench.leaderboard_figures import bytes_figure, segments_figure
from tame.bench.markup import Markup, prose, table, tag
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
    "oracle routing": "strict accuracy if each sample goes to the expert of its own segment",
    "selector": "share of samples sent to an expert of their segment",
    "delay, missed, false alarms": "batches from a change to its alarm, mean of those noticed; "
    "changes without an alarm; alarms without a change. Of methods with experts alone; one that is "
    "told boundaries misses none",
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
    regime = [tag("p", prose(about))] if about else []
    sections = [tag("header", tag("h1", "leaderboard"), tag("p.lead", name), *regime)]
    for board in boards:
        tables = [
            joined for title, head, lines in _tables(board)
            for joined in (tag("h3", title), _html_table(head, lines))
        ]  # fmt: skip
        sections.append(section(board.stream, *tables))
        sections += [section(f"{board.stream}: {title}", made) for title, made in _figures(board)]
    entries = [tag("div", tag("dt", term), tag("dd", what)) for term, what in _NOTES.items()]
    sections.append(section("What each number means", tag("dl", *entries)))
    sections.append(tag("p.note", _made(boards)))
    return framed(f"leaderboard: {name}", sections)


def _figures(board: Board) -> Iterator[tuple[str, Markup]]:
    """Yield the pictures there is something to see in."""
    if len(board.rows) > 1:
        yield "accuracy against bytes", bytes_figure(board)
    if any((run.get("course") or {}).get("after_each") for row in board.rows for run in row.runs):
        yield "after each segment", segments_figure(board)


def _tables(board: Board) -> Iterator[tuple[str, list[str], Lines]]:
    """Yield title, headings and lines of each table that holds any figure."""
    best = Text("to the best", lambda row: _to_best(board, row))
    yield _table(board, "Accuracy", ACCURACY, best)
    for title, columns in (("Experts and changes", EXPERTS), ("Over time", OVER_TIME)):
        found = _table(board, title, columns)
        if found[-1]:
            yield found
    yield _table(board, "Means", MEANS, Text("device", _device), Text("told", _told))


class Text(NamedTuple):
    """A column of words: its heading, and how it is read off a row."""

    title: str
    words: Callable[[Row], str]


def _table(
    board: Board, title: str, columns: Sequence[Column], *texts: Text
) -> tuple[str, list[str], Lines]:
    """Return one table, less the columns and, where there are no words, rows without a figure."""
    known = {
        row.name: [column.form(row.over_seeds(column.measure)) for column in columns]
        for row in board.rows
    }
    shown = [at for at in range(len(columns)) if any(line[at] != DASH for line in known.values())]
    lines: Lines = []
    for group, rows in board.groups:
        full = [
            [row.name, str(len(row.runs)), *(known[row.name][at] for at in shown)]
            + [text.words(row) for text in texts]
            for row in rows
            if texts or any(known[row.name][at] != DASH for at in shown)
        ]
        lines += [[group], *full] if full else []
    titles = [columns[at].title for at in shown] + [text.title for text in texts]
    return title, ["method", "n", *titles], lines


def _device(row: Row) -> str:
    """Return where its runs computed."""
    return ", ".join(sorted({str(run["hardware"].get("gpu") or "CPU") for run in row.runs}))


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
