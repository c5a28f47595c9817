"""The report's page: a headline, the numbers, the pictures, the tables."""

from collections.abc import Sequence
from importlib import resources
from typing import Any

import numpy as np

from tame.bench.drawing import origin_colour, swatch
from tame.bench.figures import MOST_ROWS, accuracy_figure, loss_figure, timeline_figure
from tame.bench.glossary import glossary
from tame.bench.markup import Markup, joined, table, tag
from tame.bench.record import SMOOTHED, Record
from tame.bench.routing import routing
from tame.bench.wording import counted, duration, headline, listed, percent, plain, size, whole

_SHORT = 8  # letters of a value that fit a tile in large type
_TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
{title}
<style>
{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def page(record: Record) -> str:
    """Return the whole page as one self-contained text."""
    sections = [
        _header(record),
        _tiles(record),
        *_course(record),
        _accuracy(record),
        *([routing(record)] if record.has_experts else []),
        _sizes(record.result),
        _made(record),
        glossary(record),
    ]
    return framed(_title(record.result), sections)


def framed(title: str, sections: Sequence[Markup]) -> str:
    """Return sections as a page that opens offline."""
    style = resources.files("tame.bench").joinpath("report.css").read_text(encoding="utf-8")
    body = "\n".join(sections)
    return _TEMPLATE.format(title=tag("title", title), style=style, body=body)


def section(title: str, *content: object) -> Markup:
    """Return a part of the page under its heading."""
    return tag("section", tag("h2", title), *content)


def _title(result: dict[str, Any]) -> str:
    return f"{plain(result['method'])} on {_stream(result['stream'])}, seed {plain(result['seed'])}"


def _stream(stream: Any) -> str:
    return plain(stream.get("name", stream) if isinstance(stream, dict) else stream)


def _header(record: Record) -> Markup:
    result = record.result
    hints = ", ".join(str(hint).lower().replace("_", " ") for hint in result["hints"])
    facts = {
        "preset": plain(result.get("preset")),
        "batches": whole(len(record.trace.step)),
        "samples": whole(result["samples"]),
        "told beyond the labelled stream": hints or "nothing",
    }
    pairs = [tag("span", f"{name} ", tag("b", value)) for name, value in facts.items()]
    lead = tag("p.lead", headline(record))
    return tag("header", tag("h1", _title(result)), lead, tag("p.facts", *pairs))


def _tiles(record: Record) -> Markup:
    result, accuracy, detection = (
        record.result,
        record.result["accuracy"],
        record.result["detection"],
    )
    pooled = f"mean over segments; pooled {percent(accuracy['pooled'])}"
    tiles = [
        _tile("Strict accuracy", percent(accuracy["strict"]), pooled, kind="tile.first"),
        _tile("Within segment", percent(accuracy["within_segment"]), "forgives the wrong segment"),
    ]
    if record.has_experts:
        noticed = sum(delay is not None for delay in detection["delays"])
        changes = f"{noticed} of {counted(noticed + detection['missed'], 'change')} noticed"
        origins = len({segment["origin"] for segment in result["segments"]})
        sure = f"; sure after {listed(detection.get('commit_delays', detection['delays']))}"
        tiles += [
            _tile("Oracle routing", percent(accuracy["oracle"]), "the right expert given"),
            _tile("Selector", percent(result["selector_accuracy"]), "samples sent right"),
            _tile("Experts", whole(result["experts"]), f"{counted(origins, 'distribution')} came"),
            _tile(
                "Delays",
                listed(detection["delays"]),
                f"batches; {changes}{sure if noticed else ''}",
            ),
            _tile("False alarms", whole(detection["false_alarms"]), "alarms without a change"),
        ]
    return tag("div.tiles", *tiles)


def _tile(name: str, value: str, note: str, kind: str = "tile") -> Markup:
    number = "span.value" if len(value) <= _SHORT else "span.value.long"
    return tag(f"div.{kind}", tag("span.name", name), tag(number, value), tag("span.note", note))


def _course(record: Record) -> list[Markup]:
    if not len(record.trace.step):
        return [section("The course of the stream", tag("p.note", "No batch was observed."))]
    watched = bool(np.isfinite(record.trace.threshold).any())
    apart = "" if record.compares == SMOOTHED else f", and {record.compares}"
    title = f"Loss{apart} against threshold" if watched else "Loss of each batch"
    lost = int(np.isnan(record.trace.loss).sum())
    note = "Each batch is measured before it trains anything. Scales are logarithmic and cut below."
    if lost:
        note += f" {counted(lost, 'batch')} without a finite loss left out."
    who = "Who learned when" if record.has_experts else "What came when"
    match = "Matching colours mean that the expert of that segment was learning."
    caption = [tag("p.note", match)] if record.has_experts else []
    return [
        section(title, loss_figure(record), tag("p.note", note)),
        section(who, timeline_figure(record), *caption),
    ]


def _accuracy(record: Record) -> Markup:
    rows = record.result["per_segment"]
    if not rows:
        return section("Accuracy per segment", tag("p.note", "Nothing was held out."))
    fields = {"strict": "strict", "within_segment": "within segment"}
    if record.has_experts:
        fields |= {"oracle": "oracle routing", "selector": "selector"}
    many = f"Drawn are the {MOST_ROWS} segments of lowest strict accuracy."
    numbers = table(
        ["segment", "samples", *fields.values()],
        [
            [
                joined([swatch(origin_colour(row["origin"])), " ", row["name"]]),
                whole(row["samples"]),
                *(percent(row[field]) for field in fields),
            ]
            for row in rows
        ],
    )
    caption = [tag("p.note", many)] if len(rows) > MOST_ROWS else []
    return section("Accuracy per segment", accuracy_figure(record), *caption, numbers)


def _sizes(result: dict[str, Any]) -> Markup:
    counts, weights = result["parameters"], result["bytes"]
    dense = counts.get("dense")
    parameters = {
        "non-zero, all that prediction uses": counts.get("nonzero"),
        "the paper's nominal count": counts.get("paper_count"),
        "dense, before pruning": dense,
    }
    stored = {
        "model": weights.get("model"),
        "samples kept": weights.get("samples"),
        "training state": weights.get("training_state"),
        "file on disk": weights.get("file"),
    }
    kept = result.get("samples_kept")
    note = f"{whole(kept)} samples are kept in the reservoirs." if kept else ""
    left = [
        [name, whole(n), percent(n / dense if n is not None and dense else None)]
        for name, n in parameters.items()
    ]
    right = [[name, size(n), whole(n)] for name, n in stored.items()]
    tables = [
        table(["parameters", "count", "of dense"], left),
        table(["memory", "size", "bytes"], right),
    ]
    return section("Sizes", tag("div.pair", *tables), tag("p.note", note))


def _made(record: Record) -> Markup:
    seconds = record.result["seconds"]
    batches = len(record.trace.step)
    rows = [[name, duration(spent)] for name, spent in seconds.items()]
    rows.append(["together", duration(sum(spent or 0 for spent in seconds.values()))])
    stream = seconds.get("stream")
    note = f"{batches / stream:,.0f} batches a second while the stream ran." if stream else ""
    made = {**record.result.get("versions", {}), **record.result.get("hardware", {})}
    origin = table(["made with", ""], [[name, plain(value)] for name, value in made.items()])
    times = tag("div", table(["phase", "time"], rows), tag("p.note", note))
    return section("Time, versions and machine", tag("div.pair", times, origin))
