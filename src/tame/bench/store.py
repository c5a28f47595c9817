"""A run's folder: what is in it, and how it stays whole when the run is killed."""

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tame.checkpoint import PARTIAL
from tame.errors import RunError, StorageError
from tame.types import Observation


class RunFolder:
    """`run.toml`, `events.jsonl`, `model.tame`, `result.json` and `report.html` of one run.

    While it consolidates there is `consolidation.tame`, too.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config = self.path / "run.toml"
        self.events = self.path / "events.jsonl"
        self.model = self.path / "model.tame"
        self.unfinished = self.path / "consolidation.tame"
        self.result = self.path / "result.json"
        self.report = self.path / "report.html"

    def holds_run(self) -> bool:
        """Say whether a run was ever started here."""
        return self.config.exists() or self.model.exists() or self.events.exists()

    def create(self, config: str, *, overwrite: bool = False) -> None:
        """Start an empty run; a folder that holds one is refused unless it may be overwritten."""
        if self.holds_run() and not overwrite:
            raise RunError(
                f"{self.path} already holds a run; go on with --resume, "
                "start over with --overwrite, or choose another --out"
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            written = (self.result, self.report, self.model, self.unfinished, self.events)
            for file in (*written, self.config):
                file.unlink(missing_ok=True)
            self.sweep()
        except OSError as error:
            raise StorageError(f"could not write to {self.path}: {error}") from error
        write_text(self.config, config)

    def sweep(self) -> None:
        """Remove what a killed write may have left behind."""
        for leftover in self.path.glob(f"*{PARTIAL}"):
            leftover.unlink()

    def read_result(self) -> dict[str, Any]:
        """Return `result.json`."""
        return read_json(self.result)

    def read_events(self) -> Iterator[dict[str, Any]]:
        """Yield every observation."""
        with self.events.open(encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)


class EventLog:
    """Appends observations; its length at a checkpoint is where a resumed run cuts the file."""

    def __init__(self, path: Path, length: int) -> None:
        try:
            self._file = path.open("ab")
            self._file.truncate(length)
            self._file.seek(length)
        except OSError as error:
            raise StorageError(f"could not write {path}: {error}") from error
        self._path = path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def add(self, seen: Observation) -> None:
        """Write one observation as a line of JSON."""
        record = {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in seen._asdict().items()
        }
        try:
            self._file.write(json.dumps(record).encode() + b"\n")
        except OSError as error:
            raise StorageError(f"could not write {self._path}: {error}") from error

    def settle(self) -> int:
        """Bring everything to disk and return the length."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise StorageError(f"could not write {self._path}: {error}") from error
        return self._file.tell()


class NoLog:
    """In place of an `EventLog` on a rank that writes nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
    def add(self, seen: Observation) -> None: ...
    def settle(self) -> int:
        return 0


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    partial = path.with_name(path.name + PARTIAL)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise StorageError(f"could not write {path}: {error}") from error


def read_remark(folder: Path) -> str:
    """Return what the makers of kept results say of them in `about.md`, or nothing."""
    try:
        return " ".join((folder / "about.md").read_text(encoding="utf-8").split())
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        raise RunError(f"{folder / 'about.md'} cannot be read: {error}") from error


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object, or say what is wrong with the file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RunError(f"there is no {path.name} in {path.parent}: not a finished run") from error
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise RunError(f"{path} does not hold a JSON object")
    return found
