"""One page per run that opens offline and says what happened."""

from pathlib import Path

from tame.bench.page import page
from tame.bench.record import read_record
from tame.bench.store import write_text


def write_report(folder: Path) -> Path:
    """Write `report.html` from the result and events in a run's folder; return where it is."""
    path = Path(folder) / "report.html"
    write_text(path, page(read_record(Path(folder))))
    return path
