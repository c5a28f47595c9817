"""HTML that cannot forget to escape: plain strings are text, only `Markup` is taken as it is."""

from collections.abc import Iterable, Mapping
from html import escape


class Markup(str):
    """A string that already is HTML.

    >>> tag("p", "1 < 2 and ", tag("b", "so"))
    '<p>1 &lt; 2 and <b>so</b></p>'
    """

    __slots__ = ()


def text(value: object) -> Markup:
    """Return a value as HTML, escaped unless it already is HTML."""
    return value if isinstance(value, Markup) else Markup(escape(str(value)))


def tag(name: str, *children: object, attributes: Mapping[str, object] | None = None) -> Markup:
    """Return an element; the name may carry classes, as in `td.number`."""
    name, *classes = name.split(".")
    named = {"class": " ".join(classes)} if classes else {}
    pairs = {**named, **(attributes or {})}.items()
    opening = "".join(f' {key}="{escape(str(value))}"' for key, value in pairs)
    return Markup(f"<{name}{opening}>{joined(children)}</{name}>")


def joined(children: Iterable[object]) -> Markup:
    """Return children one after the other, each as HTML."""
    return Markup("".join(text(child) for child in children))


def prose(words: str) -> Markup:
    """Return a text as HTML; what stands between backticks is code.

    >>> prose("as `tame run` has it")
    'as <code>tame run</code> has it'
    """
    pieces = words.split("`")
    if len(pieces) % 2 == 0:  # one that nothing closes
        return text(words)
    return joined(tag("code", piece) if odd % 2 else piece for odd, piece in enumerate(pieces))


def table(head: Iterable[object], rows: Iterable[Iterable[object]]) -> Markup:
    """Return a table that scrolls by itself when narrow; each row's first cell heads it."""
    lines = [joined(_cell(cell, first=not i) for i, cell in enumerate(row)) for row in rows]
    top = tag("tr", *(_head(cell) for cell in head))
    body = tag("tbody", *(tag("tr", line) for line in lines))
    return tag("div.scroll", tag("table", tag("thead", top), body))


def _head(content: object) -> Markup:
    if isinstance(content, Markup) and content.startswith("<th"):
        return content
    return tag("th", content, attributes={"scope": "col"})


def _cell(content: object, *, first: bool) -> Markup:
    if isinstance(content, Markup) and content.startswith("<td"):
        return content
    return tag("th", content, attributes={"scope": "row"}) if first else tag("td", content)
