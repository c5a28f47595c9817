"""Downloads that resume, are checked against the official MD5, and land whole or not at all."""

import os
import re
import shutil
import sys
import tarfile
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path

from tame.errors import ConfigError, DataError, StorageError
from tame.streams.catalogue import Download, Source, digest, is_right, is_whole
from tame.streams.folder import is_file

PARTIAL = ".partial"
CHUNK = 1 << 18
PROGRESS = 1 << 20  # a broken transfer that brought this much was worth it: patience starts anew
PARTIAL_CONTENT, BAD_RANGE = 206, 416
PASSING = {408, 425, 429, 500, 502, 503, 504}  # answers after which another try may go well

Report = Callable[[str, int, int], None]  # a file's name, bytes here, bytes in all


class FaultError(Exception):
    """A transfer that broke; another try may go well."""


class RefusalError(Exception):
    """A server that has nothing for us."""


@dataclass(frozen=True)
class Patience:
    """How long one server is put up with.

    `tries` in a row may bring nothing new; between them come pauses of `pause` seconds, doubled
    each time. A server silent for `timeout` seconds has broken the transfer.
    """

    tries: int = 4
    pause: float = 1.0
    timeout: float = 30.0
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class Courier:
    """Brings files, with patience, and reports how far it has come."""

    patience: Patience = Patience()
    report: Report = lambda _name, _done, _total: None

    def bring(self, file: Download, folder: Path, servers: Sequence[str]) -> Path:
        """Return the official file, downloaded from the first server that has it."""
        target = folder / file.name
        if is_file(target) and digest(target) == file.md5:
            return target
        complaints = []
        for server in servers:
            url = f"{server}/{file.name}"
            try:
                partial = self._complete(url, file, folder)
            except RefusalError as error:
                complaints.append(f"{url}: {error}")
                continue
            with storing(target):
                partial.replace(target)
            return target
        raise _failure(file, folder, complaints)

    def _complete(self, url: str, file: Download, folder: Path) -> Path:
        """Return the partial file once it is whole and right."""
        partial = folder / (file.name + PARTIAL)
        begun = _length(partial)
        if begun and digest(partial) == file.md5:
            return partial
        self._insist(url, file, partial)
        found = digest(partial)
        if found == file.md5:
            return partial
        partial.unlink()
        if begun:  # what was there before may be to blame
            return self._complete(url, file, folder)
        raise RefusalError(f"wrong checksum, expected {file.md5}, got {found}; deleted")

    def _insist(self, url: str, file: Download, partial: Path) -> None:
        """Transfer until nothing is missing or patience is at its end."""
        best, failures = _length(partial), 0
        while True:
            try:
                self._transfer(url, file, partial)
            except FaultError as error:
                failures = 0 if _length(partial) >= best + PROGRESS else failures + 1
                best = max(best, _length(partial))
                if failures >= self.patience.tries:
                    raise RefusalError(f"{error} ({failures} tries)") from error
                self.patience.sleep(self.patience.pause * 2 ** max(0, failures - 1))
            else:
                return

    def _transfer(self, url: str, file: Download, partial: Path) -> None:
        """Ask for what is missing and append it."""
        with storing(partial):
            partial.parent.mkdir(parents=True, exist_ok=True)
        response, have = _ask(url, _length(partial), self.patience.timeout)
        with response:
            length = response.headers.get("Content-Length", "")
            if length.isdigit() and have + int(length) != file.size:
                raise RefusalError(
                    f"offers {have + int(length)} bytes, the official file has {file.size}"
                )
            with storing(partial), partial.open("ab", buffering=0) as out:
                out.truncate(have)  # a server that knows no ranges begins anew
                for chunk in _chunks(response, file.size - have):
                    have += _write(out.write, chunk)
                    self.report(file.name, have, file.size)
                os.fsync(out.fileno())
        if have < file.size:
            raise FaultError(f"broke off after {have} of {file.size} bytes")


def fetch(
    entry: Source,
    root: Path,
    servers: Sequence[str] = (),
    courier: Courier = Courier(),
) -> bool:
    """Download a data set into a data folder; return False where it is there and right already."""
    servers = [_address(server) for server in servers or entry.servers]
    if is_whole(entry, root):
        return False
    home = root / entry.places[0]
    with claimed(root):
        if entry.archive:
            unpack(courier.bring(entry.downloads[0], root, servers), entry, root)
        else:
            for file, piece in zip(entry.downloads, entry.pieces, strict=True):
                if not is_right(home, piece):
                    courier.bring(file, home, servers)
    return True


