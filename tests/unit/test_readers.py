"""The official files of each data set, in small: exact arrays out, everything else refused."""

import collections
import gzip
import os
import pickle
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from tame.errors import DataError
from tame.streams import cifar, folder, idx
from tame.streams.catalogue import SOURCES, check
from tame.streams.cifar import read_cifar10, read_cifar100, read_pickle
from tame.streams.dataset import read
from tame.streams.folder import data_folder, find
from tame.streams.idx import read_fashion_mnist, read_idx, read_mnist
from tame.streams.svhn import read_mat, read_svhn

SHARED = Path(__file__).parents[3] / "shared" / "data"
READERS = {
    "mnist": read_mnist,
    "fashion-mnist": read_fashion_mnist,
    "cifar10": read_cifar10,
    "cifar100": read_cifar100,
    "svhn": read_svhn,
}


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("TAME_DATA", str(tmp_path))
    return tmp_path


def pixels(seed: int, *shape: int):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def written(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


# idx -----------------------------------------------------------------------------------------


def idx_bytes(array: np.ndarray) -> bytes:
    head = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    return head + array.tobytes()


def write_idx(place: Path, *, packed: bool, seed: int = 0):
    """Write a tiny set of four idx files and return its arrays."""
    arrays = (
        pixels(seed, 7, 28, 28),
        pixels(seed + 1, 7) % 10,
        pixels(seed + 2, 3, 28, 28),
        pixels(seed + 3, 3) % 10,
    )
    for array, piece in zip(arrays, SOURCES["mnist"].pieces, strict=True):
        name = next(iter(piece)) if packed else next(iter(piece)).removesuffix(".gz")
        data = idx_bytes(array)
        written(place / name, gzip.compress(data) if packed else data)
    return arrays


@pytest.mark.parametrize("packed", [True, False], ids=["gz", "plain"])
@pytest.mark.parametrize("place", ["MNIST/raw", "mnist", "."])
def test_idx_files_give_their_arrays(root, place, packed):
    x, y, held_x, held_y = write_idx(root / place, packed=packed)
    data = read_mnist()
    assert data.name == "mnist"
    for found, expected in ((data.x, x[:, None]), (data.held_x, held_x[:, None])):
        assert found.dtype == np.uint8
        np.testing.assert_array_equal(found, expected)
    for found, expected in ((data.y, y), (data.held_y, held_y)):
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, expected)


def test_fetched_form_is_read_first(root):
    write_idx(root / "MNIST/raw", packed=False, seed=10)
    x, *_ = write_idx(root / "MNIST/raw", packed=True)
    np.testing.assert_array_equal(read_mnist().x[:, 0], x)


def test_namesake_is_not_taken_for_the_other(root, monkeypatch):
    write_idx(root, packed=True)
    held = idx_bytes(read_mnist().held_y.astype(np.uint8))
    fashion = SOURCES["fashion-mnist"]
    told = {"t10k-labels-idx1-ubyte": idx.hashlib.md5(held, usedforsecurity=False).hexdigest()}
    pieces = (*fashion.pieces[:3], told)
    monkeypatch.setitem(
        SOURCES, "fashion-mnist", type(fashion)(**vars(fashion) | {"pieces": pieces})
    )
    (root / "new").write_bytes(b"")  # the folder has changed, so it is read anew
    with pytest.raises(DataError, match="holds fashion-mnist, not mnist"):
        read_mnist()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not an idx file"),
        (b"PK\3\4 something else", "not an idx file"),
        (b"\0\0\x0d\3" + bytes(40), "not an idx file"),  # of floats
        (b"\0\0\x08\1" + bytes(40), "not an idx file"),  # of labels
        (b"\0\0\x08\3\0\0\0\1", "cut short"),
        (idx_bytes(pixels(0, 4, 28, 28))[:-1], "cut short"),
        (idx_bytes(pixels(0, 4, 28, 28)) + b"\0", "cut short or foreign"),
        (struct.pack(">HBB3I", 0, 8, 3, 2**32 - 1, 2**32 - 1, 2**32 - 1), "cut short"),
    ],
)
def test_foreign_and_truncated_idx_files_are_refused(root, data, message):
    with pytest.raises(DataError, match=message) as refused:
        read_idx(written(root / "some-idx3-ubyte", data), 3)
    assert "some-idx3-ubyte" in str(refused.value)


