"""Fuzzes teletensor.export.load: damaged .pt2 files load or raise a documented error, within limits of time and memory.

    python -m tests.fuzz.pt2_fuzz --seconds 20 --seed 1

Starts a private engine. A third of the inputs have bytes changed, a third have values of their JSON changed (names, numbers,
types, nodes that are repeated and removed), and the others have members renamed, repeated, truncated or compressed. Programs that
load are called once if their numbers are small. Prints the number of inputs; exits with 1 if an input failed otherwise, and
keeps each such input in the folder --findings. If the process crashes, the input is in `running.pt2` there.
"""

from __future__ import annotations

import io
import json
import random
import sys
import time
import zipfile
from collections.abc import Iterator
from typing import Any

from .load_fuzz import ENTRY_NAMES, NUMBERS, SECONDS, archive_of, entries_of, with_mutated_bytes
from .mutated_files import run

# What load() documents.
LOADING = ("RuntimeError", "NotImplementedError", "LoadError", "UserError")
# What a call may raise: errors of the engine and of operators with wrong arguments.
CALLING = (*LOADING, "ValueError", "TypeError", "IndexError", "OverflowError", "OutOfMemoryError", "AttributeError", "KeyError",
           "AssertionError", "ZeroDivisionError")  # fmt: skip
LARGE = 1000  # numbers in a graph that is not called: it might make large tensors
TEXTS = ["", "x", "add", "aten.add.Tensor", "torch.ops.aten.add.Tensor", "torch.ops.teletensor.load.default", "../x", "_operator.add",
         "os.system", "Infinity", "s0", "s0 // 0", "2**2**40", "weight_0", "\ud800", "a" * 5000]  # fmt: skip


def seeds(torch: Any) -> list[bytes]:
    """Files of programs with dynamic sizes, buffers, shared and strided weights, branches, examples and further files."""
    nn = torch.nn

    class Net(nn.Module):
        """Layers, a buffer that changes, a constant and a size."""

        def __init__(self) -> None:
            super().__init__()
            self.layer, self.tied = nn.Linear(3, 4), nn.Linear(3, 4)
            self.tied.weight = self.layer.weight
            self.register_buffer("count", torch.zeros(1))
            self.constant = torch.arange(4.0).reshape(2, 2).t()

        def forward(self, x: Any) -> Any:
            """Returns a dict."""
            self.count.add_(1)
            return {"y": self.layer(x).relu() + self.tied(x), "z": [x[:, :1] * self.count + x.shape[0], self.constant * 2]}

    class Branch(nn.Module):
        """A branch by a value."""

        def forward(self, x: Any) -> Any:
            """Returns one of two results."""
            return torch.cond(x.sum() > 0, lambda v: v.sin(), lambda v: v.cos(), (x,))

    rows = torch.export.Dim("rows", min=2, max=64)
    programs = [
        torch.export.export(Net(), (torch.ones(3, 3),), dynamic_shapes={"x": {0: rows}}),
        torch.export.export(Branch(), (torch.ones(2, 2),)),
        torch.export.export(nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten()).eval(), (torch.ones(1, 1, 5, 5),)),
    ]
    written = []
    for program in programs:
        out = io.BytesIO()
        torch.export.save(program, out, extra_files={"note": "text"})
        written.append(out.getvalue())
        called(torch, torch.export.load(io.BytesIO(written[-1])))
    return written


def called(torch: Any, program: Any) -> None:
    """Calls a program with its example, and reads the results."""
    args, kwargs = program.example_inputs
    with torch.no_grad():
        for value in torch.utils._pytree.tree_leaves(program.module()(*args, **kwargs)):
            if isinstance(value, torch.Tensor):
                value.cpu().tolist()