def unpack(archive: Path, entry: Source, root: Path) -> None:
    """Move what an archive holds to its place, whole, and remove the archive."""
    home, scratch = root / entry.places[0], archive.with_name(archive.name + ".unpacked")
    shutil.rmtree(scratch, ignore_errors=True)  # what a killed fetch left
    try:
        with storing(scratch), tarfile.open(archive) as packed:
            packed.extractall(scratch, filter="data")
        found = scratch / entry.places[0]
        lacking = [name for name in map(next, map(iter, entry.pieces)) if not is_file(found / name)]
        if lacking:
            raise DataError(f"{archive} does not hold {entry.places[0]}/{', '.join(lacking)}")
        with storing(home):
            _move(found, home)
            archive.unlink()
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise DataError(f"{archive} cannot be unpacked: {error}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def claimed(root: Path) -> Iterator[None]:
    """Keep a second fetch out of a data folder, where the system has locks for that."""
    with storing(root):
        root.mkdir(parents=True, exist_ok=True)
    if sys.platform == "win32":
        yield
        return
    import fcntl

    with storing(root):
        handle = os.open(root, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise DataError(f"another fetch is writing to {root}; wait until it is done") from error
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(handle)


@contextmanager
def storing(path: Path) -> Iterator[None]:
    """Turn what the disk refuses into an error that says what would help."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"could not write {path}: {error.strerror or error}; what has arrived is kept: "
            "make room and fetch again, or name another folder with --to"
        ) from error


def _address(server: str) -> str:
    if not re.match(r"https?://", server):
        raise ConfigError(f"'{server}' is no address to fetch from; one begins with https://")
    return server.rstrip("/")


def _ask(url: str, have: int, timeout: float) -> tuple[HTTPResponse, int]:
    """Return the answer, and where in the file it begins: at what is missing, or anew."""
    headers = {"User-Agent": "tame"} | ({"Range": f"bytes={have}-"} if have else {})
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 (see _address)
    try:
        response: HTTPResponse = urllib.request.urlopen(request, timeout=timeout)  # noqa: S310
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == BAD_RANGE and have:
            return _ask(url, 0, timeout)
        kind = FaultError if error.code in PASSING else RefusalError
        raise kind(f"answers {error.code} {error.reason}") from error
    except (OSError, HTTPException, ValueError) as error:
        raise FaultError(f"cannot be reached: {getattr(error, 'reason', error)}") from error
    begin = have if response.status == PARTIAL_CONTENT else 0
    if not begin or response.headers.get("Content-Range", "").startswith(f"bytes {begin}-"):
        return response, begin
    response.close()  # a part, but not the one that is missing
    return _ask(url, 0, timeout)


def _chunks(response: HTTPResponse, missing: int) -> Iterator[bytes]:
    while missing > 0:
        try:
            chunk = response.read1(min(CHUNK, missing))
        except (OSError, HTTPException) as error:
            raise FaultError(f"broke off: {error}") from error
        if not chunk:
            return
        missing -= len(chunk)
        yield chunk


def _write(write: Callable[[memoryview], int], chunk: bytes) -> int:
    rest = memoryview(chunk)
    while rest:  # a disk about to be full takes a part
        rest = rest[write(rest) :]
    return len(chunk)


def _move(found: Path, home: Path) -> None:
    for file in found.iterdir():
        with file.open("rb") as written:
            os.fsync(written.fileno())
    if home.is_dir():  # files of the user's own stay
        for file in found.iterdir():
            file.replace(home / file.name)
    else:
        found.rename(home)


def _length(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _failure(file: Download, folder: Path, complaints: list[str]) -> DataError:
    kept = _length(folder / (file.name + PARTIAL))
    return DataError(
        f"could not fetch {file.name}: {'; '.join(complaints)}. What may help: the network or "
        "its proxy (https_proxy), another try later"
        + (f" ({kept} bytes are kept and will not be asked for again)" if kept else "")
        + f", another server (--from URL), or the file put into {folder} by hand"
    )
