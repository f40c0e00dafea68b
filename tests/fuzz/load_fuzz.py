"""Fuzzes teletensor.load: damaged files load or raise LoadError, within limits of time and memory.

    python -m tests.fuzz.load_fuzz --seconds 20 --seed 1

Starts a private engine. Prints the number of inputs; exits with 1 if an input failed otherwise, and keeps each such
input in the folder --findings. If the process crashes, the input is in `running.tt` there.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import resource
import struct
import sys
import time
import warnings
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TELETENSOR_BUILD", ROOT / "build"))
MEMORY = 512 << 20  # bytes by which the process may grow over all inputs
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
    """Files written by save: each kind of value once, and tensors of several dtypes."""
    objects = [
        {},
        [1, -2.5, "text", None, True, float("nan"), (1, 2), {3, 4}, torch.float32, torch.device("cpu")],
        {"w": torch.arange(6.0).reshape(2, 3), "b": torch.tensor([True, False]), 5: torch.tensor(7)},
        torch.nn.Linear(3, 2).state_dict() | {"p": torch.nn.Parameter(torch.zeros(2))},
        {"empty": torch.zeros(0, 3), "half": torch.ones(4).half(), "c": torch.tensor([1 + 2j]), "n": {"m": [torch.ones(1)]}},
    ]
    written = []
    for value in objects:
        out = io.BytesIO()
        torch.save(value, out)
        written.append(out.getvalue())
    return written


NUMBERS = [0, 1, -1, 2, 7, 64, 65, 255, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**62, 2**63 - 1, 2**63, 2**64, 10**40, -(2**63), 0.5, 1e308]
WORDS = [
    "tensor", "dict", "list", "tuple", "set", "dtype", "device", "float", "ordered", "shape", "type", "requires_grad", "Tensor",
    "Parameter", "float32", "bool", "complex64", "uint64", "__class__", "Tensor", "cuda:0", "cuda:127", "cuda:-1", "meta", "nan", "", "\0",
    "teletensor", "../../etc/passwd", "\ud800", "x" * 1000,
]  # fmt: skip


def any_value(rng: random.Random) -> Any:
    return rng.choice([None, True, False, rng.choice(NUMBERS), rng.choice(WORDS), [], {}, [rng.choice(NUMBERS)] * rng.randrange(70),
                       {rng.choice(WORDS): rng.choice(NUMBERS)}])  # fmt: skip


def mutated_value(value: Any, rng: random.Random) -> Any:
    """The JSON value with one change at a random position."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        action = rng.randrange(8)
        changed = dict(value)
        if action == 0:
            del changed[key]
        elif action == 1:
            changed[rng.choice(WORDS)] = changed.pop(key)
        elif action == 2:
            changed = {rng.choice(WORDS): any_value(rng), **changed}
        else:
            changed[key] = mutated_value(value[key], rng)
        return changed
    if isinstance(value, list) and value and rng.random() < 0.8:
        place = rng.randrange(len(value))
        action = rng.randrange(6)
        if action == 0:
            return value[:place] + value[place + 1 :]
        if action == 1:
            return value[: place + 1] * rng.randrange(1, 4) + value[place:]
        return [*value[:place], mutated_value(value[place], rng), *value[place + 1 :]]
    if rng.random() < 0.05:  # nesting
        for _ in range(rng.choice([3, 100, 5000])):
            value = {"list": [value]}
        return value
    return any_value(rng)


def with_mutated_structure(data: bytes, rng: random.Random) -> bytes:
    """A valid archive with changed structure.json, or with entries renamed, repeated, truncated or compressed."""
    entries = entries_of(data)
    action = rng.randrange(8)
    if action < 5:
        structure = json.loads(entries[0][1])
        for _ in range(rng.randrange(1, 4)):
            structure = mutated_value(structure, rng)
        try:
            text = json.dumps(structure)
        except RecursionError:
            text = "[" * 100_000
        entries[0] = (entries[0][0], text.encode())
    place = rng.randrange(len(entries))
    name, content = entries[place]
    if action == 5:
        entries[place] = (rng.choice([*WORDS[:-2], f"tensor/{rng.choice(NUMBERS)}", "/tensor/0", "a/data.pkl"]), content)
    elif action == 6:
        entries.append((name, content))
    elif action == 7:
        entries[place] = (name, content[: rng.randrange(len(content) + 1)] or b"\0" * rng.randrange(5_000_000))
    try:
        return archive_of(entries, zipfile.ZIP_DEFLATED if rng.random() < 0.1 else zipfile.ZIP_STORED)
    except (UnicodeError, ValueError, struct.error):
        return data


def with_mutated_bytes(data: bytes, rng: random.Random) -> bytes:
    """The file with some bytes changed, removed, repeated, or set to boundary values."""
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        place = rng.randrange(len(out)) if out else 0
        if rng.random() < 0.5:  # in the central directory at the end, which holds most of the structure
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
            data = with_mutated_structure(data, rng)
        if kind != 1:
            data = with_mutated_bytes(data, rng)
        yield data


def fault_of(torch, data: bytes) -> str | None:
    """The fault in how load handles the file; None if there is none."""
    start = time.monotonic()
    try:
        torch.load(io.BytesIO(data))
    except torch.serialization.LoadError as e:
        if not str(e).startswith("[load] "):
            return f"message: {e}"
    except RuntimeError as e:
        if "which this engine does not have" not in str(e):
            return f"{type(e).__name__}: {e}"
    except BaseException as e:  # noqa: BLE001 - anything else is a finding
        if isinstance(e, KeyboardInterrupt):
            raise
        return f"{type(e).__name__}: {e}"
    seconds = time.monotonic() - start
    return f"took {seconds:.1f} s" if seconds > SECONDS else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--findings", type=Path, default=BUILD / "fuzz" / "load")
    options = parser.parse_args()
    os.environ.setdefault("TELETENSOR_DAEMON", str(BUILD / "bin/teletensord"))
    sys.path.insert(0, str(BUILD / "python"))
    import teletensor as torch

    originals = seeds(torch)
    options.findings.mkdir(parents=True, exist_ok=True)
    running = options.findings / "running.tt"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ends = time.monotonic() + options.seconds
    count = findings = 0
    for data in mutations(originals, options.seed):
        if time.monotonic() >= ends:
            break
        running.write_bytes(data)
        fault = fault_of(torch, data)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
        if fault is None and grown > MEMORY:
            fault = f"the process grew by {grown >> 20} MB"
            before += grown >> 10
        count += 1
        if fault is not None:
            findings += 1
            kept = options.findings / f"seed{options.seed}-{count}.tt"
            kept.write_bytes(data)
            print(f"{kept}: {fault}", flush=True)
    running.unlink()
    print(f"load_fuzz: {count} inputs, {findings} findings, seed {options.seed}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
