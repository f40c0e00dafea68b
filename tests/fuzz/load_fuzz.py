"""Fuzzes teletensor.load: damaged files load or raise LoadError, within limits of time and memory.

    python -m tests.fuzz.load_fuzz --seconds 20 --seed 1

Starts a private engine. Prints the number of inputs; exits with 1 if an input failed otherwise, and keeps each such
input in the folder --findings. If the process crashes, the input is in `running.tt` there.
"""

from __future__ import annotations

import io
import pickletools
import random
import struct
import sys
import time
import warnings
import zipfile
from pathlib import Path

from .mutated_files import run

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 20.0  # per input, on a machine with other load


def entries_of(data: bytes) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def archive_of(entries: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # duplicate names cause warnings
        for name, data in entries:
            archive.writestr(zipfile.ZipInfo(name), data, compression)
    return out.getvalue()


def seeds(torch) -> list[bytes]:
    """Files of each format: each kind of value once, and tensors of several dtypes."""
    base = torch.arange(6.0)
    objects = [
        {},
        [1, -2.5, "text", None, True, float("nan"), (1, 2), {3, 4}, torch.float32, torch.device("cpu"), b"bytes", 1 << 80, torch.Size([1])],
        {"w": base.reshape(2, 3), "v": base[2:], "b": torch.tensor([True, False]), 5: torch.tensor(7)},
        torch.nn.BatchNorm1d(2).state_dict() | {"p": torch.nn.Parameter(torch.zeros(2))},
        {"empty": torch.zeros(0, 3), "half": torch.ones(4).half(), "c": torch.tensor([1j]), "m": [torch.ones(1).to(torch.float8_e5m2)]},
    ]
    written = []
    for value in objects:
        for options in ({}, {"pickle_protocol": 4}, {"_use_new_zipfile_serialization": False}):
            out = io.BytesIO()
            torch.save(value, out, **options)
            written.append(out.getvalue())
    return [*written, (ROOT / "tests/python/files/fixtures/tar.pt").read_bytes()]


NUMBERS = [0, 1, 2, 7, 64, 65, 255, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**62, 2**63 - 1, 2**63, 2**64 - 1]
OPCODES = [bytes([code]) for code in (*b"(012NJKMILFGXTUBC)]}ltdaesuqrhjcRbQo.ip", *range(0x80, 0x97))]
NAMES = [
    "torch._utils\n_rebuild_tensor_v2\n", "torch._utils\n_rebuild_tensor_v3\n", "torch._utils\n_rebuild_parameter\n",
    "torch\nFloatStorage\n", "torch\nBoolStorage\n", "torch.storage\nUntypedStorage\n", "collections\nOrderedDict\n",
    "builtins\nset\n", "builtins\nbytearray\n", "_codecs\nencode\n", "torch\nSize\n", "torch\ndevice\n", "os\nsystem\n",
    "torch\nfloat64\n", "torch\nTensor\n", "torch._tensor\n_rebuild_from_type_v2\n", "torch._utils\n_rebuild_meta_tensor_no_storage\n",
]  # fmt: skip


ENTRY_NAMES = [
    "../x", "/archive/data/0", "archive", "archive/", "archive//x", "archive/./x", "other/data/0", "archive/constants.pkl", "a\\b",
]  # fmt: skip


def any_instruction(rng: random.Random) -> bytes:
    kind = rng.randrange(7)
    if kind == 0:
        return rng.choice(OPCODES)
    if kind == 1:
        return b"c" + rng.choice(NAMES).encode()
    if kind == 2:
        return b"J" + struct.pack("<I", rng.choice(NUMBERS) % 2**32)
    if kind == 3:
        number = rng.choice(NUMBERS).to_bytes(9, "little")
        return b"\x8a\x09" + number
    if kind == 4:
        return rng.choice([b"X", b"B", b"T"]) + struct.pack("<I", rng.choice(NUMBERS) % 2**32)
    if kind == 5:
        return rng.choice([b"h", b"q", b"K"]) + bytes([rng.randrange(256)])
    return rng.choice([b"\x85" * 300, b"(" * 200, b"2" * 1000, b"2\x86" * 60, b"]" * 100, b"(lp0\n", b"}q\x00h\x00s"])


def mutated_pickle(data: bytes, rng: random.Random) -> bytes:
    """The pickle with instructions inserted, removed, repeated or replaced."""
    places = [0]
    try:
        places = [at for _, _, at in pickletools.genops(data)]
    except Exception:  # noqa: BLE001 - it was mutated before
        pass
    place, end = rng.choice(places), rng.choice(places)
    action = rng.randrange(4)
    if action == 0:
        return data[:place] + any_instruction(rng) + data[place:]
    if action == 1:
        return data[:place] + data[max(end, place) :]
    if action == 2:
        return data[:place] + data[place : max(end, place)] * rng.randrange(1, 4) + data[place:]
    out = bytearray(data)
    out[place : place + 1] = any_instruction(rng)
    return bytes(out)


def with_mutated_entries(data: bytes, rng: random.Random) -> bytes:
    """An archive with a changed pickle, or with entries renamed, repeated, truncated or compressed."""
    try:
        entries = entries_of(data)
    except zipfile.BadZipFile:
        return mutated_pickle(data, rng)
    action = rng.randrange(8)
    place = rng.randrange(len(entries))
    if action < 5:
        place = next(i for i, (name, _) in enumerate(entries) if name.endswith("data.pkl"))
        for _ in range(rng.randrange(1, 4)):
            entries[place] = (entries[place][0], mutated_pickle(entries[place][1], rng))
    name, content = entries[place]
    if action == 5:
        entries[place] = (rng.choice(ENTRY_NAMES), content)
    elif action == 6:
        entries.append((name, content))
    elif action == 7:
        entries[place] = (name, content[: rng.randrange(len(content) + 1)] or b"\0" * rng.randrange(5_000_000))
    return archive_of(entries, zipfile.ZIP_DEFLATED if rng.random() < 0.1 else zipfile.ZIP_STORED)


def with_mutated_bytes(data: bytes, rng: random.Random) -> bytes:
    """The file with some bytes changed, removed, repeated, or set to boundary values."""
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        place = rng.randrange(len(out)) if out else 0
        if rng.random() < 0.5:  # in the directory at the end, which holds most of the structure
            place = max(len(out) - 1 - rng.randrange(200), 0)
        action = rng.randrange(7)
        if action == 0:
            del out[place:]
        elif action == 1:
            del out[place : place + rng.randrange(1, 40)]
        elif action == 2:
            out[place:place] = out[max(place - rng.randrange(1, 100), 0) : place]
        elif action == 3:
            out[place : place + 4] = struct.pack("<I", rng.choice([0, 1, 2**31, 2**32 - 1, len(data), rng.getrandbits(32)]))
        elif action == 4:
            out[place : place + 8] = struct.pack("<Q", rng.choice([0, 2**63, 2**64 - 1, len(data)]))
        elif out:
            out[min(place, len(out) - 1)] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
    return bytes(out)


def mutations(originals: list[bytes], seed: int):
    """An endless stream of damaged files, determined by the seed."""
    rng = random.Random(seed)
    while True:
        data = rng.choice(originals)
        kind = rng.randrange(3)
        if kind != 0:
            data = with_mutated_entries(data, rng)
        if kind != 1:
            data = with_mutated_bytes(data, rng)
        yield data


def fault_of(torch, data: bytes) -> str | None:
    """The fault in how load handles the file; None if there is none."""
    start = time.monotonic()
    try:
        torch.load(io.BytesIO(data))
    except torch.serialization.LoadError as e:
        if not str(e).startswith(("[load] ", "Weights only")):
            return f"message: {e}"
    except NotImplementedError as e:
        if "not implemented" not in str(e):
            return f"{type(e).__name__}: {e}"
    except RuntimeError as e:
        if not any(part in str(e) for part in ("CUDA device", "restore data location", "device string")):
            return f"{type(e).__name__}: {e}"
    except BaseException as e:  # noqa: BLE001 - anything else is a finding
        if isinstance(e, KeyboardInterrupt):
            raise
        return f"{type(e).__name__}: {e}"
    seconds = time.monotonic() - start
    return f"took {seconds:.1f} s" if seconds > SECONDS else None


def main() -> int:
    return run("load", ".tt", __doc__.splitlines()[0], seeds, mutations, fault_of)


if __name__ == "__main__":
    sys.exit(main())
