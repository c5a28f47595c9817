"""A run's result as a table in the terminal."""

from typing import Any

from rich.console import Console
from rich.table import Table

from tame.bench.wording import budget


def show_result(result: dict[str, Any], console: Console | None = None) -> None:
    """Print the headline figures, each by its name."""
    accuracy, found = result["accuracy"], result["detection"]
    changes = len(found["delays"]) + found["missed"]
    parameters, kept = result["parameters"], result["bytes"]
    table = Table(title=f"{result['method']} on {result['preset']}, seed {result['seed']}")
    table.add_column("what")
    table.add_column("figure", justify="right")
    rows = [
        ("told beyond the labelled stream", _told(result["hints"])),
        ("strict accuracy (the right global label)", percent(accuracy["strict"])),
        ("within-segment accuracy (forgives misrouting)", percent(accuracy["within_segment"])),
        ("oracle-routing accuracy", percent(accuracy["oracle"])),
        ("selector accuracy", percent(result["selector_accuracy"])),
        ("experts", str(result["experts"])),
        ("changes found", f"{len(found['delays'])} of {changes}"),
        ("delays in batches", _listed(found["delays"])),
        ("sure after, in batches", _listed(found.get("commit_delays", found["delays"]))),
        ("false alarms", str(found["false_alarms"])),
        ("parameters that are not zero", f"{parameters['nonzero']:,} of {parameters['dense']:,}"),
        ("parameters by the paper's count", f"{parameters['paper_count']:,}"),
        ("samples kept", f"{result['samples_kept']:,} ({kept['samples']:,} bytes)"),
        ("seconds: stream, consolidate", _seconds(result["seconds"])),
    ]
    rows += [("a budget was reached", told) for told in budget(result)]
    for name, figure in rows:
        table.add_row(name, figure)
    (console or Console()).print(table)


def percent(value: float | None) -> str:
    """Return a share as per cent, a dash where there is none.

    >>> percent(0.9876), percent(None)
    ('98.76 %', '-')
    """
    return "-" if value is None else f"{100 * value:.2f} %"


def _listed(delays: list[float]) -> str:
    return ", ".join(str(delay) for delay in delays) or "-"


def _told(hints: list[str]) -> str:
    return ", ".join(hint.lower().replace("_", " ") for hint in hints) or "nothing"


def _seconds(seconds: dict[str, float]) -> str:
    return f"{seconds['stream']:.1f}, {seconds['consolidate']:.1f}"