def places_of(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each container of a JSON document with each of its keys or indices."""
    remaining = [value]
    while remaining:
        container = remaining.pop()
        for key, child in list(container.items()) if isinstance(container, dict) else list(enumerate(container)):
            yield container, key
            if isinstance(child, (dict, list)):
                remaining.append(child)


def with_mutated_json(data: bytes, rng: random.Random) -> bytes:
    """The archive with values of its program or of a table of tensors changed."""
    try:
        entries = entries_of(data)
        chosen = rng.choice([i for i, (name, _) in enumerate(entries) if name.endswith(".json")])
        document = json.loads(entries[chosen][1])
    except (zipfile.BadZipFile, IndexError, ValueError):  # it was mutated before
        return data
    for _ in range(rng.choice((1, 1, 2, 5))):
        places = list(places_of(document))
        if not places:
            break
        container, key = rng.choice(places)
        action = rng.randrange(8)
        if action == 0:
            container[key] = rng.choice((*NUMBERS, -1, -(2**63), 0.5, True))
        elif action == 1:
            container[key] = rng.choice(TEXTS)
        elif action == 2:
            container[key] = rng.choice((None, [], {}, [[]], {"as_int": -1}, {"as_none": True}, {"as_tensor": {"name": "x"}}))
        elif action == 3:
            del container[key]
        elif action == 4 and isinstance(container, list):
            container.insert(rng.randrange(len(container) + 1), json.loads(json.dumps(container[key])))
        elif action == 5 and isinstance(container, list):
            rng.shuffle(container)
        elif action == 6:
            other, place = rng.choice(places)
            container[key] = json.loads(json.dumps(other[place])) if place in other or isinstance(other, list) else None
        else:
            for _ in range(rng.choice((3, 300, 5000))):
                container[key] = [container[key]]
            break  # the last change: others would copy it
    try:
        text = json.dumps(document)
    except (ValueError, RecursionError):
        return data
    entries[chosen] = (entries[chosen][0], text.encode("utf-8", "surrogatepass"))
    return archive_of(entries)


def with_mutated_members(data: bytes, rng: random.Random) -> bytes:
    """The archive with a member renamed, repeated, truncated, replaced by zeros or compressed."""
    try:
        entries = entries_of(data)
    except (zipfile.BadZipFile, ValueError):
        return data
    place = rng.randrange(len(entries))
    name, content = entries[place]
    action = rng.randrange(5)
    if action == 0:
        entries[place] = (rng.choice([*ENTRY_NAMES, rng.choice(entries)[0]]), content)
    elif action == 1:
        entries.append((name, rng.choice(entries)[1]))
    elif action == 2:
        entries[place] = (name, content[: rng.randrange(len(content) + 1)])
    elif action == 3:
        entries[place] = (name, b"\0" * rng.randrange(5_000_000))
    else:
        entries[place] = (name, with_mutated_bytes(content, rng))
    return archive_of(entries, zipfile.ZIP_DEFLATED if rng.random() < 0.3 else zipfile.ZIP_STORED)


def mutations(originals: list[bytes], seed: int) -> Iterator[bytes]:
    """An endless stream of damaged files, determined by the seed."""
    rng = random.Random(seed)
    kinds = (with_mutated_json, with_mutated_json, with_mutated_members, with_mutated_bytes)
    while True:
        yield rng.choice(kinds)(rng.choice(originals), rng)


def _is_small(data: bytes) -> bool:
    """Whether a file that loads has only small numbers in its program."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:  # of the other members, some may be damaged
        document = json.loads(archive.read(next(name for name in archive.namelist() if name.endswith("/models/model.json"))))
    values = [container[key] for container, key in places_of(document)]
    return all(abs(v) <= LARGE for v in values if isinstance(v, (int, float)))


def fault_of(torch: Any, data: bytes) -> str | None:
    """The fault in how load or a call handles the file; None if there is none."""
    start = time.monotonic()
    allowed = LOADING
    try:
        program = torch.export.load(io.BytesIO(data))
        allowed = CALLING
        if program.example_inputs is not None and _is_small(data):
            called(torch, program)
    except BaseException as e:  # noqa: BLE001 - what is not allowed is a finding
        if isinstance(e, KeyboardInterrupt):
            raise
        if type(e).__name__ not in allowed:
            return f"{type(e).__name__}: {e}"
    seconds = time.monotonic() - start
    return f"took {seconds:.1f} s" if seconds > SECONDS else None


def main() -> int:
    """Runs the target."""
    return run("pt2", ".pt2", __doc__.splitlines()[0], seeds, mutations, fault_of)


if __name__ == "__main__":
    sys.exit(main())
