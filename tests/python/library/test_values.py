"""torch.library, torch.compiler, torch.jit and private names give PyTorch's values, which record.py stored in values.json."""

import json

import pytest

from tests.python.names.record import plain
from tests.python.names.test_values import check

from .record import VALUES, cases

CASES, RECORDED = cases(), json.loads(VALUES.read_text()) if VALUES.exists() else {}

# Functions that raise NotImplementedError because nothing is compiled or traced.
UNAVAILABLE = [
    ("compiler.precompile", ()), ("compiler.load_compiled_function", (None,)),
    ("jit.save_jit_module_to_flatbuffer", (None, "")), ("jit.RecursiveScriptClass", ()), ("jit.CompilationUnit", ()),
    ("library.wrap_triton", (None,)), ("library.fallthrough_kernel", ()),
]  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_value_equals_pytorchs(torch, name):
    check(plain(CASES[name](torch)), RECORDED[name], name)


def test_every_recorded_value_has_a_case():
    assert set(RECORDED) == set(CASES)


@pytest.mark.parametrize("name, args", UNAVAILABLE)
def test_unavailable_functions_raise(torch, name, args):
    function = torch
    for part in name.split("."):
        function = getattr(function, part)
    with pytest.raises(NotImplementedError):
        function(*args)


def test_a_fake_of_an_undefined_operator_is_kept(torch):
    torch.library.register_fake("early::op", lambda x: x.new_empty(7))
    torch.library.define("early::op", "(Tensor x) -> Tensor")
    assert torch.ops.early.op(torch.empty(2, device="meta")).shape == (7,)


def test_kernels_of_undefined_operators_are_kept(torch):
    torch.library.impl("early::one", "CPU", lambda x: x + 1)
    torch.library.impl("early::two", "cpu", lambda x: x + 2)
    torch.library.register_kernel("early::three", "cpu", lambda x: x + 3)
    library = torch.library.Library("early", "FRAGMENT")
    library.impl("four.other", lambda x: x + 4, "CPU")
    assert not hasattr(torch.ops.early, "one")
    for name in ("one", "two", "three"):
        torch.library.define(f"early::{name}", "(Tensor x) -> Tensor")
    library.define("four.other(Tensor x) -> Tensor")
    x, ops = torch.ones(1, device="cpu"), torch.ops.early
    assert [f(x).item() for f in (ops.one, ops.two, ops.three, ops.four.other)] == [2.0, 3.0, 4.0, 5.0]
    with pytest.raises(ValueError, match='of the form "namespace::name"'):
        torch.library.impl("one", "CPU", lambda x: x)
    with pytest.raises(NotImplementedError, match="cannot be replaced"):
        torch.library.impl("aten::add.Tensor", "CPU", lambda x: x)


def test_functions_of_triton_fail_when_they_are_called(torch):
    @torch.library.triton_op("early::triton", mutates_args=())
    def scaled(x: torch.Tensor, with_kernel: bool) -> torch.Tensor:
        return torch.library.wrap_triton(None)[(1,)](x) if with_kernel else x * 2

    assert scaled(torch.ones(1), False).item() == torch.ops.early.triton(torch.ones(1), False).item() == 2.0
    with pytest.raises(NotImplementedError, match="Triton's kernels need tensors with addresses"):
        scaled(torch.ones(1), True)


def test_opcheck_finds_undeclared_changes(torch):
    @torch.library.custom_op("checked::add", mutates_args=())
    def add(x: torch.Tensor) -> torch.Tensor:
        return x.add_(1).clone()

    with pytest.raises(RuntimeError, match="not declared as mutable"):
        torch.library.opcheck(add, (torch.ones(2),), test_utils="test_schema")
    with pytest.raises(RuntimeError, match="no derivative"):
        torch.library.opcheck(add, (torch.ones(2, requires_grad=True),), test_utils="test_autograd_registration")
