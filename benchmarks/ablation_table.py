"""The table of a study of `ablation.py`: every variant, and how far it is from the preset as it is.

    python benchmarks/ablation_table.py FILE

Differences are taken seed by seed. *Told the expert* is the accuracy if every sample went to the
expert of its segment: an oracle in the selector's place.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tame.bench.leaderboard import paired
from tame.bench.paper.measures import share, signed, spread

BASE = "as it is"
HEADINGS = (
    "variant", "strict", "less as it is", "told the expert", "selector", "non-zero", "experts",
    "missed", "false", "n",
)  # fmt: skip
Row = dict[str, Any]


def lines(rows: dict[str, list[Row]]) -> Iterator[str]:
    """Yield the table, line by line."""
    yield "| " + " | ".join(HEADINGS) + " |"
    yield "|---" * len(HEADINGS) + "|"
    for name, runs in rows.items():
        away = "" if name == BASE else signed(paired(runs, rows[BASE], strict))
        shares = [share(over(runs, key)) for key in ("strict", "oracle", "selector")]
        counts = [told([run[key] for run in runs]) for key in ("nonzero", "experts")]
        counts += [str(sum(run[key] for run in runs)) for key in ("missed", "false_alarms")]
        cells = [name, shares[0], away, *shares[1:], *counts, str(len(runs))]
        yield "| " + " | ".join(cells) + " |"


def strict(run: Row) -> float:
    """Return a run's headline figure."""
    return float(100 * run["strict"])


def over(runs: list[Row], key: str) -> Any:
    """Return a share over seeds, in per cent, as far as runs have it."""
    return spread([100 * run[key] for run in runs if run[key] is not None])


def told(numbers: list[int]) -> str:
    """Return one number where all are the same, else the least and the most."""
    least, most = min(numbers), max(numbers)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def main() -> None:
    """Print the table of one file."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("file", type=Path, help="a result of ablation.py")
    print("\n".join(lines(json.loads(options.parse_args().file.read_text())["rows"])))


if __name__ == "__main__":
    main()
