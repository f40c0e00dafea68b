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


def test_opcheck_finds_undeclared_changes(torch):
    @torch.library.custom_op("checked::add", mutates_args=())
    def add(x: torch.Tensor) -> torch.Tensor:
        return x.add_(1).clone()

    with pytest.raises(RuntimeError, match="not declared as mutable"):
        torch.library.opcheck(add, (torch.ones(2),), test_utils="test_schema")
    with pytest.raises(RuntimeError, match="no derivative"):
        torch.library.opcheck(add, (torch.ones(2, requires_grad=True),), test_utils="test_autograd_registration")
