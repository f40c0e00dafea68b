"""Programs of user_programs.py, compiled beside eager calls: results, gradients, what they print, and exceptions with their lines."""

from __future__ import annotations

import contextlib
import dis
import io
import traceback

import pytest

import teletensor as torch
from tests.python.compile import user_programs

PROGRAMS = user_programs.make(torch)
# Programs with a graph break, which fullgraph=True refuses: class statements (also in PyTorch), exceptions that leave the function,
# and calls with effects.
BREAKS = {name for name, f in PROGRAMS.items() if "LOAD_BUILD_CLASS" in {i.opname for i in dis.get_instructions(f)}} | {
    "asserts", "bytesd", "fd", "gen_throw", "inspectd", "lru", "modattr", "print_", "raises", "raises_in",
}  # fmt: skip


def shown(value):
    """The value as plain objects that can be compared."""
    if isinstance(value, torch.Tensor):
        return "tensor", str(value.dtype), value.detach().tolist(), value.requires_grad
    if isinstance(value, dict):
        return type(value).__name__, [(shown(k), shown(v)) for k, v in value.items()]
    if isinstance(value, (set, frozenset)):
        return type(value).__name__, sorted(map(repr, value))
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [shown(v) for v in value]
    return type(value).__name__ if "object at" in repr(value) else repr(value)


def tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from tensors(part)


def outcome(function):
    user_programs._COUNT = 0
    x, printed = torch.tensor([1.0, 2.0, 3.0], requires_grad=True), io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            result = function(x)
    except torch._dynamo.exc.Unsupported:
        raise
    except Exception as e:  # noqa: BLE001 - compared
        lines = [f.lineno for f in traceback.extract_tb(e.__traceback__) if "user_programs" in f.filename]
        return type(e).__name__, str(e), lines
    if found := [t for t in tensors(result) if t.requires_grad]:
        sum(t.sum() for t in found).backward()
    return shown(result), None if x.grad is None else x.grad.tolist(), printed.getvalue()


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    function = PROGRAMS[name]
    expected = outcome(function)
    torch._dynamo.reset()
    compiled = torch.compile(function)
    assert [outcome(compiled), outcome(compiled)] == [expected, expected]
    torch._dynamo.reset()
    whole = torch.compile(function, fullgraph=True)
    if name in BREAKS:
        with pytest.raises(torch._dynamo.exc.Unsupported):
            outcome(whole)
    else:
        assert [outcome(whole), outcome(whole)] == [expected, expected]
