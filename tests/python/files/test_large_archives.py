"""Archives of more than 4 GB and of more than 65535 entries, in sparse files."""

from __future__ import annotations

import struct
import zipfile

import pytest

GB = 1 << 30


def write_sparse(file, entries: list[tuple[str, int, bytes]], layout) -> None:
    """Writes entries of (name, size, first bytes), whose other bytes are zeros that take no space."""
    checksums = []
    for name, size, start in entries:
        file.write(layout.add(name, size))
        file.write(start)
        file.seek(size - len(start), 1)
        checksums.append(0)
        file.write(layout.descriptor(0))
    file.write(layout.directory(checksums))


@pytest.mark.parametrize("sizes", [(5 * GB, 8), (8, 4 * GB - 1, 8), (3 * GB, 3 * GB, 8), (4 * GB - 2, 8)])
def test_large_entries(torch, tmp_path, sizes):
    from teletensor.serialization._archive import Archive, FileSource
    from teletensor.serialization._archive_writer import Layout

    entries = [(f"data/{i}", size, struct.pack("<q", i + 1)) for i, size in enumerate(sizes)]
    with open(tmp_path / "x", "wb+") as file:
        write_sparse(file, entries, Layout("x"))
        archive = Archive(FileSource(file.seek(0) or file))
        for name, size, start in entries:
            begin, length, _ = archive.range(name)
            file.seek(begin)
            assert (length, file.read(8), begin % 64) == (size, start, 0)
        assert archive.read(entries[-1][0]) == entries[-1][2]
        with zipfile.ZipFile(file) as other:
            assert [(i.filename, i.file_size) for i in other.infolist()] == [
                (f"x/{name}", size) for name, size, _ in entries
            ]


def test_many_entries(torch, tmp_path):
    from teletensor.serialization._archive import Archive, FileSource
    from teletensor.serialization._archive_writer import Layout

    entries = [(f"data/{i}", 1, b"x") for i in range(66_000)]
    with open(tmp_path / "x", "wb+") as file:
        write_sparse(file, entries, Layout("x", 1))
        archive = Archive(FileSource(file.seek(0) or file))
        assert len(archive.names()) == 66_000 and bytes(archive.read("data/65999")) == b"x"
        with zipfile.ZipFile(file) as other:
            assert len(other.namelist()) == 66_000


def test_pytorch_reads_large_files(torch, tmp_path):
    """An entry of 5 GB before another: the numbers of the directory are in its extra fields."""
    import subprocess

    from tests.python.files.test_files import PEER

    if not PEER.exists():
        pytest.skip("needs PyTorch")
    from teletensor.serialization import _save
    from teletensor.serialization._archive_writer import Layout

    small_entries, _ = _save.archive_entries([torch.zeros(1, dtype=torch.uint8), torch.arange(3.0)], 2)
    pickle_data = small_entries[0][1]
    one = pickle_data.index(b"ByteStorage")
    place = pickle_data.index(b"K\x01", one)
    changed = pickle_data[:place] + b"\x8a\x05" + (5 * GB).to_bytes(5, "little") + pickle_data[place + 2 :]
    entries = [("data.pkl", len(changed), changed), ("byteorder", 6, b"little"),
               ("data/0", 5 * GB, b"\7"), ("data/1", 12, struct.pack("<3f", 0, 1, 2)),
               ("version", 2, b"3\n")]  # fmt: skip
    with open(tmp_path / "x", "wb") as file:
        write_sparse(file, entries, Layout("x"))
    script = "import torch, sys\na, b = torch.load(sys.argv[1], mmap=True)\nprint(a.item(), a.untyped_storage().nbytes(), b.tolist())"
    run = subprocess.run([PEER, "-c", script, tmp_path / "x"], capture_output=True, text=True)
    assert run.stdout == f"7 {5 * GB} [0.0, 1.0, 2.0]\n", run.stderr
