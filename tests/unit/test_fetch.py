"""Downloads against a server that cuts, lies, stalls, refuses and dies."""

import errno
import gzip
import re
import shutil
from pathlib import Path

import pytest
from faulty_server import dead_address, md5, packed, packed_source, plain_source, serving

from tame.errors import ConfigError, DataError, StorageError
from tame.registry import DATASETS
from tame.streams import catalogue, fetch
from tame.streams.catalogue import SOURCES, Source, check, is_whole, source, survey
from tame.streams.fetch import Courier, Patience, claimed

CONTENT = bytes(range(256)) * 400
HALF = len(CONTENT) // 2
SHARED = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving() as running:
        running.files["a.bin"] = CONTENT
        yield running


@pytest.fixture
def entry():
    return plain_source("tiny", {"a.bin": CONTENT})


@pytest.fixture
def pauses():
    return []


@pytest.fixture
def courier(pauses):
    return Courier(Patience(tries=3, pause=1.0, timeout=5.0, sleep=pauses.append))


def landed(root: Path):
    """Return every file under a folder with its contents."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


WHOLE = {"PLACE/raw/a.bin": CONTENT}


def leave_partial(root: Path, data: bytes):
    folder = root / "PLACE/raw"
    folder.mkdir(parents=True)
    (folder / "a.bin.partial").write_bytes(data)


def test_file_lands_whole_and_progress_is_told(server, entry, tmp_path):
    told = []
    courier = Courier(report=lambda *seen: told.append(seen))
    assert fetch.fetch(entry, tmp_path / "new", [server.url + "/"], courier)
    assert landed(tmp_path / "new") == WHOLE
    assert told[-1] == ("a.bin", len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)


def test_what_is_there_and_right_is_not_asked_for(server, entry, courier, tmp_path):
    assert fetch.fetch(entry, tmp_path, [server.url], courier)
    assert not fetch.fetch(entry, tmp_path, [server.url], courier)
    assert server.asked == [("a.bin", None)]


def test_only_missing_and_wrong_files_are_asked_for(server, courier, tmp_path):
    files = {"a.bin": CONTENT, "b.bin": b"b" * 100, "c.bin": b"c" * 100}
    server.files |= files
    entry = plain_source("tiny", files)
    folder = tmp_path / "PLACE/raw"
    folder.mkdir(parents=True)
    (folder / "a.bin").write_bytes(CONTENT)
    (folder / "b.bin").write_bytes(b"x" * 100)
    assert fetch.fetch(entry, tmp_path, [server.url], courier)
    assert [name for name, _ in server.asked] == ["b.bin", "c.bin"]
    assert landed(folder) == files


def test_cut_transfer_goes_on_where_it_broke(server, entry, courier, pauses, tmp_path):
    server.faults = ["cut"]
    assert fetch.fetch(entry, tmp_path, [server.url], courier)
    assert server.asked == [("a.bin", None), ("a.bin", f"bytes={HALF}-")]
    assert landed(tmp_path) == WHOLE
    assert pauses == [1.0]


def test_server_without_ranges_begins_anew(server, entry, courier, tmp_path):
    server.ranges, server.faults = False, ["cut", "cut"]
    assert fetch.fetch(entry, tmp_path, [server.url], courier)
    assert [wanted for _, wanted in server.asked] == [None, *2 * [f"bytes={HALF}-"]]
    assert landed(tmp_path) == WHOLE


@pytest.mark.parametrize("left", [b"?" * len(CONTENT), CONTENT + b"?"])
def test_range_beyond_the_file_begins_anew(server, entry, courier, pauses, tmp_path, left):
    leave_partial(tmp_path, left)
    assert fetch.fetch(entry, tmp_path, [server.url], courier)
    assert [wanted for _, wanted in server.asked] == [f"bytes={len(left)}-", None]
    assert landed(tmp_path) == WHOLE
    assert not pauses


def test_another_part_than_asked_for_begins_anew(server, entry, courier, tmp_path):
    leave_partial(tmp_path, CONTENT[:100])
    server.faults = ["other part"]
    assert fetch.fetch(entry, tmp_path, [server.url], courier)
    assert [wanted for _, wanted in server.asked] == ["bytes=100-", None]
    assert landed(tmp_path) == WHOLE


@pytest.mark.parametrize("fault", ["503", "429", "500", "hang up"])
def test_passing_trouble_is_waited_out_with_growing_pauses(
    server, entry, courier, pauses, tmp_path, fault
):
    server.faults = [fault, fault]
    assert fetch.fetch(entry, tmp_path, [server.url], courier)
    assert landed(tmp_path) == WHOLE
    assert pauses == [1.0, 2.0]


def test_stalled_server_is_left_and_asked_again(server, entry, pauses, tmp_path):
    server.faults = ["silent"]
    courier = Courier(Patience(tries=20, timeout=0.15, sleep=pauses.append))
    assert fetch.fetch(entry, tmp_path, [server.url], courier)
    assert len(server.asked) >= 2
    assert pauses
    assert landed(tmp_path) == WHOLE


def test_answer_without_a_length_is_taken(server, entry, courier, tmp_path):
    server.faults = ["chunked"]
    assert fetch.fetch(entry, tmp_path, [server.url], courier)
    assert landed(tmp_path) == WHOLE


def test_patience_starts_anew_while_something_arrives(
    server, entry, courier, pauses, tmp_path, monkeypatch
):
    monkeypatch.setattr(fetch, "PROGRESS", 1000)
    server.faults = ["cut"] * 6  # more than three tries, each bringing half of the rest
    assert fetch.fetch(entry, tmp_path, [server.url], courier)
    assert landed(tmp_path) == WHOLE
    assert pauses == [1.0] * 6


def test_patience_ends_where_nothing_new_arrives(server, entry, courier, pauses, tmp_path):
    server.ranges, server.faults = False, ["cut"] * 9
    with pytest.raises(DataError, match=f"broke off after {HALF} of {len(CONTENT)} bytes"):
        fetch.fetch(entry, tmp_path, [server.url], courier)
    assert len(server.asked) == 3
    assert pauses == [1.0, 2.0]


def test_dead_server_is_named_with_what_would_help(entry, courier, pauses, tmp_path):
    address = dead_address()
    with pytest.raises(DataError) as refused:
        fetch.fetch(entry, tmp_path, [address], courier)
    for part in (f"{address}/a.bin", "refused", "3 tries", "--from", "https_proxy", str(tmp_path)):
        assert part in str(refused.value)
    assert pauses == [1.0, 2.0]
    assert landed(tmp_path) == {}


def test_next_mirror_goes_on_with_what_the_first_gave(server, entry, courier, tmp_path):
    with serving() as failing:
        failing.files["a.bin"] = CONTENT
        failing.faults = ["cut", "503", "503", "503"]
        servers = [dead_address(), failing.url, server.url]
        assert fetch.fetch(entry, tmp_path, servers, courier)
    assert server.asked == [("a.bin", f"bytes={HALF}-")]
    assert landed(tmp_path) == WHOLE


def test_missing_page_is_not_asked_for_twice(server, courier, pauses, tmp_path):
    with pytest.raises(DataError, match=r"none\.bin: answers 404"):
        fetch.fetch(plain_source("tiny", {"none.bin": b"1"}), tmp_path, [server.url], courier)
    assert len(server.asked) == 1
    assert not pauses


def test_wrong_bytes_are_deleted_and_both_checksums_told(server, entry, courier, tmp_path):
    server.faults = ["other bytes"]
    with pytest.raises(DataError) as refused:
        fetch.fetch(entry, tmp_path, [server.url], courier)
    wrong = md5(bytes(255 - byte for byte in CONTENT))
    assert f"expected {md5(CONTENT)}, got {wrong}" in str(refused.value)
    assert landed(tmp_path) == {}


def test_wrong_bytes_of_one_mirror_do_not_keep_the_next_from_serving(
    server, entry, courier, tmp_path
):
    with serving() as lying:
        lying.files["a.bin"] = CONTENT[::-1]
        assert fetch.fetch(entry, tmp_path, [lying.url, server.url], courier)
    assert landed(tmp_path) == WHOLE


def test_another_page_leaves_what_has_arrived_alone(server, entry, courier, tmp_path):
    leave_partial(tmp_path, CONTENT[:HALF])
    server.faults = ["other page"]
    with pytest.raises(DataError, match="offers 26 bytes, the official file has 102400"):
        fetch.fetch(entry, tmp_path, [server.url], courier)
    assert landed(tmp_path) == {"PLACE/raw/a.bin.partial": CONTENT[:HALF]}


def test_stale_beginning_is_replaced(server, entry, courier, tmp_path):
    leave_partial(tmp_path, b"stale" * 100)
    assert fetch.fetch(entry, tmp_path, [server.url], courier)
    assert [wanted for _, wanted in server.asked] == ["bytes=500-", None]
    assert landed(tmp_path) == WHOLE


def test_whole_partial_lands_without_a_request(server, entry, courier, tmp_path):
    leave_partial(tmp_path, CONTENT)
    assert fetch.fetch(entry, tmp_path, [server.url], courier)
    assert not server.asked
    assert landed(tmp_path) == WHOLE


def test_interrupted_fetch_is_resumed_by_the_next(server, entry, courier, tmp_path):
    server.faults = ["cut"]

    def interrupt(_name, _done, _total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch.fetch(entry, tmp_path, [server.url], Courier(report=interrupt))
    (partial,) = landed(tmp_path).values()
    assert 0 < len(partial) <= HALF
    assert fetch.fetch(entry, tmp_path, [server.url], courier)
    assert server.asked[1] == ("a.bin", f"bytes={len(partial)}-")
    assert landed(tmp_path) == WHOLE


def test_full_disk_keeps_what_fits(server, entry, courier, tmp_path, monkeypatch):
    def full(write, chunk):
        write(memoryview(chunk)[:1000])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(fetch, "_write", full)
        with pytest.raises(StorageError, match=r"a\.bin\.partial: No space left.*make room"):
            fetch.fetch(entry, tmp_path, [server.url], courier)
    assert landed(tmp_path) == {"PLACE/raw/a.bin.partial": CONTENT[:1000]}
    assert fetch.fetch(entry, tmp_path, [server.url], courier)
    assert server.asked[-1] == ("a.bin", "bytes=1000-")
    assert landed(tmp_path) == WHOLE


def test_disk_that_takes_a_chunk_in_parts_gets_all_of_it():
    taken = []

    def write(rest):
        taken.append(bytes(rest[:7]))
        return len(taken[-1])

    assert fetch._write(write, CONTENT[:100]) == 100
    assert b"".join(taken) == CONTENT[:100]


def test_folder_that_cannot_be_made_is_a_storage_error(server, entry, courier, tmp_path):
    (tmp_path / "PLACE").write_bytes(b"in the way")
    with pytest.raises(StorageError, match="could not write"):
        fetch.fetch(entry, tmp_path, [server.url], courier)


def test_second_fetch_into_the_same_folder_is_kept_out(server, entry, courier, tmp_path):
    with claimed(tmp_path), pytest.raises(DataError, match="another fetch is writing"):
        fetch.fetch(entry, tmp_path, [server.url], courier)
    assert fetch.fetch(entry, tmp_path, [server.url], courier)


@pytest.mark.parametrize("address", ["file:///etc", "ftp://host/", "host/path"])
def test_only_web_addresses_are_fetched_from(entry, courier, tmp_path, address):
    with pytest.raises(ConfigError, match=re.escape(address)):
        fetch.fetch(entry, tmp_path, [address], courier)


PIECES = {"one": b"1" * 1000, "two": b"2" * 1000}
INSIDE = {f"folder-py/{name}": data for name, data in PIECES.items()}


def packed_tiny(files: dict[str, bytes]) -> tuple[Source, bytes]:
    archive = packed(files)
    return packed_source("tiny", archive, PIECES, "folder-py"), archive


def test_archive_is_unpacked_to_its_place_and_removed(server, courier, tmp_path):
    entry, server.files["tiny.tar.gz"] = packed_tiny(INSIDE | {"folder-py/readme.html": b"x"})
    server.faults = ["cut"]
    assert fetch.fetch(entry, tmp_path, [server.url], courier)
    assert landed(tmp_path) == INSIDE | {"folder-py/readme.html": b"x"}
    assert not fetch.fetch(entry, tmp_path, [server.url], courier)
    assert len(server.asked) == 2


def test_archive_mends_a_folder_and_leaves_the_users_files(server, courier, tmp_path):
    entry, server.files["tiny.tar.gz"] = packed_tiny(INSIDE)
    (tmp_path / "folder-py").mkdir()
    (tmp_path / "folder-py" / "one").write_bytes(b"broken")
    (tmp_path / "folder-py" / "notes").write_bytes(b"mine")
    assert fetch.fetch(entry, tmp_path, [server.url], courier)
    assert landed(tmp_path) == INSIDE | {"folder-py/notes": b"mine"}


def test_archive_left_by_a_killed_fetch_is_unpacked_without_a_request(server, courier, tmp_path):
    entry, archive = packed_tiny(INSIDE)
    (tmp_path / "tiny.tar.gz").write_bytes(archive)
    scratch = tmp_path / "tiny.tar.gz.unpacked" / "folder-py"
    scratch.mkdir(parents=True)
    (scratch / "half").write_bytes(b"half")
    assert fetch.fetch(entry, tmp_path, [server.url], courier)
    assert not server.asked
    assert landed(tmp_path) == INSIDE


def test_archive_that_reaches_outside_is_refused(server, courier, tmp_path):
    entry, server.files["tiny.tar.gz"] = packed_tiny(INSIDE | {"../../outside": b"x"})
    with pytest.raises(DataError, match="cannot be unpacked"):
        fetch.fetch(entry, tmp_path / "root", [server.url], courier)
    assert set(landed(tmp_path)) == {"root/tiny.tar.gz"}


@pytest.mark.parametrize(
    ("archive", "message"),
    [
        (b"no archive at all", "cannot be unpacked"),
        (packed(INSIDE)[:-40], "cannot be unpacked"),
        (packed({"folder-py/one": PIECES["one"]}), "does not hold folder-py/two"),
    ],
    ids=["no archive", "cut short", "a file short"],
)
def test_broken_archive_is_refused_and_nothing_lands(server, courier, tmp_path, archive, message):
    server.files["tiny.tar.gz"] = archive
    entry = packed_source("tiny", archive, PIECES, "folder-py")
    with pytest.raises(DataError, match=message):
        fetch.fetch(entry, tmp_path, [server.url], courier)
    assert set(landed(tmp_path)) == {"tiny.tar.gz"}
    assert not (tmp_path / "folder-py").exists()


def test_full_disk_while_unpacking_keeps_the_archive(server, courier, tmp_path, monkeypatch):
    entry, server.files["tiny.tar.gz"] = packed_tiny(INSIDE)

    def full(_source, _target, *_: int, **__: object):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copyfileobj", full)
        patched.setattr("tarfile.copyfileobj", full)
        with pytest.raises(StorageError, match="No space left"):
            fetch.fetch(entry, tmp_path, [server.url], courier)
    assert set(landed(tmp_path)) == {"tiny.tar.gz"}
    assert fetch.fetch(entry, tmp_path, [server.url], courier)
    assert landed(tmp_path) == INSIDE
    assert len(server.asked) == 1


def two_forms(name: str, data: bytes) -> Source:
    """Return a data set of one file that may lie there gzipped or plain."""
    zipped = gzip.compress(data, mtime=0)
    entry = plain_source(name, {"a.gz": zipped}, f"{name}/raw")
    return Source(name, (), entry.downloads, entry.places, ({"a.gz": md5(zipped), "a": md5(data)},),
                  "")  # fmt: skip


def states(entry: Source, root: Path):
    return {str(found.path.relative_to(root)): found.state for found in check(entry, root)}


def test_check_tells_right_wrong_and_missing(tmp_path):
    entry = plain_source("tiny", {"a": b"a", "b": b"b", "c": b"c"}, "first", "second")
    assert check(entry, tmp_path) == []
    for place in ("first", "second"):
        (tmp_path / place).mkdir()
    (tmp_path / "first" / "a").write_bytes(b"a")
    (tmp_path / "first" / "b").write_bytes(b"?")
    assert states(entry, tmp_path) == {"first/a": "ok", "first/b": "wrong", "first/c": "missing"}
    (wrong,) = [found for found in check(entry, tmp_path) if found.state == "wrong"]
    assert (wrong.expected, wrong.found) == (md5(b"b"), md5(b"?"))
    for name in "abc":
        (tmp_path / name).write_bytes(name.encode())
    assert states(entry, tmp_path) | {"c": "ok"} == states(entry, tmp_path)
    assert survey(entry, tmp_path) == (tmp_path / "first", 2, ("c",))


def test_either_form_of_a_file_will_do(server, courier, tmp_path):
    entry = two_forms("tiny", CONTENT)
    (tmp_path / "tiny/raw").mkdir(parents=True)
    (tmp_path / "tiny/raw/a").write_bytes(CONTENT)
    assert is_whole(entry, tmp_path)
    assert states(entry, tmp_path) == {"tiny/raw/a": "ok"}
    assert not fetch.fetch(entry, tmp_path, [server.url], courier)
    (tmp_path / "tiny/raw/a").write_bytes(b"broken")
    server.files["a.gz"] = gzip.compress(CONTENT, mtime=0)
    assert fetch.fetch(entry, tmp_path, [server.url], courier)
    assert is_whole(entry, tmp_path)  # the fetched form is the one that is read


def test_files_of_one_name_are_told_apart_in_the_data_folder_itself(tmp_path, monkeypatch):
    these, those = two_forms("these", b"these"), two_forms("those", b"those")
    monkeypatch.setattr(catalogue, "SOURCES", {"these": these, "those": those})
    (tmp_path / "a").write_bytes(b"those")
    assert states(these, tmp_path) == {}
    assert states(those, tmp_path) == {"a": "ok"}
    (tmp_path / "a").write_bytes(b"neither")
    assert states(these, tmp_path) == states(those, tmp_path) == {"a": "wrong"}


@pytest.mark.parametrize("name", SOURCES)
def test_catalogue_is_consistent(name):
    entry = source(name)
    assert DATASETS.get(name).__name__ == f"read_{name.replace('-', '_')}"
    assert all(re.fullmatch(r"https?://[^ ]+[^/]", address) for address in entry.servers)
    sums = [md5 for piece in entry.pieces for md5 in piece.values()]
    assert all(re.fullmatch("[0-9a-f]{32}", md5) for md5 in sums)
    assert len(set(sums)) == len(sums)
    if not entry.archive:
        firsts = [next(iter(piece.items())) for piece in entry.pieces]
        assert [(file.name, file.md5) for file in entry.downloads] == firsts


@pytest.mark.skipif(not SHARED.exists(), reason="the shared data are not beside this checkout")
def test_catalogue_has_the_checksums_known_here():
    known = {
        (name, md5)
        for entry in SOURCES.values()
        for name, md5 in [
            *[pair for piece in entry.pieces for pair in piece.items()],
            *[(file.name, file.md5) for file in entry.downloads],
        ]
    }
    told = re.findall(r"`([\w.-]+)` ([0-9a-f]{32})", (SHARED / "README.md").read_text())
    table = re.findall(
        r'"(?:[\w-]+/)?([\w.-]+)": "([0-9a-f]{32})"', (SHARED / "unpack.py").read_text()
    )
    assert (len(told), len(table)) == (8, 12)
    assert {*told, *table} <= known
