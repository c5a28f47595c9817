"""Tables and notes as Markdown."""

from collections.abc import Iterable, Sequence

from tame.bench.wording import DASH


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""Return a Markdown table; what is empty becomes a dash.

    >>> print(table(["set", "ours"], [["a | b", ""]]))
    | set | ours |
    |---|---|
    | a \| b | — |
    """
    lines = [_line(header), "|" + "---|" * len(header)]
    lines += [_line([cell or DASH for cell in row]) for row in rows]
    return "\n".join(lines)


def section(title: str, *parts: str, level: int = 2) -> str:
    """Return a heading and what stands below it, set apart by empty lines."""
    return "\n\n".join([f"{'#' * level} {title}", *(part for part in parts if part)])


def notes(entries: Iterable[tuple[str, str]]) -> str:
    """Return marked notes as a list, each once."""
    return "\n".join(f"- {mark} {text}" for mark, text in dict(entries).items())


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