@pytest.mark.parametrize("cut", [5, 60, 200])
def test_truncated_gz_is_refused(root, cut):
    data = gzip.compress(idx_bytes(pixels(0, 4, 28, 28)))
    with pytest.raises(DataError, match="cannot be read"):
        read_idx(written(root / "some.gz", data[:-cut]), 3)
    with pytest.raises(DataError, match="cannot be read"):
        read_idx(written(root / "some.gz", b"not gz at all"), 3)


def test_unequal_numbers_of_images_and_labels_are_refused(root):
    write_idx(root / "MNIST/raw", packed=False)
    written(root / "MNIST/raw/train-labels-idx1-ubyte", idx_bytes(pixels(0, 6)))
    with pytest.raises(DataError, match=r"7 images, .* 6 labels"):
        read_mnist()


# CIFAR ---------------------------------------------------------------------------------------


def short_string(text: bytes) -> bytes:
    return b"U" + bytes([len(text)]) + text


def long_string(data: bytes) -> bytes:
    return b"T" + struct.pack("<i", len(data)) + data


def python2_pickle(images: np.ndarray, columns: dict[bytes, list[int]]) -> bytes:
    """Write what Python 2's cPickle wrote in protocol 2: the opcodes of the official files."""
    shape = b"".join(b"J" + struct.pack("<i", size) for size in images.shape)
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\nq\x02cnumpy\nndarray\nq\x03K\0\x85"
        + short_string(b"b")
        + b"\x87R("
        + (b"K\x01" + shape + b"\x86cnumpy\ndtype\nq\x04" + short_string(b"u1"))
        + (b"K\0K\x01\x87R(K\x03" + short_string(b"|") + b"NNN")
        + (2 * (b"J" + struct.pack("<i", -1)) + b"K\0tb\x89" + long_string(images.tobytes()))
        + b"tb"
    )
    lists = b"".join(
        short_string(key) + b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
        for key, labels in columns.items()
    )
    names = short_string(b"filenames") + b"](" + short_string(b"a_s_1.png") + b"e"
    batch = short_string(b"batch_label") + short_string(b"testing batch 1 of 1")
    return b"\x80\x02}q\x01(" + batch + lists + short_string(b"data") + array + names + b"u."


def cifar10_file(seed: int, count: int = 4):
    return pixels(seed, count, 3072), (pixels(seed + 50, count) % 10).tolist()


def python2(images, labels):
    return python2_pickle(images, {b"labels": labels})


def python3(images, labels):
    return pickle.dumps({"data": images, "labels": labels, "filenames": [b"a"]}, protocol=2)


def scalars(images, labels):
    return pickle.dumps({b"data": images, b"labels": [np.int64(y) for y in labels]}, protocol=2)


def fortran(images, labels):
    return pickle.dumps(
        {"data": np.asfortranarray(images), "labels": np.array(labels, ">i2")}, protocol=2
    )


def binary(images, labels):
    rows = np.concatenate([np.array(labels, np.uint8)[:, None], images], axis=1)
    return rows.tobytes()


@pytest.mark.parametrize("form", [python2, python3, scalars, fortran, binary])
def test_cifar10_files_give_their_arrays(root, form):
    names = [next(iter(piece)) for piece in SOURCES["cifar10"].pieces]
    parts = [cifar10_file(seed) for seed in range(6)]
    place = "cifar-10-batches-bin" if form is binary else "cifar-10-batches-py"
    for name, part in zip(names, parts, strict=True):
        written(root / place / (name + ".bin" * (form is binary)), form(*part))
    data = read_cifar10()
    x = np.concatenate([images for images, _ in parts[:5]]).reshape(-1, 3, 32, 32)
    np.testing.assert_array_equal(data.x, x)
    np.testing.assert_array_equal(data.y, np.concatenate([labels for _, labels in parts[:5]]))
    np.testing.assert_array_equal(data.held_x, parts[5][0].reshape(-1, 3, 32, 32))
    np.testing.assert_array_equal(data.held_y, parts[5][1])
    assert (data.x.dtype, data.y.dtype, data.groups) == (np.uint8, np.int64, ())


