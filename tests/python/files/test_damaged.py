"""torch.load of damaged, hostile or foreign files: always LoadError, with time and memory limited by the file's size."""

from __future__ import annotations

import io
import itertools
import os
import pickle
import struct
import tracemalloc
import zipfile

import pytest

from tests.fuzz.load_fuzz import archive_of, entries_of, fault_of, mutations, seeds

MIB = 1 << 20
STORAGE = b"(X\x07\x00\x00\x00storagectorch\n%s\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu%st"
V2 = b"ctorch._utils\n_rebuild_tensor_v2\n"
REQUIRES_GRAD = b"\x88ccollections\nOrderedDict\n)R"
HOOKS = b"\x89ccollections\nOrderedDict\n)R"


def number(n: int) -> bytes:
    return b"\x8a\x0b" + n.to_bytes(11, "little", signed=True)


def sizes(*ns) -> bytes:
    return b"(" + b"".join(map(number, ns)) + b"t"


def storage(numel: int = 2, kind: bytes = b"FloatStorage") -> bytes:
    return STORAGE % (kind, number(numel)) + b"Q"


def tensor(
    numel: int = 2,
    offset: int = 0,
    size=(2,),
    stride=(1,),
    kind: bytes = b"FloatStorage",
    rest: bytes = HOOKS,
    name: bytes = V2,
) -> bytes:
    return (
        b"\x80\x02"
        + name
        + b"("
        + storage(numel, kind)
        + number(offset)
        + sizes(*size)
        + sizes(*stride)
        + rest
        + b"tR."
    )


def file_of(data: bytes, contents: bytes = bytes(8), more=()) -> bytes:
    return archive_of([("archive/data.pkl", data), ("archive/data/0", contents), *more])


def refuse(torch, data: bytes, match: str = "load") -> None:
    with pytest.raises(torch.serialization.LoadError, match=match) as raised:
        torch.load(io.BytesIO(data))
    assert isinstance(raised.value, RuntimeError) and isinstance(raised.value, pickle.UnpicklingError)
    assert str(raised.value).startswith("[load] ") and len(str(raised.value)) < 2000


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def call(name: str, *args: bytes) -> bytes:
    module, _, function = name.rpartition(".")
    return b"\x80\x02c" + f"{module}\n{function}\n".encode() + b"(" + b"".join(args) + b"tR."


