"""An HTTP server on this machine that misbehaves as told, and small data sets for it to serve."""

import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tame.streams.catalogue import Download, Source


def md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def plain_source(name: str, files: dict[str, bytes], *places: str) -> Source:
    """Return a data set of these files, one download a piece."""
    downloads = tuple(Download(file, len(data), md5(data)) for file, data in files.items())
    pieces = tuple({file: md5(data)} for file, data in files.items())
    return Source(name, (), downloads, places or ("PLACE/raw",), pieces, "of the tests' own")


def packed_source(name: str, archive: bytes, files: dict[str, bytes], place: str) -> Source:
    """Return a data set of files served in one archive."""
    download = Download(f"{name}.tar.gz", len(archive), md5(archive))
    pieces = tuple({file: md5(data)} for file, data in files.items())
    return Source(name, (), (download,), (place,), pieces, "of the tests' own")


def packed(files: dict[str, bytes]) -> bytes:
    """Return a .tar.gz of files by path."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for path, data in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


class FaultyServer(ThreadingHTTPServer):
    """Each request meets the next of `faults`; when there are none left, all goes well."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.faults: list[str] = []
        self.ranges = True
        self.asked: list[tuple[str, str | None]] = []
        self.release = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent: clients that hang up are part of the tests."""


class Handler(BaseHTTPRequestHandler):
    """Serves the files of a faulty server."""

    server: FaultyServer

    def do_GET(self) -> None:
        name, wanted = self.path.lstrip("/"), self.headers.get("Range")
        self.server.asked.append((name, wanted))
        fault = self.server.faults.pop(0) if self.server.faults else ""
        data = self.server.files.get(name)
        if fault == "hang up":
            return
        if fault.isdigit() or data is None:
            self.send_error(int(fault or 404))
            return
        begin = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        if fault == "chunked":
            self.send_chunks(data)
        elif wanted and self.server.ranges and begin >= len(data):
            self.send_error(416)
        else:
            self.send_part(data, begin if self.server.ranges else 0, fault)

    def send_part(self, data: bytes, begin: int, fault: str) -> None:
        if fault == "other bytes":
            data = bytes(255 - byte for byte in data)
        if fault == "other page":
            data = b"<html>please log in</html>"
            begin = 0
        told = begin + 1 if fault == "other part" else begin
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {told}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - begin))
        self.end_headers()
        rest = data[begin:]
        stops = fault in ("cut", "silent")
        self.wfile.write(rest[: len(rest) // 2] if stops else rest)
        if fault == "silent":
            self.server.release.wait(10)

    def send_chunks(self, data: bytes) -> None:
        self.protocol_version = "HTTP/1.1"
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for chunk in (data[: len(data) // 3], data[len(data) // 3 :], b""):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def serving() -> Iterator[FaultyServer]:
    """Run a server for as long as the block lasts."""
    with FaultyServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.release.set()
            server.shutdown()
            thread.join()


def dead_address() -> str:
    """Return an address nobody listens at any more."""
    with FaultyServer() as server:
        return server.url
