"""Writes the files in fixtures/ with PyTorch, and fixtures/expected.json, which describes what they contain:

python -m tests.python.files.record
"""

from __future__ import annotations

import io
import json
import pickle
import re
import struct
import tarfile
import warnings
from collections import OrderedDict
from pathlib import Path

import torch

from tests.python.files.cases import CASES, LEGACY, ODD, describe, model

FIXTURES = Path(__file__).parent / "fixtures"


def relative_paths(pickled: bytes) -> bytes:
    """Shortens the paths of sources, which the legacy format stores, to what follows site-packages/."""
    path = re.compile(rb"X....(?:/[ -~]*?/site-packages/)([ -~]*?\.py)(?=q)", re.DOTALL)
    return path.sub(lambda m: b"X" + struct.pack("<I", len(m[1])) + m[1], pickled)


def more() -> dict:
    """Objects that only PyTorch saves."""
    z = torch.tensor([1 + 2j, 3 - 4j])
    return {
        "conj": {"z": z, "conj": z.conj(), "neg": torch._neg_view(torch.arange(3.0))[1:], "part": z.conj()[1:]},
        "module": model(torch),
        "sparse": torch.eye(3).to_sparse(),
        "numpy": {"a": __import__("numpy").arange(3)},
        "typed_storage": [torch.arange(3.0).storage()],
        "untyped_storage": [torch.arange(3, dtype=torch.uint8).untyped_storage()],
    }


def tar_file() -> bytes:
    """A file in the format of PyTorch before 0.1.10, which no version writes any more."""

    def pickled(value) -> bytes:
        return pickle.dumps(value, 2)

    storages = pickled(2)
    storages += pickled((11, "cpu", torch.FloatStorage)) + struct.pack("<q6f", 6, *range(6))
    storages += pickled((12, "cpu", torch.LongStorage)) + struct.pack("<q3q", 3, 7, 8, 9)
    storages += pickled([(13, 11, 2, 3)])  # a view of elements 2 to 4 of storage 11

    def tensor(key, storage, kind, size, stride, offset) -> bytes:
        dims = len(size)
        return pickled((key, storage, kind)) + struct.pack(f"<ii{dims}q{dims}qq", dims, 0, *size, *stride, offset)

    tensors = pickled(3)
    tensors += tensor(21, 11, torch.FloatTensor, (2, 3), (3, 1), 0)
    tensors += tensor(22, 12, torch.LongTensor, (2,), (1,), 1)
    tensors += tensor(23, 13, torch.FloatTensor, (3,), (1,), 0)

    class Pickler(pickle.Pickler):
        def persistent_id(self, obj):
            return obj[1] if isinstance(obj, tuple) and obj and obj[0] == "tensor" else None

    buffer = io.BytesIO()
    Pickler(buffer, 2).dump(OrderedDict(w=("tensor", 21), n=("tensor", 22), v=("tensor", 23), step=3))
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:", format=tarfile.PAX_FORMAT) as tar:
        for name, data in (
            ("sys_info", pickled({})),
            ("pickle", buffer.getvalue()),
            ("tensors", tensors),
            ("storages", storages),
        ):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def main() -> None:
    warnings.simplefilter("ignore")
    FIXTURES.mkdir(exist_ok=True)
    expected = {}
    for name, make in CASES.items():
        torch.save(make(torch), FIXTURES / f"{name}.pt")
        expected[name] = describe(
            torch, torch.load(FIXTURES / f"{name}.pt", map_location=None if name == "meta" else "cpu")
        )
        if name in LEGACY:
            torch.save(make(torch), FIXTURES / f"{name}.legacy.pt", _use_new_zipfile_serialization=False)
            expected[f"{name}.legacy"] = describe(torch, torch.load(FIXTURES / f"{name}.legacy.pt"))
    for name, make in ODD.items():
        torch.save(make(torch), FIXTURES / f"{name}.pt")
        expected[name] = describe(torch, make(torch))
    for name, value in more().items():
        torch.save(value, FIXTURES / f"{name}.pt")
        if name == "conj":
            expected[name] = describe(torch, torch.load(FIXTURES / f"{name}.pt"))
    legacy = io.BytesIO()
    torch.save(model(torch), legacy, _use_new_zipfile_serialization=False)
    (FIXTURES / "module.legacy.pt").write_bytes(relative_paths(legacy.getvalue()))
    torch.serialization.set_crc32_options(False)
    torch.save(CASES["views"](torch), FIXTURES / "views.no_checksums.pt")
    expected["views.no_checksums"] = expected["views"]
    (FIXTURES / "tar.pt").write_bytes(tar_file())
    expected["tar"] = describe(torch, torch.load(FIXTURES / "tar.pt", weights_only=False))
    (FIXTURES / "expected.json").write_text(json.dumps(expected, indent=None, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
