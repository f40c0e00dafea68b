"""Data sets that read files: values, shares of workers and ranks, damaged and hostile files."""

import gzip
import io
import json
import struct
import subprocess
import sys
import tarfile
import tracemalloc
import warnings
import zipfile

import pytest

np = pytest.importorskip("numpy")


@pytest.fixture
def arrays():
    """Arrays of ten entries."""
    x = np.arange(60, dtype=np.float32).reshape(10, 2, 3)
    return {"x": x, "fortran": np.asfortranarray(x[:, 0]), "y": np.arange(10, dtype=np.int16), "name": np.array(list("abcdefghij"))}


def same(samples):
    return samples


def write_safetensors(path, tensors):
    """A safetensors file of (dtype, shape, bytes) by name."""
    header, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def test_arrays(torch, tmp_path, arrays):
    from teletensor.utils.data import readers

    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    np.savez(tmp_path / "stored.npz", **arrays)
    np.savez_compressed(tmp_path / "packed.npz", **arrays)
    bits = (arrays["x"].view(np.uint32) >> 16).astype(np.uint16)
    write_safetensors(
        tmp_path / "t.safetensors",
        {"x": ("F32", [10, 2, 3], arrays["x"].tobytes()), "b": ("BF16", [10, 2, 3], bits.tobytes()), "e": ("I8", [10, 0], b"")},
    )
    npy = readers.NpyDataset(*(tmp_path / f"{name}.npy" for name in arrays))
    stored, packed = readers.NpzDataset(tmp_path / "stored.npz"), readers.NpzDataset(tmp_path / "packed.npz", ["y", "x"])
    tensors = readers.SafetensorsDataset(tmp_path / "t.safetensors")
    assert all(isinstance(a, np.memmap) for a in (*npy.arrays, *stored.arrays.values(), tensors.arrays["x"]))
    assert list(packed.arrays) == ["y", "x"] and len(npy) == len(stored) == len(tensors) == 10
    for i in (0, 7, -1):
        for name, entry in zip(arrays, npy[i]):
            np.testing.assert_array_equal(entry, arrays[name][i])
            np.testing.assert_array_equal(stored[i][name], arrays[name][i])
        np.testing.assert_array_equal(packed[i]["x"], arrays["x"][i])
        np.testing.assert_array_equal(tensors[i]["x"], arrays["x"][i])
        np.testing.assert_array_equal(tensors[i]["b"], (bits[i].astype(np.uint32) << 16).view(np.float32))
        assert tensors[i]["e"].shape == (0,) and tensors[i]["b"].dtype == np.float32
    for dataset in (tensors, packed):
        expected = [{k: v.tolist() for k, v in b.items()} for b in torch.utils.data.DataLoader(dataset, 4)]
        loader = torch.utils.data.DataLoader(dataset, 4, num_workers=1)
        assert [{k: v.tolist() for k, v in b.items()} for b in loader] == expected
    import pickle

    again = pickle.loads(pickle.dumps(stored))  # opens the file again instead of copying the arrays
    assert isinstance(again.arrays["x"], np.memmap) and again[3]["y"] == 3 and len(pickle.dumps(stored)) < 400


