"""The files to which torch.save writes: replacement, kinds of files, kills and full disks."""

from __future__ import annotations

import gzip
import io
import os
import signal
import stat
import subprocess
import sys
import zipfile

import pytest

from tests.conftest import client_environment


def test_files(torch, tmp_path):
    """Files that only write, files that begin elsewhere, buffers, and paths of other types."""

    class WriteOnly:
        def __init__(self):
            self.data = b""

        def write(self, data):
            self.data += bytes(data)

    out = WriteOnly()
    torch.save({"x": torch.arange(3)}, out)
    assert torch.load(io.BytesIO(out.data))["x"].tolist() == [0, 1, 2]
    for options in ({}, {"_use_new_zipfile_serialization": False}):
        shifted = io.BytesIO(b"12345")
        shifted.seek(5)
        torch.save(torch.arange(3), shifted, **options)
        shifted.seek(5)
        assert torch.load(shifted).tolist() == [0, 1, 2]
    torch.save(torch.ones(1), str(tmp_path / "käse.pt"))
    assert torch.load(tmp_path / "käse.pt").item() == 1
    with open(tmp_path / "b", "wb") as file:
        torch.save(torch.ones(2), file)
    with open(tmp_path / "b", "rb") as file:
        assert torch.load(file).tolist() == [1, 1]
    torch.save(torch.ones(1), "/dev/null")
    packed = gzip.compress((tmp_path / "b").read_bytes())
    assert torch.load(gzip.GzipFile(fileobj=io.BytesIO(packed))).tolist() == [1, 1]
    large = torch.arange(3 << 20)  # several pieces, and more than are requested ahead
    torch.save([large, large.double(), large.clone()], tmp_path / "large")
    assert all(t.equal(large) for t in torch.load(tmp_path / "large", mmap=True))
    assert zipfile.ZipFile(tmp_path / "large").namelist()[0] == "large/data.pkl"


def test_failed_tensors(torch, tmp_path):
    torch.save(1, tmp_path / "x")
    failed = torch.arange(3)[torch.tensor([7])]
    with pytest.raises(IndexError):
        torch.save([torch.ones(3), failed], tmp_path / "x")
    assert torch.load(tmp_path / "x") == 1 and os.listdir(tmp_path) == ["x"]


def test_replacement(torch, tmp_path):
    """Permissions and links are kept, and nothing is left beside the file."""
    path = tmp_path / "x"
    torch.save(1, path)
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
    path.chmod(0o640)
    (tmp_path / "link").symlink_to("x")
    torch.save(2, tmp_path / "link")
    assert torch.load(path) == 2 and (tmp_path / "link").is_symlink() and stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(os.listdir(tmp_path)) == ["link", "x"]
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE)
    torch.save(3, tmp_path / "pipe")
    assert torch.load(io.BytesIO(reader.communicate()[0])) == 3 and stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


KILLED = """
import os, signal, sys
import teletensor as torch
from teletensor.serialization import _archive_writer, _replacement
stage, path = sys.argv[1:]
def kill(*_): os.kill(os.getpid(), signal.SIGKILL)
if stage == "entry":
    _archive_writer.Layout.descriptor = kill
elif stage == "directory":
    _archive_writer.Layout.directory = kill
elif stage == "sync":
    _replacement.os.fsync = kill
elif stage == "rename":
    _replacement.os.replace = kill
elif stage == "after":
    _replacement._sync_folder = kill
torch.save({"x": torch.ones(100)}, path)
"""


@pytest.mark.parametrize("stage", ["entry", "directory", "sync", "rename", "after"])
def test_killed_while_saving(torch, tmp_path, stage):
    path = tmp_path / "x.pt"
    torch.save({"x": torch.zeros(100)}, path)
    environment = client_environment()
    run = subprocess.run([sys.executable, "-c", KILLED, stage, path], env=environment, capture_output=True, text=True)
    assert run.returncode == -signal.SIGKILL, run.stderr
    assert torch.load(path)["x"].sum().item() == (100 if stage == "after" else 0)


def test_a_full_disk(torch, tmp_path):
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    with pytest.raises(OSError, match="No space left"):
        torch.save(torch.ones(1 << 19), "/dev/full")