FINE = [0, 99, 41, 0, 41]
COARSE = [4, 13, 19, 4, 19]


@pytest.mark.parametrize("form", ["python", "binary"])
def test_cifar100_files_give_labels_and_superclasses(root, form):
    parts = {"train": pixels(1, 5, 3072), "test": pixels(2, 5, 3072)}
    for name, images in parts.items():
        if form == "python":
            columns = {b"coarse_labels": COARSE, b"fine_labels": FINE}
            written(root / "cifar-100-python" / name, python2_pickle(images, columns))
        else:
            both = np.array([COARSE, FINE], np.uint8).T
            rows = np.concatenate([both, images], axis=1)
            written(root / "cifar-100-binary" / f"{name}.bin", rows.tobytes())
    data = read_cifar100()
    np.testing.assert_array_equal(data.x, parts["train"].reshape(-1, 3, 32, 32))
    np.testing.assert_array_equal(data.held_x, parts["test"].reshape(-1, 3, 32, 32))
    assert data.y.tolist() == data.held_y.tolist() == FINE
    assert len(data.groups) == 100
    assert [data.groups[fine] for fine in FINE] == COARSE


def test_class_in_two_superclasses_is_refused(root):
    rows = np.concatenate([np.array([[1, 5], [2, 5]]), np.zeros((2, 3072))], axis=1)
    for name in ("train.bin", "test.bin"):
        written(root / "cifar-100-binary" / name, rows.astype(np.uint8).tobytes())
    with pytest.raises(DataError, match="two superclasses"):
        read_cifar100()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (binary(*cifar10_file(0))[:-1], "cut short"),
        (b"", "cut short"),
        (binary(cifar10_file(0)[0], [1, 2, 10, 3]), "labels beyond"),
    ],
)
def test_foreign_and_truncated_binary_files_are_refused(root, data, message):
    path = written(root / "data_batch_1.bin", data)
    with pytest.raises(DataError, match=message):
        cifar._part(path, {"labels": 10})


IMAGES, LABELS = cifar10_file(0)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a file of the data set"),
        (b"<html>", "not a file of the data set"),
        (python2(IMAGES, LABELS)[:-2000], "not a file of the data set"),
        (pickle.dumps([1, 2], 2), "a list, not a dictionary"),
        (pickle.dumps({"data": IMAGES}, 2), "lacks labels"),
        (pickle.dumps({"data": IMAGES, "labels": [1, 2, 3]}, 2), "unequal numbers"),
        (pickle.dumps({"data": IMAGES[:, :-1], "labels": LABELS}, 2), "unequal numbers"),
        (pickle.dumps({"data": IMAGES.tolist(), "labels": LABELS}, 2), "no array of bytes"),
        (pickle.dumps({"data": IMAGES.astype("f4"), "labels": LABELS}, 2), "no array of bytes"),
        (pickle.dumps({"data": IMAGES, "labels": [0.5, 1, 2, 3]}, 2), "no whole numbers"),
        (pickle.dumps({"data": IMAGES, "labels": ["0", "1", "2", "3"]}, 2), "no whole numbers"),
        (pickle.dumps({"data": IMAGES, "labels": [[0], [1], [2], [3]]}, 2), "no whole numbers"),
        (pickle.dumps({"data": IMAGES, "labels": [0, 1, 2, -1]}, 2), "labels beyond"),
        (pickle.dumps({"data": IMAGES, "labels": [0, 1, 2, 10]}, 2), "labels beyond"),
    ],
)
def test_foreign_and_truncated_pickles_are_refused(root, data, message):
    path = written(root / "data_batch_1", data)
    with pytest.raises(DataError, match=message) as refused:
        cifar._part(path, {"labels": 10})
    assert str(path) in str(refused.value)


class Malicious:
    """Pickles as a call."""

    def __init__(self, function, *arguments: object) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> tuple[object, object]:
        return self.call