def damaged_arrays(folder, arrays):
    """(class name, path, message) of files that are rejected."""
    rows = []

    def add(kind, name, data, message):
        (folder / name).write_bytes(data)
        rows.append((kind, folder / name, message))

    buffer = io.BytesIO()
    np.save(buffer, arrays["x"])
    good = buffer.getvalue()
    add("NpyDataset", "cut.npy", good[:-10], "declares shape")
    add("NpyDataset", "text.npy", b"hello", "cut|magic|EOF|header")
    add("NpyDataset", "huge.npy", good.replace(b"(10, 2, 3), ", b"(99999999,)," ), "declares shape")
    buffer = io.BytesIO()
    np.save(buffer, np.array([{}], dtype=object), allow_pickle=True)
    add("NpyDataset", "object.npy", buffer.getvalue(), "objects")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("x.npy", good)
        archive.writestr("short.npy", good[:-1])
    add("NpzDataset", "short.npz", buffer.getvalue(), "declares shape")
    add("NpzDataset", "cut.npz", buffer.getvalue()[:-30], "zip")
    header = json.dumps({"x": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
    for name, data, message in (
        ("cut", struct.pack("<Q", len(header)) + header + b"123", "does not match its offsets"),
        ("length", struct.pack("<Q", 1 << 62) + header, "expected a header of at most"),
        ("json", struct.pack("<Q", 3) + b"{{{", "Expecting"),
        ("dtype", struct.pack("<Q", len(header)) + header.replace(b"F32", b"Z32") + bytes(16), "has the dtype Z32"),
        ("shape", struct.pack("<Q", len(header)) + header.replace(b"[4]", b"[9]") + bytes(16), "does not match its offsets"),
        ("list", struct.pack("<Q", 2) + b"[]", "JSON object"),
    ):
        add("SafetensorsDataset", f"{name}.safetensors", data, message)
    return rows


def test_damaged_arrays(tmp_path, arrays):
    from teletensor.utils.data import readers

    for kind, path, message in damaged_arrays(tmp_path, arrays):
        with pytest.raises(ValueError, match=rf"(?s)\[{kind}\] .*{path.name}.*({message})"):
            getattr(readers, kind)(path)
    np.save(tmp_path / "a.npy", np.zeros(3))
    np.save(tmp_path / "b.npy", np.zeros(4))
    with pytest.raises(ValueError, match=r"equal length, got the shapes \[\(3,\), \(4,\)\]"):
        readers.NpyDataset(tmp_path / "a.npy", tmp_path / "b.npy")
    with pytest.raises(ValueError, match=r"equal length, got the shapes \[\]"):
        readers.ArrayDataset([])
    np.savez(tmp_path / "c.npz", a=np.zeros(3))
    with pytest.raises(ValueError, match=r"no array 'q', expected one of \['a'\]"):
        readers.NpzDataset(tmp_path / "c.npz", ["q"])


def write_tar(path, files, **options):
    """A tar file of (name, bytes)."""
    with tarfile.open(path, options.pop("mode", "w"), **options) as archive:
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def shard(folder, number, count=4, **options):
    """A shard of samples with a label, text and an array."""
    files = []
    for i in range(count):
        buffer = io.BytesIO()
        np.save(buffer, np.full(3, number * 100 + i, np.float32))
        key = f"d/{number:02}_{i}"
        files += [(f"{key}.cls", str(i).encode()), (f"{key}.txt", "é".encode()), (f"{key}.x.npy", buffer.getvalue())]
        files += [(f"{key}.json", b'{"a": [1, 2]}'), (f"{key}.bin", b"raw")]
    return write_tar(folder / f"s-{number:03}.tar", files, **options)


def keys(samples):
    return [sample["__key__"][2:] for sample in samples]


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_webdataset(torch, tmp_path, form):
    from teletensor.utils.data.readers import WebDataset

    for number in range(3):
        shard(tmp_path, number, format=form)
    long = "n" * 90 + "/" + "k" * (60 if form == tarfile.USTAR_FORMAT else 300)
    write_tar(tmp_path / "s-003.tar", [(f"{long}.txt", b"long")], format=form)
    dataset = WebDataset(tmp_path / "s-{000..003}.tar")
    samples = list(dataset)
    assert keys(samples[:12]) == [f"{n:02}_{i}" for n in range(3) for i in range(4)]
    first = samples[5]
    assert first["cls"] == 1 and first["txt"] == "é" and first["x.npy"].tolist() == [101.0] * 3 and first["bin"] == b"raw"
    assert first["json"] == {"a": [1, 2]} and first["__url__"].endswith("s-001.tar")
    assert samples[12]["__key__"] == long and samples[12]["txt"] == "long"
    raw = next(iter(WebDataset(str(tmp_path / "s-000.tar"), decode=None)))
    assert raw["cls"] == b"0"
    own = next(iter(WebDataset(tmp_path / "s-000.tar", decode={"bin": len, "cls": bytes})))
    assert own["bin"] == 3 and own["cls"] == b"0"
    loader = torch.utils.data.DataLoader(dataset, None, num_workers=2, collate_fn=same)
    assert sorted(keys(loader)[:]) == sorted(keys(samples))
    shares = [keys(WebDataset(tmp_path / "s-{000..002}.tar", rank=r, world_size=2)) for r in range(2)]
    assert [len(s) for s in shares] == [8, 4] and sorted(sum(shares, [])) == keys(samples[:12])


def test_shuffled_webdataset(torch, tmp_path):
    from teletensor.utils.data.readers import WebDataset

    paths = [shard(tmp_path, n) for n in range(4)]
    dataset = WebDataset(paths, shuffle=5, seed=3)
    first = keys(dataset)
    assert sorted(first) == sorted(keys(WebDataset(paths))) and first != sorted(first) and keys(dataset) == first
    dataset.set_epoch(1)
    assert keys(dataset) != first
    gz = write_tar(tmp_path / "z.tar.gz", [("k.txt", b"t")], mode="w:gz")
    assert [s["txt"] for s in WebDataset(gz)] == ["t"]


def test_images_in_shards(torch, tmp_path):
    image = pytest.importorskip("PIL.Image")
    from teletensor.utils.data.readers import WebDataset

    pixels = np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3)
    buffer = io.BytesIO()
    image.fromarray(pixels).save(buffer, "png")
    path = write_tar(tmp_path / "i.tar", [("a.png", buffer.getvalue()), ("b.png", b"no image"), ("c.png", buffer.getvalue())])
    found = next(iter(WebDataset(path)))["png"]
    assert found.dtype == np.uint8 and np.array_equal(found, pixels.transpose(2, 0, 1))
    with pytest.raises(ValueError, match=r"i.tar: b.png: UnidentifiedImageError"):
        list(WebDataset(path))
    with pytest.warns(UserWarning, match=r"skipped: .*i.tar: b.png"):
        assert [s["__key__"] for s in WebDataset(path, on_error="skip")] == ["a", "c"]


def octal(header, begin, end, text):
    """A header with another field and the checksum of the result."""
    header = bytearray(header)
    header[begin:end] = text.ljust(end - begin, b"\0")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


def hostile_shards():
    """(name, bytes, message) of shards that are rejected."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, data in (("a.txt", b"1"), ("b.txt", b"2" * 1000)):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    good = buffer.getvalue()
    header = good[1024:1536]
    base256 = b"\x80" + (1 << 62).to_bytes(11, "big")
    pax = b"31 path=x\nsize=1\n"
    return [
        ("cut in a member", good[: 1536 + 500], "truncated: expected 1000 bytes of member 'b.txt', got 500"),
        ("cut in a header", good[: 1024 + 100], "truncated: expected 412 bytes of a header"),
        ("cut in padding", good[: 1536 + 1000], "truncated: expected 24 bytes of padding"),
        ("huge size", good[:1024] + octal(header, 124, 136, base256), "exceeds the limit of 268435456"),
        ("negative size", good[:1024] + octal(header, 124, 136, b"\xff" * 12), "expected a size that is not negative"),
        ("size in letters", good[:1024] + octal(header, 124, 136, b"abc"), "expected octal digits as the size"),
        ("checksum", good[:1024] + header[:5] + b"?" + header[6:], "checksum does not match"),
        ("no tar", b"x" * 2048, "damaged"),
        ("huge pax header", octal(octal(header, 156, 157, b"x"), 124, 136, b"77777777777"), "extended header of at most"),
        ("pax record", octal(octal(header, 156, 157, b"x"), 124, 136, b"%o" % len(pax)) + pax.ljust(512, b"\0"), "invalid record"),
        (
            "pax size",
            octal(octal(header, 156, 157, b"x"), 124, 136, b"%o" % 12) + b"12 size=1e9\n".ljust(512, b"\0") + header + bytes(1024),
            "expected digits as a pax header's size",
        ),
        ("two members", good[:1024] + good[:1024] + bytes(1024), "two members 'a.txt'"),
        ("skipped member", octal(octal(header, 156, 157, b"S"), 124, 136, b"77777777777"), "truncated: expected 8589934592 bytes"),
    ]


def test_hostile_shards(torch, tmp_path):
    from teletensor.utils.data.readers import WebDataset

    tracemalloc.start()
    for name, data, message in hostile_shards():
        path = tmp_path / f"{name.replace(' ', '_')}.tar"
        path.write_bytes(data)
        with pytest.raises(ValueError, match=message) as raised:
            list(WebDataset(path))
        assert path.name in str(raised.value)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            rest = keys_of(WebDataset([path, path], on_error="skip"))
        assert len(caught) == 2 and set(rest) <= {"a", "b"}
    assert tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()
    loader = torch.utils.data.DataLoader(WebDataset(path), None, num_workers=1)
    with pytest.raises(ValueError, match="(?s)in DataLoader worker process 0.*truncated"):
        list(loader)


def keys_of(dataset):
    return [sample["__key__"] for sample in dataset]


def test_members_that_are_not_samples(tmp_path):
    """Links, devices and folders are skipped; names that leave a folder are only keys; nothing is written."""
    from teletensor.utils.data.readers import WebDataset

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, kind in (("l.txt", tarfile.SYMTYPE), ("h.txt", tarfile.LNKTYPE), ("d", tarfile.DIRTYPE), ("c.txt", tarfile.CHRTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
        for name in ("../../up.txt", "/root.txt", "noextension", ".hidden", "e/.hidden.txt"):
            archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    path = tmp_path / "m.tar"
    path.write_bytes(buffer.getvalue())
    assert keys_of(WebDataset(path)) == ["../../up", "root"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.tar"]
    for data in (gzip.compress(b"x" * 2048)[:-20], b"not gzip"):
        (tmp_path / "b.tar.gz").write_bytes(data)
        with pytest.raises(ValueError, match="b.tar.gz"):
            list(WebDataset(tmp_path / "b.tar.gz"))


def test_rejected_arguments_of_webdataset(tmp_path):
    from teletensor.utils.data.readers import WebDataset

    rows = (
        ({"urls": []}, ValueError, "at least one shard"),
        ({"urls": "http://host/x.tar"}, NotImplementedError, "expected local files"),
        ({"urls": "pipe:cat x"}, NotImplementedError, "expected local files"),
        ({"urls": "x-{9..1}.tar"}, ValueError, "increasing range"),
        ({"urls": "x-{0..9999999}.tar"}, ValueError, "increasing range"),
        ({"urls": "x.tar", "on_error": "ignore"}, ValueError, "'raise' or 'skip'"),
        ({"urls": "x.tar", "shuffle": -1}, ValueError, "shuffle buffer"),
        ({"urls": "x.tar", "rank": 1}, ValueError, "both rank and world_size"),
        ({"urls": "x.tar", "rank": 2, "world_size": 2}, ValueError, r"rank in \[0, 2\)"),
    )
    for options, kind, message in rows:
        with pytest.raises(kind, match=message):
            WebDataset(**options)
    with pytest.raises(FileNotFoundError):
        list(WebDataset(tmp_path / "none.tar"))


@pytest.mark.skipif("pyarrow" in sys.modules, reason="pyarrow is installed")
def test_parquet_without_pyarrow(tmp_path):
    from teletensor.utils.data.readers import ParquetDataset

    try:
        import pyarrow  # noqa: F401
    except ImportError:
        with pytest.raises(ImportError, match=r"\[ParquetDataset\] .* needs the package pyarrow: pip install pyarrow"):
            ParquetDataset(tmp_path / "x.parquet")


def test_parquet(torch, tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    from teletensor.utils.data.readers import ParquetDataset

    table = pa.table({
        "i": list(range(10)), "f": pa.array([i / 2 for i in range(10)], pa.float32()), "s": [str(i) for i in range(10)],
        "v": [[i, i + 1] for i in range(10)], "n": [None if i == 3 else i for i in range(10)],
    })  # fmt: skip
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=3)
    dataset = ParquetDataset(tmp_path / "a.parquet")
    rows = list(dataset)
    assert len(dataset) == 10 and [int(r["i"]) for r in rows] == list(range(10))
    assert rows[4]["f"].dtype == np.float32 and rows[4]["s"] == "4" and rows[4]["v"].tolist() == [4, 5] and rows[3]["n"] is None
    chosen = ParquetDataset([tmp_path / "a.parquet"], ["i", "f"])
    loader = torch.utils.data.DataLoader(chosen, 2, num_workers=2)
    assert sorted(i for b in loader for i in b["i"].tolist()) == list(range(10)) and set(next(iter(chosen))) == {"i", "f"}
    parts = [[int(r["i"]) for r in ParquetDataset(tmp_path / "a.parquet", rank=k, world_size=2)] for k in range(2)]
    assert parts == [[0, 1, 2, 6, 7, 8], [3, 4, 5, 9]]
    mixed = ParquetDataset(tmp_path / "a.parquet", shuffle=True, seed=1)
    order = [int(r["i"]) for r in mixed]
    assert sorted(order) == list(range(10)) and order != sorted(order) and [int(r["i"]) for r in mixed] == order
    mixed.set_epoch(1)
    assert [int(r["i"]) for r in mixed] != order
    (tmp_path / "b.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"\[ParquetDataset\] .*b.parquet"):
        ParquetDataset(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match="no column 'q'"):
        ParquetDataset(tmp_path / "a.parquet", ["q"])
    with pytest.raises(FileNotFoundError):
        ParquetDataset(tmp_path / "none.parquet")


def test_readers_are_imported_at_their_first_use():
    code = "import teletensor, sys; import teletensor.utils.data; print('numpy' in sys.modules, 'pyarrow' in sys.modules)"
    from tests.conftest import client_environment

    out = subprocess.run([sys.executable, "-c", code], env=client_environment(), capture_output=True, text=True, check=True)
    assert out.stdout == "False False\n"
