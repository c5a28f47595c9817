"""The tables of docs/detection.md, from what `detection_null.py` measured.

python benchmarks/detection_table.py [FILE]
"""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]
NOISES = ("normal", "exponential", "waves", "lognormal")


def quiet(document: Row, names: list[str]) -> Iterator[str]:
    """Yield, for each noise, the alarms in 100,000 readings and the least mean run length."""
    yield "| detector | " + " | ".join(NOISES) + " |"
    yield "|---" * (len(NOISES) + 1) + "|"
    for name in names:
        found = [document[name]["quiet"][noise] for noise in NOISES]
        cells = [f"{row['in_100000']:,} (>= {row['at_least']:,})" for row in found]
        yield f"| `{name}` | " + " | ".join(cells) + " |"


def delays(
    document: Row, names: list[str], part: str, label: Callable[[Row], str]
) -> Iterator[str]:
    """Yield, for each change, every detector's median and longest delay, and what it missed."""
    yield "| change | " + " | ".join(f"`{name}`" for name in names) + " |"
    yield "|---" * (len(names) + 1) + "|"
    for place, row in enumerate(document[names[0]][part]):
        cells = [_cell(document[name][part][place]) for name in names]
        yield f"| {label(row)} | " + " | ".join(cells) + " |"


def _cell(row: Row) -> str:
    if "false_alarms" in row:
        return f"{row['false_alarms']} false"
    if row["missed"] == row["runs"]:
        return "missed"
    early = f", {row['early']} early" if row.get("early") else ""
    missed = f", {row['missed']}/{row['runs']} missed" if row["missed"] else ""
    return f"{_number(row['median'])} ({row['longest']}){missed}{early}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"


def step(row: Row) -> str:
    """Name a synthetic change."""
    size = "falling loss" if row["falling"] else f"{row['size']} deviations"
    return f"batch {row['batch']}, after {row['age']}, {size}"


def trace(row: Row) -> str:
    """Name a recorded change."""
    when = f"after {row['age']}" if row["age"] else "no change"
    return f"{row['stream']}, batch {row['batch']}, {when}"


def main() -> None:
    """Print the tables there are."""
    file = Path(sys.argv[1] if len(sys.argv) > 1 else "benchmarks/results/detection/null.json")
    document = json.loads(file.read_text())
    names = [name for name in document if name not in ("command", "promise")]
    if "quiet" in document[names[0]]:
        print("\n".join(quiet(document, names)), "\n")
        print("\n".join(delays(document, names, "steps", step)), "\n")
    print("\n".join(delays(document, names, "traces", trace)), "\n")
    for row in document.get("promise", []):
        print(row)


if __name__ == "__main__":
    main()