def attacks(marker: Path) -> dict[str, bytes]:
    """Return programs in pickle's language that would leave a mark or do other harm, by name."""
    code, command = f"open({str(marker)!r}, 'w').close()", f"touch {marker}"
    dressed = {"data": IMAGES, "labels": LABELS, "extra": Malicious(os.system, command)}
    getter = b"\x80\x02c__builtin__\ngetattr\n"
    codec = b"\x80\x02c_codecs\nencode\nX"
    return {
        "os.system": pickle.dumps(Malicious(os.system, command), 2),
        "os.system among real data": pickle.dumps(dressed, 2),
        "eval": pickle.dumps(Malicious(eval, code), 2),
        "exec in protocol 0": pickle.dumps(Malicious(exec, code), 0),
        "exec in protocol 5": pickle.dumps(Malicious(exec, code), 5),
        "subprocess": pickle.dumps(Malicious(subprocess.call, ["touch", str(marker)]), 2),
        "open": pickle.dumps(Malicious(open, str(marker), "w"), 2),
        "python 2's builtins": b"\x80\x02c__builtin__\neval\nX" + text(code) + b"\x85R.",
        "numpy's own loader": pickle.dumps(Malicious(np.load, str(marker)), 2),
        "a method": pickle.dumps(Malicious(np.ndarray.tofile, IMAGES, str(marker)), 4),
        "a dotted name": b"\x80\x04\x8c\x05numpy\x8c\x0edtype.__init__\x93.",
        "getattr": getter + b"cnumpy\ndtype\nX" + text("mro") + b"\x86R.",
        "a class instance": pickle.dumps(collections.Counter("a"), 2),
        "the inst opcode": b"(S'" + command.encode() + b"'\nios\nsystem\n.",
        "the obj opcode": b"(cos\nsystem\nX" + text(command) + b"o.",
        "the extension registry": b"\x80\x02\x82\x01.",
        "a persistent id": b"P1\n.",
        "a stand-in altered": b"\x80\x02cnumpy\ndtype\n}X" + text("a") + b"K\x01sb.",
        "ndarray called": b"\x80\x02cnumpy\nndarray\nK\x05\x85\x85R.",
        "an array of objects": pickle.dumps({"data": np.array([len, None])}, 2),
        "a record type": pickle.dumps({"data": np.zeros(3, [("a", "i4")])}, 2),
        "pointers behind a plain type": hidden_pointers(),
        "another codec": codec + text("a") + b"X" + text("hex") + b"\x86R.",
        "a shape without its bytes": shape_without_bytes(),
    }


def text(value: str) -> bytes:
    return struct.pack("<I", len(value.encode())) + value.encode()


def hidden_pointers() -> bytes:
    """Return a dtype whose state smuggles in pointers: numpy itself would take it."""
    return (
        b"\x80\x02cnumpy\ndtype\nX" + text("V8") + b"K\0K\x01\x87R(K\x03X" + text("|") + b"N"
        b"X" + text("a") + b"\x85}X" + text("a") + b"cnumpy\ndtype\nX" + text("O8")
        + b"K\0K\x01\x87RK\0\x86sK\x08K\x01K\0tb."
    )  # fmt: skip


def shape_without_bytes() -> bytes:
    whole = python2(IMAGES, LABELS)
    return whole.replace(struct.pack("<i", 3072), struct.pack("<i", 2**31 - 1))


@pytest.mark.parametrize("name", attacks(Path("unused")))
def test_malicious_pickle_executes_nothing(root, name):
    marker = root / "executed"
    program = attacks(marker)[name]
    for batch in (next(iter(piece)) for piece in SOURCES["cifar10"].pieces):
        written(root / "cifar-10-batches-py" / batch, program)
    with pytest.raises(DataError, match="data_batch_1 is not a file of the data set"):
        read_cifar10()
    assert not marker.exists()


