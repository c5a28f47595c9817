"""What each data set consists of: its official files, who serves them, where they lie."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from tame.errors import ConfigError, DataError, suggest
from tame.streams.folder import is_file

Piece = Mapping[str, str]


class Download(NamedTuple):
    """A file as the servers offer it."""

    name: str
    size: int
    md5: str


@dataclass(frozen=True)
class Source:
    """A data set's origin and shape.

    Its files lie in one of `places` in the data folder, or straight in that folder. Each of its
    `pieces` comes in one form or more (file name -> MD5), of which the first one there is read.
    What is fetched goes to the first place in the first form, so it is always what is read.
    """

    name: str
    servers: tuple[str, ...]
    downloads: tuple[Download, ...]
    places: tuple[str, ...]
    pieces: tuple[Piece, ...]
    licence: str

    @property
    def archive(self) -> bool:
        """Say whether it is served as an archive that unpacks into the first place."""
        return self.downloads[0].name.endswith(".tar.gz")

    @property
    def size(self) -> int:
        """Return the bytes to download."""
        return sum(download.size for download in self.downloads)


class Finding(NamedTuple):
    """How one file compares with the official one."""

    path: Path
    state: Literal["ok", "wrong", "missing"]
    expected: str = ""
    found: str = ""


class Holding(NamedTuple):
    """What of a data set a reader would find: where, how many bytes, and which pieces lack."""

    folder: Path
    size: int
    missing: tuple[str, ...]


def source(name: str) -> Source:
    """Return a data set's entry.

    >>> source("svhn").licence
    'non-commercial research only'
    >>> source("cifar")
    Traceback (most recent call last):
    ...
    tame.errors.ConfigError: no data set named 'cifar' to fetch; did you mean 'cifar10'?
    """
    if name not in SOURCES:
        raise ConfigError(f"no data set named '{name}' to fetch{suggest(name, SOURCES)}")
    return SOURCES[name]


def digest(path: Path) -> str:
    """Return a file's MD5."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, _md5).hexdigest()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def survey(entry: Source, root: Path) -> Holding | None:
    """Return what a reader would find of a data set, without reading it; None: nothing."""
    for folder in _folders(entry, root):
        if _present(folder, entry.pieces[0]):
            used = [_present(folder, piece)[:1] for piece in entry.pieces]
            size = sum((folder / name).stat().st_size for names in used for name in names)
            lacks = [
                next(iter(p)) for p, names in zip(entry.pieces, used, strict=True) if not names
            ]
            return Holding(folder, size, tuple(lacks))
    return None


def is_right(folder: Path, piece: Piece) -> bool:
    """Say whether the form of a piece that a reader would take is the official file."""
    names = _present(folder, piece)[:1]
    return any(digest(folder / name) == piece[name] for name in names)


def is_whole(entry: Source, root: Path) -> bool:
    """Say whether a reader would find the data set, and find it right."""
    held = survey(entry, root)
    return held is not None and all(is_right(held.folder, piece) for piece in entry.pieces)


def check(entry: Source, root: Path) -> list[Finding]:
    """Compare all of a data set's files under a folder with the official ones."""
    findings = []
    for folder in _folders(entry, root):
        if any(_present(folder, piece) for piece in entry.pieces):
            found = [finding for piece in entry.pieces for finding in _compare(folder, piece)]
            if folder != root or not _belongs_elsewhere(entry, found):
                findings += found
    return findings


def _compare(folder: Path, piece: Piece) -> Iterator[Finding]:
    names = _present(folder, piece)
    if not names:
        yield Finding(folder / next(iter(piece)), "missing")
    for name in names:
        found = digest(folder / name)
        state: Literal["ok", "wrong"] = "ok" if found == piece[name] else "wrong"
        yield Finding(folder / name, state, piece[name], found)


def _belongs_elsewhere(entry: Source, findings: list[Finding]) -> bool:
    """MNIST's files and Fashion-MNIST's have the same names: say whose these are."""
    others = {
        md5
        for other in SOURCES.values()
        if other.name != entry.name
        for piece in other.pieces
        for md5 in piece.values()
    }
    return any(finding.found in others for finding in findings)


def _folders(entry: Source, root: Path) -> Iterator[Path]:
    seen: list[Path] = []
    for folder in (*(root / place for place in entry.places), root):
        if folder.is_dir() and not any(folder.samefile(other) for other in seen):
            seen.append(folder)
            yield folder


def _present(folder: Path, piece: Piece) -> list[str]:
    return [name for name in piece if is_file(folder / name)]


def _md5() -> "hashlib._Hash":
    return hashlib.md5(usedforsecurity=False)


def _idx(downloads: tuple[Download, ...], *plain: str) -> tuple[Piece, ...]:
    """Return the pieces of a data set of gzipped idx files, which may also lie there unpacked."""
    return tuple(
        {packed.name: packed.md5, packed.name.removesuffix(".gz"): md5}
        for packed, md5 in zip(downloads, plain, strict=True)
    )


