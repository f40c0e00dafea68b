"""Questions about sizes (torch.fx.experimental.symbolic_shapes), and sizes by which nothing may be decided (mark_unbacked)."""

from __future__ import annotations

import pytest

import teletensor as torch
from teletensor._dynamo.exc import Unsupported
from teletensor.fx.experimental import symbolic_shapes as shapes
from teletensor.fx.experimental.proxy_tensor import make_fx


@pytest.fixture(autouse=True)
def _reset():
    torch._dynamo.reset()


def test_plain_numbers():
    assert shapes.guard_or_false(True) and not shapes.guard_or_true(False) and shapes.statically_known_true(2 > 1)
    assert shapes.sym_eq((2, [3]), (2, [3])) and not shapes.sym_eq((2,), (2, 3))
    assert shapes.sym_and(True, 1 < 2) and shapes.sym_or(False, True) and not shapes.sym_and(True, False, True)
    assert shapes.is_concrete_int(3) and shapes.is_concrete_float(0.5) and shapes.is_concrete_bool(True) and not shapes.is_symbolic(3)
    assert shapes.hint_int(4) == shapes.guard_int(4) == shapes.guard_scalar(4) == 4 and shapes.guarding_hint_or_throw(True) is True
    assert shapes.free_symbols(torch.ones(2, 3)) == set() and not shapes.has_free_symbols([1, torch.ones(2)])
    shapes.check_consistent(torch.ones(2, 3), torch.zeros(2, 3))
    with pytest.raises(RuntimeError, match="old != new"):
        shapes.check_consistent(torch.ones(2), torch.ones(3))
    shapes.constrain_range(4, min=2, max=4)
    with pytest.raises(ValueError, match="Invalid value 5"):
        shapes.constrain_range(5, min=2, max=4)
    with pytest.raises(AssertionError, match="Expected 2 == 3"):
        shapes.constrain_unify(2, 3)
    with pytest.raises(AssertionError, match="Expected int"):
        shapes.is_concrete_int("a")


def test_contexts():
    context = shapes.StatelessSymbolicContext([shapes.DimDynamic.DYNAMIC, shapes.DimDynamic.STATIC])
    assert context.constraint_sizes == [None, None] and context.dynamic_strides == [shapes.DimDynamic.INFER_STRIDE] * 2
    with pytest.raises(NotImplementedError, match="view_base_context"):
        shapes.StatelessSymbolicContext([shapes.DimDynamic.DUCK], view_base_context=context)
    with pytest.raises(NotImplementedError, match="come from item"):
        shapes.ShapeEnv().create_unbacked_symint()


def test_sizes_of_a_trace():
    found = []

    def f(x):
        n = x.size(0)
        found.append((
            shapes.is_symbolic(n), shapes.is_symbolic(n * 0.5), shapes.is_concrete_int(n), shapes.has_free_symbols(x),
            shapes.has_static_value(n), shapes.hint_int(n), shapes.optimization_hint(n * 2), shapes.guarding_hint_or_throw(n),
        ))  # fmt: skip
        return x * 2

    program = torch.compiler.trace(f, torch.ones(4))
    assert found == [(True, True, False, True, False, 4, 8, 4)]
    assert program(torch.ones(9)).shape == (9,)  # no question has made the size a number
    program = torch.compiler.trace(lambda x: shapes.constrain_range(x.size(0), min=3) or x * 2, torch.ones(4))
    with pytest.raises(ValueError, match=r"requires size\(input 0, 0\) >= 3|size\(input 0, 0\) < 3"):
        program(torch.ones(2))


def test_numbers_that_depend_on_values():
    def f(x):
        k = x.nonzero().shape[0]
        known = shapes.guard_or_false(k == 3), shapes.guard_or_true(k == 3), shapes.statically_known_true(k >= 0)
        assert known == (False, True, True) and shapes.is_symbolic(k) and shapes.has_free_unbacked_symbols(k)
        assert len(shapes.free_unbacked_symbols(k)) == 1 and shapes.optimization_hint(k, fallback=7) == 7
        assert not shapes.has_guarding_hint(k)
        with pytest.raises(shapes.GuardOnDataDependentSymNode):
            shapes.guarding_hint_or_throw(k)
        return x * 2

    module = make_fx(f, tracing_mode="symbolic")(torch.tensor([1.0, 0.0, 2.0]))
    assert torch.equal(module(torch.ones(3)), torch.full((3,), 2.0))


def test_questions_of_compiled_functions():
    with torch._dynamo.config.patch(capture_scalar_outputs=True):

        @torch.compile(fullgraph=True)
        def f(x, n):
            k = n.item()
            torch._check(k >= 2)
            if shapes.guard_or_false(k == 5) or not shapes.guard_or_true(k == 5) or not shapes.statically_known_true(k >= 1):
                return x
            if not shapes.is_symbolic(k) or shapes.is_concrete_int(k) or not shapes.is_concrete_int(3):
                return x
            return x[:k] * 2

        assert torch.equal(f(torch.ones(8), torch.tensor(5)), torch.full((5,), 2.0))


# ---- mark_unbacked()


def test_no_decision_by_an_unbacked_size():
    x = torch.randn(5, 3)
    torch._dynamo.mark_unbacked(x, 0)
    with pytest.raises(Unsupported, match="depends on values|data-dependent"):
        torch.compile(lambda x: x * 2 if x.shape[0] > 4 else x, fullgraph=True)(x)
    torch._dynamo.reset()
    y = torch.compile(lambda x: x * 2 if x.shape[1] == 3 and x.shape[0] != 1 and x.size(0) >= 2 else x, fullgraph=True)(x)
    assert torch.equal(y, x * 2)


def test_an_unbacked_size_in_the_graph():
    x, calls = torch.randn(5, 3), []

    def backend(module, example):
        calls.append(module)
        return module

    @torch.compile(fullgraph=True, backend=backend)
    def f(x):
        torch._check(x.shape[0] <= 9)
        return x.reshape(x.shape[0] * 3) * x.size(0) if x.shape[0] < 10 else x

    torch._dynamo.mark_unbacked(x, 0)
    assert torch.equal(f(x), x.reshape(-1) * 5)
    other = torch.randn(7, 3)
    assert torch.equal(f(other), other.reshape(-1) * 7) and len(calls) == 1
    with pytest.raises(RuntimeError):
        f(torch.randn(11, 3))


def test_bounds_of_an_unbacked_size():
    x = torch.randn(5, 3)
    torch._dynamo.mark_unbacked(x, 0, min=3, max=8)

    def f(x):
        return x * 2 if 3 <= x.shape[0] < 9 else x

    compiled = torch.compile(f, fullgraph=True)
    assert torch.equal(compiled(x), x * 2)
    with pytest.raises(NotImplementedError, match="shape_id"):
        torch._dynamo.mark_unbacked(x, 0, shape_id="batch")
    with pytest.raises(IndexError, match="expected a dimension"):
        torch._dynamo.mark_unbacked(x, 2)


def test_disabled_functions():
    assert torch._dynamo.is_dynamo_disable_recursive(test_contexts) is None
    assert torch._dynamo.is_dynamo_disable_recursive(torch._dynamo.disable(lambda x: x)) is True
    assert torch._dynamo.is_dynamo_disable_recursive(torch._dynamo.disable(lambda x: x, recursive=False)) is False