def test_the_attacks_are_real(root):
    """Python's own unpickler falls for the same bytes: the refusal above is worth something."""
    programs = attacks(root / "executed")
    for name in ("os.system", "eval", "python 2's builtins", "the inst opcode"):
        pickle.loads(programs[name])  # noqa: S301 (that is the point)
        (root / "executed").unlink()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("os.system", r"it asks for (posix|nt)\.system"),
        ("an array of objects", "it asks for numbers of type 'O8'"),
        ("a record type", "it asks for numbers of type 'V4'"),
        ("pointers behind a plain type", "it asks for numbers of type 'V8'"),
        ("another codec", "it asks for bytes encoded as 'hex'"),
    ],
)
def test_refusal_names_what_the_file_asked_for(root, name, reason):
    with pytest.raises(DataError, match=reason):
        read_pickle(written(root / "data_batch_1", attacks(root / "executed")[name]))


def test_stand_ins_stay_as_they_are(root):
    before = dict(cifar.ADMITTED)
    program = b"\x80\x02c_codecs\nencode\nN}X" + text("_make") + b"Ns\x86b."
    with pytest.raises(DataError, match="alters what builds it"):
        read_pickle(written(root / "data_batch_1", program))
    assert before == cifar.ADMITTED
    read_pickle(written(root / "data_batch_1", python3(IMAGES, LABELS)))


# SVHN ----------------------------------------------------------------------------------------


def write_svhn(place: Path):
    place.mkdir(parents=True)
    parts = {"train": (pixels(1, 32, 32, 3, 6), [10, 1, 2, 9, 10, 5]),
             "test": (pixels(2, 32, 32, 3, 2), [3, 10])}  # fmt: skip
    for name, (x, y) in parts.items():
        column = np.array(y, np.uint8)[:, None]
        savemat(place / f"{name}_32x32.mat", {"X": x, "y": column}, do_compression=True)
    return parts


@pytest.mark.parametrize("place", ["SVHN", "svhn", "flat"])
def test_svhn_files_give_their_arrays(root, place, monkeypatch):
    parts = write_svhn(root / place)
    if place == "flat":
        monkeypatch.setenv("TAME_DATA", str(root / "flat"))
    data = read_svhn()
    np.testing.assert_array_equal(data.x, parts["train"][0].transpose(3, 2, 0, 1))
    np.testing.assert_array_equal(data.held_x, parts["test"][0].transpose(3, 2, 0, 1))
    assert data.y.tolist() == [0, 1, 2, 9, 0, 5]  # the file's 10 is the digit 0
    assert data.held_y.tolist() == [3, 0]
    assert (data.x.dtype, data.y.dtype, data.x.flags.c_contiguous) == (np.uint8, np.int64, True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"X": pixels(0, 32, 32, 3, 2)}, "cannot be read: KeyError"),
        ({"X": pixels(0, 32, 32, 3, 2), "y": [[1], [2], [3]]}, "not a file of cropped digits"),
        ({"X": pixels(0, 32, 32, 2), "y": [[1], [2]]}, "not a file of cropped digits"),
        ({"X": pixels(0, 32, 32, 3, 2) / 2, "y": [[1], [2]]}, "float64 images"),
        ({"X": pixels(0, 32, 32, 3, 2), "y": [[0], [2]]}, "labels are not 1 to 10"),
    ],
)
def test_foreign_mat_files_are_refused(root, content, message):
    savemat(root / "train_32x32.mat", content)
    with pytest.raises(DataError, match=message):
        read_mat(root / "train_32x32.mat")