def _cifar(table: str) -> tuple[Piece, ...]:
    """Return pieces from lines of name, MD5 in the python version, MD5 in the binary version."""
    rows = [line.split() for line in table.strip().splitlines()]
    return tuple({name: python, f"{name}.bin": binary} for name, python, binary in rows)


_MNIST = (
    Download("train-images-idx3-ubyte.gz", 9_912_422, "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
    Download("train-labels-idx1-ubyte.gz", 28_881, "d53e105ee54ea40749a09fcbcd1e9432"),
    Download("t10k-images-idx3-ubyte.gz", 1_648_877, "9fb629c4189551a2d022fa330f9573f3"),
    Download("t10k-labels-idx1-ubyte.gz", 4_542, "ec29112dd5afa0611ce80d1b7f02629c"),
)
_FASHION = (
    Download("train-images-idx3-ubyte.gz", 26_421_880, "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
    Download("train-labels-idx1-ubyte.gz", 29_515, "25c81989df183df01b3e8a0aad5dffbe"),
    Download("t10k-images-idx3-ubyte.gz", 4_422_102, "bef4ecab320f06d8554ea6380940ec79"),
    Download("t10k-labels-idx1-ubyte.gz", 5_148, "bb300cfdad3c16e7a12a480ee83cd310"),
)
_CIFAR10 = Download("cifar-10-python.tar.gz", 170_498_071, "c58f30108f718f92721af3b95e74349a")
_CIFAR100 = Download("cifar-100-python.tar.gz", 169_001_437, "eb9058c3a382ffc7106e4002c42a8d85")
_SVHN = (
    Download("train_32x32.mat", 182_040_794, "e26dedcc434d2e4c54c9b2d4a06d8373"),
    Download("test_32x32.mat", 64_275_384, "eb5a983be6a315427106f1b164d9cef3"),
)
_ALL = (
    Source(
        name="mnist",
        servers=(
            "https://ossci-datasets.s3.amazonaws.com/mnist",
            "https://storage.googleapis.com/cvdf-datasets/mnist",
        ),
        downloads=_MNIST,
        places=("MNIST/raw", "mnist", "MNIST"),
        pieces=_idx(
            _MNIST,
            "6bbc9ace898e44ae57da46a324031adb",
            "a25bea736e30d166cdddb491f175f624",
            "2646ac647ad5339dbf082846283269ea",
            "27ae3e4e09519cfbb04c329615203637",
        ),
        licence="CC BY-SA 3.0",
    ),
    Source(
        name="fashion-mnist",
        servers=(  # the first does not speak https; the MD5 vouches for what comes
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
            "https://storage.googleapis.com/tensorflow/tf-keras-datasets",
        ),
        downloads=_FASHION,
        places=("FashionMNIST/raw", "fashion-mnist", "FashionMNIST"),
        pieces=_idx(
            _FASHION,
            "f4a8712d7a061bf5bd6d2ca38dc4d50a",
            "9018921c3c673c538a1fc5bad174d6f9",
            "8181f5470baa50b63fa0f6fddb340f0a",
            "15d484375f8d13e6eb1aabb0c3f46965",
        ),
        licence="MIT",
    ),
    Source(
        name="cifar10",
        servers=("https://www.cs.toronto.edu/~kriz",),
        downloads=(_CIFAR10,),
        places=("cifar-10-batches-py", "cifar-10-batches-bin"),
        pieces=_cifar("""
            data_batch_1 c99cafc152244af753f735de768cd75f 5dd7e06a14cb22eb9f671a540d1b7c25
            data_batch_2 d4bba439e000b95fd0a9bffe97cbabec 5ea93a67294ea407fff1d09f752e9692
            data_batch_3 54ebc095f3ab1f0389bbae665268c751 942cd6a4bcdd0dd3c604fbe906cb4421
            data_batch_4 634d18415352ddfa80567beed471001a ae636b3ba5c66a11e91e8cb52e771fcb
            data_batch_5 482c414d41f54cd18b22e5b47cb7c3cb 53f37980c15c3d472c316c40844f3f0d
            test_batch   40351d587109b95175f43aff81a1287e 803d5f7f4d78ea53de84dbe85f74fb6d
        """),
        licence="none stated; cite Krizhevsky (2009)",
    ),
    Source(
        name="cifar100",
        servers=("https://www.cs.toronto.edu/~kriz",),
        downloads=(_CIFAR100,),
        places=("cifar-100-python", "cifar-100-binary"),
        pieces=_cifar("""
            train 16019d7e3df5f24257cddd939b257f8d 6172c7755cfe09b2fe270c85cebc1b15
            test  f0ef6b0ae62326f3e7ffdfab6717acfc 4499cfba6c016c1be1438163640a0898
        """),
        licence="none stated; cite Krizhevsky (2009)",
    ),
    Source(
        name="svhn",
        servers=("http://ufldl.stanford.edu/housenumbers",),
        downloads=_SVHN,
        places=("SVHN", "svhn"),
        pieces=tuple({file.name: file.md5} for file in _SVHN),
        licence="non-commercial research only",
    ),
)
SOURCES = {entry.name: entry for entry in _ALL}