PICKLES = {
    "empty": (b"", "more bytes"),
    "unknown opcode": (b"\x80\x02\xff.", "Unsupported operand 255"),
    "extension registry": (b"\x80\x02\x82\x01.", "Unsupported operand"),
    "instance of Python 1": (b"\x80\x02(ios\nsystem\n.", "Unsupported operand"),
    "protocol 9": (b"\x80\x09N.", "protocol"),
    "no stop": (b"\x80\x02N", "more bytes"),
    "two objects": (b"\x80\x02NN.", "one object"),
    "no object": (b"\x80\x02.", "one object"),
    "open mark": (b"\x80\x02(N.", "one object"),
    "no mark": (b"\x80\x02t.", "lacks its mark"),
    "no operand": (b"\x80\x02R.", "lacks its operand"),
    "tuple of too few": (b"\x80\x02N\x87.", "fewer"),
    "text of 4 GB": (b"\x80\x02X\xff\xff\xff\xff.", "more bytes"),
    "text of 16 EB": (b"\x80\x04\x8d" + b"\xff" * 8 + b".", "more bytes"),
    "bytes of 16 EB": (b"\x80\x05\x96" + b"\xff" * 8 + b".", "more bytes"),
    "integer of 2 GB": (b"\x80\x02\x8b\xff\xff\xff\x7f.", "more bytes"),
    "integer of negative length": (b"\x80\x02\x8b\xff\xff\xff\xff.", "length"),
    "decimal number": (b"\x80\x02I" + b"9" * 100_000 + b"\n.", "line"),
    "name of 1 MB": (b"\x80\x02c" + b"a" * MIB + b"\nb\n.", "line"),
    "memo": (b"\x80\x02h\x05.", "Memo value not found"),
    "append to a number": (b"\x80\x02K\x01K\x02a.", "a list to append to"),
    "item of a list": (b"\x80\x02]K\x01K\x02s.", "a dict"),
    "odd pairs": (b"\x80\x02}(K\x01u.", "pairs"),
    "add to a list": (b"\x80\x04](K\x01\x90.", "a set"),
    "list as key": (b"\x80\x02}]Ns.", "hashable"),
    "dict in a key": (b"\x80\x02}}\x85Ns.", "hashable"),
    "call of a number": (b"\x80\x02K\x01)R.", "unrecognized function"),
    "call without a tuple": (b"\x80\x02ctorch\nSize\n]R.", "tuple of arguments"),
    "state of a dict": (b"\x80\x02}}b.", "Can only build"),
    "object of a function": (b"\x80\x02" + V2 + b")\x81.", "Can only create new object"),
    "system": (call("os.system", text("id")), "module os is blocked"),
    "eval": (call("builtins.eval", text("1")), "GLOBAL eval was not an allowed global"),
    "import": (call("importlib.import_module", text("os")), "not an allowed global"),
    "attribute by dots": (b"\x80\x04" + text("torch") + text("serialization.load") + b"\x93.", "not an allowed global"),
    "dunder": (b"\x80\x02ctorch\n__builtins__\n.", "not an allowed global"),
    "private": (b"\x80\x02cteletensor.serialization._globals\n_registered\n.", "not an allowed global"),
    "name from a number": (b"\x80\x04K\x01K\x02\x93.", "a name"),
    "bytearray of 1 TB": (call("builtins.bytearray", number(1 << 40)), "bytes for a bytearray"),
    "set of a text": (call("builtins.set", text("abc")), "elements of a set"),
    "zip codec": (call("_codecs.encode", text("a"), text("zlib_codec")), "a text and its encoding"),
    "size of texts": (call("torch.Size", b"(" + text("a") + b"t"), "tuple of integers"),
    "device of no type": (call("torch.device", text("x" * 1000)), "damaged"),
    "counter of a list": (call("collections.Counter", b"]"), "pairs for a Counter"),
    "complex of a text": (call("builtins.complex", text("1")), "two numbers"),
    "parameter of a number": (call("torch.nn.parameter.Parameter", b"K\x01"), "a tensor for a Parameter"),
    "attribute that is a method": (
        b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\n(" + V2 + b"ctorch\nTensor\n" + tensor()[len(V2) + 2 : -2]
        + b"}" + text("numpy") + b"NstR.",
        "attributes",
    ),
    "other persistent id": (b"\x80\x02(" + text("module") + b"tQ.", "id of a storage"),
    "persistent text": (b"\x80\x02P0\n.", "Unsupported operand"),
    "storage of a class": (b"\x80\x02" + storage(kind=b"Tensor") + b".", "id of a storage"),
}  # fmt: skip

TENSORS = {
    "too many elements": (tensor(numel=3), "12 bytes in an entry"),
    "elements that overflow": (tensor(numel=1 << 62), "number of elements"),
    "negative elements": (tensor(numel=-2), "number of elements"),
    "longer than its storage": (tensor(size=(3,)), "out of bounds"),
    "stride out of its storage": (tensor(stride=(2,)), "out of bounds"),
    "offset out of its storage": (tensor(offset=1), "out of bounds"),
    "offset that overflows": (tensor(offset=(1 << 63) - 1), "out of bounds"),
    "sizes that overflow": (tensor(size=(1 << 62, 1 << 62), stride=(0, 0)), "damaged"),
    "sizes that overflow, but empty": (tensor(size=(1 << 62, 1 << 62, 0), stride=(1, 1, 1)), "damaged"),
    "negative size": (tensor(size=(-1,)), "64 sizes"),
    "negative stride": (tensor(stride=(-1,)), "64 strides"),
    "size beyond 64 bits": (tensor(size=(1 << 64,)), "64 sizes"),
    "65 dimensions": (tensor(size=(1,) * 65, stride=(1,) * 65), "64 sizes"),
    "fewer strides": (tensor(size=(1, 1)), "as many strides"),
    "a missing entry": (tensor().replace(b"X\x01\x00\x00\x000", b"X\x01\x00\x00\x007"), "an entry 'data/7'"),
    "a path as key": (tensor().replace(b"X\x01\x00\x00\x000", text("../0")), "an entry"),
    "gradients of integers": (tensor(numel=1, size=(1,), kind=b"LongStorage", rest=REQUIRES_GRAD), "dtype that has gradients"),
    "hooks": (tensor(rest=b"\x89}K\x01K\x02s"), "backward hooks"),
    "metadata": (tensor(rest=HOOKS + b"}" + text("evil") + b"Ns"), "metadata conj and neg"),
    "booleans other than 0 and 1": (tensor(numel=8, size=(8,), kind=b"BoolStorage"), "0 and 1"),
    "another dtype of a storage": (b"\x80\x02(" + storage() + storage(numel=2, kind=b"LongStorage") + b"t.", "one size"),
    "unknown location": (tensor().replace(b"X\x03\x00\x00\x00cpu", text("moon")), "load|moon"),
}  # fmt: skip


@pytest.mark.parametrize("name", PICKLES)
def test_pickles(torch, name):
    data, match = PICKLES[name]
    refuse(torch, file_of(data), match)


@pytest.mark.parametrize("name", TENSORS)
def test_tensors(torch, name):
    data, match = TENSORS[name]
    if name == "unknown location":
        with pytest.raises(RuntimeError, match="restore data location"):
            torch.load(io.BytesIO(file_of(data)))
        return
    refuse(torch, file_of(data, b"\2" * 8), match)


def test_the_building_blocks_load(torch):
    assert torch.load(io.BytesIO(file_of(tensor()))).tolist() == [0, 0]
    assert torch.load(io.BytesIO(file_of(tensor(size=(2, 2), stride=(1, 0))))).tolist() == [[0, 0], [0, 0]]
    huge = torch.load(io.BytesIO(file_of(tensor(size=(1 << 40,), stride=(0,)))))  # takes no memory, as in PyTorch
    assert huge.shape == (1 << 40,) and huge[5].item() == 0


def test_time_and_memory(torch):
    """Files whose loading could take exponential or quadratic time, or more memory than a small multiple of their size."""
    count = 9_000
    nested_key = b"\x80\x02}" + b"K\x01" + b"\x85" * 30_000 + b"Ns."
    doubled_key = b"\x80\x02}K\x01" + b"2\x86" * 60 + b"Ns."
    # hash(k * (2**61 - 1)) == 0
    equal_hashes = b"\x80\x02}(" + b"".join(number(k * (2**61 - 1)) + b"N" for k in range(count)) + b"u."
    tuples = b"\x80\x02}(" + b"".join(number(k) + b"\x85N" for k in range(count)) + b"u."
    for data, match in (
        (nested_key, "a larger one"),
        (doubled_key, "a larger one"),
        (equal_hashes, "64 bits"),
        (tuples, "tuples with numbers"),
    ):
        refuse(torch, file_of(data), match)
    deep = b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b"."
    loaded = torch.load(io.BytesIO(file_of(deep)))
    del loaded
    words = b"\x80\x02}(" + b"".join(text(f"w{k}") + text(f"v{k}") + b"\x86K\x01" for k in range(count)) + b"u."
    assert len(torch.load(io.BytesIO(file_of(words)))) == count
    shared = file_of(
        b"\x80\x02](" + tensor()[2:-1].replace(b"Q", b"Qq\x01", 1) + b"".join(b"2" for _ in range(1000)) + b"e."
    )
    assert len(torch.load(io.BytesIO(shared))) == 1001
    for data in (
        b"\x80\x02]" + b"(l" * 20_000 + b"0" * 20_000 + b".",
        b"\x80\x02N" + b"r\xff\xff\xff\xffr\x00\x00\x00\x80" * 1000 + b".",
    ):
        tracemalloc.start()
        torch.load(io.BytesIO(file_of(data)))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 200 * len(data) + MIB


def test_mutations(torch):
    inputs = itertools.islice(mutations(seeds(torch), seed=7), 500)
    assert [(len(data), fault) for data in inputs if (fault := fault_of(torch, data))] == []


@pytest.mark.parametrize("legacy", [False, True])
def test_truncated(torch, legacy):
    buffer = io.BytesIO()
    torch.save({"w": torch.arange(6.0), "n": [1, "text"]}, buffer, _use_new_zipfile_serialization=not legacy)
    data = buffer.getvalue()
    for length in range(0, len(data), 3 if legacy else 17):
        refuse(torch, data[:length])
    refuse(torch, data[:-1])


@pytest.mark.parametrize("entry", ["archive/data.pkl", "archive/data/0"])
def test_compressed_entries(torch, entry):
    """A zip bomb: 64 MB in 64 KB."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        if entry != "archive/data.pkl":
            archive.writestr("archive/data.pkl", tensor(numel=1 << 24, size=(1 << 24,)), zipfile.ZIP_STORED)
        with archive.open(entry, "w", force_zip64=True) as file:
            for _ in range(64):
                file.write(bytes(MIB))
    tracemalloc.start()
    try:
        refuse(torch, out.getvalue(), "neither compressed")
        assert tracemalloc.get_traced_memory()[1] < 4 * MIB
    finally:
        tracemalloc.stop()


def directory_entry(data: bytes, name: bytes) -> int:
    """Where an entry of the directory begins."""
    place = data.rindex(name)
    return data.rindex(b"PK\x01\x02", 0, place)


def test_declared_sizes(torch):
    data = file_of(tensor())
    place = directory_entry(data, b"archive/data/0")
    for size in (2**31, 2**32 - 2, 2**32 - 1):
        refuse(torch, data[: place + 20] + struct.pack("<II", size, size) + data[place + 28 :])
    large = struct.pack("<HHQQ", 1, 16, 2**63, 2**63)  # an extra field for large entries
    changed = (
        data[: place + 20]
        + b"\xff" * 8
        + data[place + 28 : place + 30]
        + struct.pack("<H", 20)
        + data[place + 32 : place + 60]
        + large
    )
    end = data.rindex(b"PK\x05\x06")
    size, offset = struct.unpack_from("<II", data, end + 12)
    refuse(
        torch,
        changed + data[end : end + 12] + struct.pack("<II", size + 20, offset) + data[end + 20 :],
        "within the file",
    )
    for at, form, value in ((10, "<H", 9000), (12, "<I", 2**31), (16, "<I", 2**31), (12, "<I", 2**32 - 1)):
        out = bytearray(data)
        struct.pack_into(form, out, end + at, value)
        refuse(torch, bytes(out))


def test_overlapping_entries(torch):
    data = file_of(tensor(), more=[("archive/data/1", bytes(8))])
    first, last = directory_entry(data, b"archive/data/0"), directory_entry(data, b"archive/data/1")
    refuse(torch, data[: last + 42] + data[first + 42 : first + 46] + data[last + 46 :], "overlap")


NAMES = [
    "../../etc/passwd",
    "/archive/data/1",
    "archive/../x",
    "archive//x",
    "archive",
    "archive/",
    "other/x",
    "archive/a\\b",
    "archive/.",
]


@pytest.mark.parametrize("name", NAMES)
def test_names(torch, name):
    refuse(torch, file_of(tensor(), more=[(name, b"x")]), "names of files in a folder|one folder")


def test_entries(torch):
    entries = entries_of(file_of(tensor()))
    refuse(torch, archive_of([*entries, entries[1]]), "each entry once")
    refuse(torch, archive_of(entries[1:]), "an entry data.pkl")
    refuse(torch, archive_of([*entries, ("archive/constants.pkl", b"x")]), "TorchScript")
    data = file_of(tensor())
    refuse(torch, data.replace(bytes(8) + b"PK", b"\1" + bytes(7) + b"PK"), "checksum")


def test_legacy_files(torch):
    head = b"".join(pickle.dumps(v, 2) for v in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}))

    def legacy(data: bytes, keys=("0",), rest: bytes = struct.pack("<q", 2) + bytes(8)) -> bytes:
        return head + data.replace(b"tQ", b"NtQ") + pickle.dumps(list(keys), 2) + rest

    assert torch.load(io.BytesIO(legacy(tensor()))).tolist() == [0, 0]
    for data, match in (
        (legacy(tensor(), rest=struct.pack("<q", 1 << 62) + bytes(8)), "elements of a storage in the file"),
        (legacy(tensor(), rest=struct.pack("<q", -1) + bytes(8)), "elements of a storage in the file"),
        (legacy(tensor(), rest=struct.pack("<q", 1) + bytes(8)), "out of bounds"),
        (legacy(tensor(), keys=()), "bytes of each storage"), (legacy(tensor(), keys=("0", "0")), "each storage once"),
        (legacy(tensor(), keys=("7",)), "each storage once"), (legacy(tensor())[:-1], "elements of a storage"),
        (head.replace(b"\xe9\x03", b"\xea\x03") + b"N.", "protocol version"), (b"\x80\x02N.", "magic number"),
        (b"\x80\x04\x95" + b"\xff" * 8 + b"N.", "magic number"), (b"\x80\x02cos\nsystem\n.", "plain data"),
        (struct.pack("<Q", 2) + b"{}", "safetensors"), (b"this is a text that is longer than a header", "another format"), (b"", "empty"),
    ):  # fmt: skip
        refuse(torch, data, match)


def test_tar_files(torch):
    from tests.python.files.test_files import FIXTURES

    data = (FIXTURES / "tar.pt").read_bytes()
    assert torch.load(io.BytesIO(data))["w"].tolist() == [[0, 1, 2], [3, 4, 5]]
    for old, new in (
        (b"storages\0", b"../st\0es\0"), (struct.pack("<q", 6), struct.pack("<q", 1 << 60)),
        (struct.pack("<ii", 2, 0), struct.pack("<ii", 2**30, 0)),
        (struct.pack("<qqqq", 2, 3, 3, 1), struct.pack("<qqqq", 2, 3, 3, 9)), (b"\nFloatStorage\n", b"\nEvilsStorage\n"),
    ):  # fmt: skip
        assert old in data
        refuse(torch, data.replace(old, new))


def test_a_file_that_shrinks(torch, tmp_path):
    """A file that is truncated after its directory was read."""
    from teletensor.serialization._archive import Archive, FileSource

    path = tmp_path / "x"
    path.write_bytes(file_of(tensor()))
    with open(path, "rb", buffering=0) as file:
        archive = Archive(FileSource(file))
        os.truncate(path, 10)
        with pytest.raises(torch.serialization.LoadError, match="expected"):
            archive.read("data/0")


def test_many_small_values(torch):
    value = {f"k{i}": [i, str(i), (i, float(i))] for i in range(5_000)}
    buffer = io.BytesIO()
    torch.save(value, buffer)
    assert torch.load(io.BytesIO(buffer.getvalue())) == value