def test_broken_mat_files_are_refused(root):
    write_svhn(root / "SVHN")
    path = root / "SVHN/train_32x32.mat"
    whole = path.read_bytes()
    for data in (b"", b"MATLAB" * 100, whole[: len(whole) // 2], whole[:200]):
        path.write_bytes(data)
        with pytest.raises(DataError, match="train_32x32"):
            read_svhn()


# folders, caches -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", READERS)
def test_absent_data_set_is_named_with_its_remedy(root, name):
    with pytest.raises(DataError) as refused:
        READERS[name]()
    for part in (str(root), f"'tame data fetch {name}'", "--data", "TAME_DATA"):
        assert part in str(refused.value)
    with pytest.raises(DataError, match=f"{name} is not in"):
        read(name)


def test_incomplete_data_set_names_what_is_missing(root):
    write_idx(root / "MNIST/raw", packed=True)
    (root / "MNIST/raw/t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(DataError, match=r"there is no t10k-labels-idx1-ubyte\.gz or .*tame data"):
        read_mnist()


def twins(root: Path):
    """Write two folders that differ in nothing but what is inside their files."""
    first, *_ = write_idx(root / "a/MNIST/raw", packed=False)
    second, *_ = write_idx(root / "b/MNIST/raw", packed=False, seed=20)
    for path in root.rglob("*-ubyte"):
        os.utime(path, ns=(10**18, 10**18))
    return {"a": first, "b": second}


def test_another_data_folder_gives_its_own_data(root, monkeypatch):
    expected = twins(root)
    for place in "aba":
        monkeypatch.setenv("TAME_DATA", str(root / place))
        np.testing.assert_array_equal(read_mnist().x[:, 0], expected[place])


def test_relative_folder_follows_the_working_folder(root, monkeypatch):
    expected = twins(root)
    monkeypatch.setenv("TAME_DATA", ".")
    for place in "aba":
        monkeypatch.chdir(root / place)
        np.testing.assert_array_equal(read_mnist().x[:, 0], expected[place])


def test_changed_files_are_read_anew_and_unchanged_ones_once(root):
    write_idx(root / "MNIST/raw", packed=True)
    before = read_mnist()
    assert read_mnist() is before
    after, *_ = write_idx(root / "MNIST/raw", packed=True, seed=20)
    np.testing.assert_array_equal(read_mnist().x[:, 0], after)


def test_nobody_can_write_to_what_the_next_reader_gets(root):
    write_idx(root / "MNIST/raw", packed=True)
    write_svhn(root / "SVHN")
    names = [next(iter(piece)) for piece in SOURCES["cifar10"].pieces]
    for seed, name in enumerate(names):
        written(root / "cifar-10-batches-py" / name, python2(*cifar10_file(seed)))
    for name in ("mnist", "svhn", "cifar10"):
        data = READERS[name]()
        for array in (data.x, data.y, data.held_x, data.held_y):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1


def test_data_folder_is_the_one_named_else_the_users_cache(monkeypatch, tmp_path):
    assert data_folder() == tmp_path
    assert data_folder("elsewhere") == Path("elsewhere")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TAME_DATA", "~/data")
    assert data_folder() == tmp_path / "home/data"
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("TAME_DATA", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_folder() == tmp_path / "cache/tame"
    for unusable in ("", "relative/cache"):
        monkeypatch.setenv("XDG_CACHE_HOME", unusable)
        assert data_folder() == tmp_path / "home/.cache/tame"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert data_folder() == tmp_path / "home/Library/Caches/tame"
    monkeypatch.setenv("TAME_DATA", "~nobody-by-this-name/data")
    with pytest.raises(DataError, match="--data or TAME_DATA"):
        data_folder()


def test_find_takes_the_first_place_that_has_a_file(root):
    written(root / "second" / "b", b"")
    written(root / "a", b"")
    (root / "first" / "a").mkdir(parents=True)  # a folder of that name is no file
    assert find("some", ("first", "second"), ("a", "b")) == root / "second"
    assert find("some", ("first",), ("a", "b")) == root / "."
    with pytest.raises(DataError, match="some is not in"):
        find("some", ("first",), ("c",))
    assert folder.is_file(root / "a" / "below a file") is False


@pytest.mark.skipif(not SHARED.exists(), reason="the shared data are not beside this checkout")
def test_real_mnist_is_read_whole(root):
    unpack = [sys.executable, str(SHARED / "unpack.py"), str(root), "mnist"]
    subprocess.run(unpack, check=True, capture_output=True)
    assert [finding.state for finding in check(SOURCES["mnist"], root)] == ["ok"] * 4
    data = read_mnist()
    assert (data.x.shape, data.held_x.shape) == ((60000, 1, 28, 28), (10000, 1, 28, 28))
    assert np.bincount(data.y).tolist()[:3] == [5923, 6742, 5958]
    assert data.held_y[:10].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]
    (root / "MNIST").rename(root / "FashionMNIST")
    with pytest.raises(DataError, match="holds mnist, not fashion-mnist"):
        read_fashion_mnist()
