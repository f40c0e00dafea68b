# ruff: noqa: E501
"""Code that reads sizes otherwise than by numbers of x.shape: by the layout of a tensor, by errors that it catches, by copies.

Each row has an example and a size at which the function continues in another way. The graph or its guards notice that.
"""

from __future__ import annotations

import copy
import io
import json
import math
import pickle
import re
import statistics
import zipfile
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from .test_random_sizes import guards_hold

# The condition, the sizes of the example, and other sizes at which the condition has another outcome.
LAYOUT = [
    ("x.stride(0) % 16 == 0", (5, 6), (5, 16)), ("x.stride(dim=0) % 16 == 0", (5, 6), (5, 16)), ("x.stride(-2) > 9", (5, 6), (5, 10)),
    ("x[1:].storage_offset() % 16 == 0", (5, 6), (5, 16)), ("x.T.contiguous().stride(0) == 33", (5, 6), (33, 6)), ("x.stride() == (33, 1)", (5, 6), (5, 33)),
    ("x[:, :40].stride(0) == 40", (5, 6), (5, 40)), ("x[:, :40].is_contiguous()", (5, 6), (5, 41)), ("x.narrow(0, x.shape[0] - 2, 2).storage_offset() == 62", (5, 2), (33, 2)),
    ("x[:, : x.shape[1] // 6 * 6].is_contiguous()", (5, 6), (5, 7)), ("x.stride()[0] in (7, 33)", (5, 6), (5, 33)), ("x[None].stride(0) == 66", (5, 6), (11, 6)),
    ("not x[:, :40].is_contiguous(memory_format=contiguous)", (5, 6), (5, 50)), ("int(x.stride(0)) == 33", (5, 6), (5, 33)), ("torch.ops.aten.sym_stride.int(x, 0) == 33", (5, 6), (5, 33)),
    ("x.flatten()[7:].storage_offset() * x.stride(0) == 7 * 33", (5, 6), (5, 33)), ("len(range(x.stride(0))) == 33", (5, 6), (5, 33)), ("sum(x.stride()) == 34", (5, 6), (5, 33)),
]  # fmt: skip
# Reads by methods of the base class and by operators.
FUNCTIONS = [
    ("torch.Tensor.size(x, 0) % 16 == 0", (5, 6), (16, 6)), ("torch.Tensor.size(x)[1] % 16 == 0", (5, 6), (5, 16)), ("torch.Tensor.shape.__get__(x)[0] % 16 == 0", (5, 6), (16, 6)),
    ("torch.Tensor.numel(x) % 16 == 0", (5, 6), (5, 16)), ("torch.Tensor.stride(x, 0) % 16 == 0", (5, 6), (5, 16)), ("torch.Tensor.storage_offset(x[1:]) % 16 == 0", (5, 6), (5, 16)),
    ("torch.Tensor.__len__(x) == 33", (5, 6), (33, 6)), ("torch.Tensor.is_contiguous(x[:, :40])", (5, 6), (5, 41)), ("torch.ops.aten.size.int(x, 0) % 16 == 0", (5, 6), (16, 6)),
    ("x.shape[0] >> 4 == 1", (5, 6), (16, 6)), ("x.shape[0] & 15 == 0", (5, 6), (16, 6)), ("~x.shape[0] % 16 == 0", (5, 6), (15, 6)), ("x.shape[0] | 15 == 47", (5, 6), (33, 6)), ("len(repr(x)) == 0 or x.shape[0] << 2 == 64", (5, 6), (16, 6)),
]  # fmt: skip
# A call that fails for other sizes than the last ones.
FAILING = [
    ("x + torch.ones(33, 6)", (5, 6), (33, 6)), ("torch.cat([x, torch.zeros(33, 1)], 1)", (5, 6), (33, 6)), ("torch.stack([x, torch.ones(33, 6)])", (5, 6), (33, 6)), ("x.view(-1, 66)", (5, 6), (11, 6)),
    ("x.view(-1, 66)", (5, 6), (33, 6)), ("x.reshape(9, 44)", (5, 6), (66, 6)), ("x @ torch.ones(33, 2)", (5, 6), (5, 33)), ("x.clone().add_(torch.ones(33, 6))", (5, 6), (33, 6)), ("torch.ones(3, 4).view(x.shape[0] - 2, 3)", (5, 6), (6, 6)),
    ("torch.nn.functional.linear(x, torch.ones(2, 33))", (5, 6), (5, 33)), ("x.expand(2, 33, 6)", (5, 6), (33, 6)), ("torch.addmm(torch.ones(33, 1), x, x.T)", (5, 6), (33, 6)), ("x.unflatten(0, (11, -1))", (5, 6), (33, 6)),
    ("torch.einsum('ij,jk->ik', x, torch.ones(33, 2))", (5, 6), (5, 33)), ("torch.ones(10 // (x.shape[0] - 5))", (5, 6), (6, 6)), ("x * (3.0 / (x.shape[0] - 5))", (5, 6), (6, 6)), ("x * (3 % (x.shape[0] - 5))", (5, 6), (7, 6)),
    ("x * (0.0 ** (4 - x.shape[0]))", (5, 6), (3, 6)), ("x[33]", (5, 6), (40, 6)), ("torch.ones(10 // (x.shape[0] % 57 // 56))", (5, 6), (56, 6)), ("x * (10.0 / (x.shape[0] % 57 // 56))", (5, 6), (56, 6)), ("torch.ops.aten.view.default(x, [-1, 66])", (5, 6), (33, 6)), ("torch.nn.functional.layer_norm(x, (33,))", (5, 6), (5, 33)),
]  # fmt: skip

# Numbers of n = x.shape[0], by which the function multiplies x. They are guards, or the graph computes them.
NUMBERS = [
    "pickle.loads(pickle.dumps(n))", "2 if pickle.loads(pickle.dumps(n)) == 33 else 1", "2 if pickle.loads(pickle.dumps(n / 2)) == 16.5 else 1", "2 if pickle.loads(pickle.dumps(n == 33)) else 1",
    "2 if (n.value if hasattr(n, 'value') else n) == 33 else 1", "2 if getattr(n / 2, 'value', n / 2) == 16.5 else 1", "2 if getattr(n == 33, 'value', n == 33) else 1", "copy.deepcopy([n, n / 2])[1]",
    "torch.Tensor(n).fill_(1).sum()", "torch.Tensor(n, 2).fill_(1).sum()", "torch.Tensor(x.shape).fill_(1).sum()", "torch.Tensor(x.shape[:1]).fill_(1).sum()", "torch.FloatTensor(n).fill_(1).sum()", "torch.Tensor((n, 2)).sum()",
    "torch.Tensor().numel() + n", "x.new(n).fill_(1).sum()", "np.sqrt(n)", "np.log(n)", "np.log2(n)", "np.exp(-n)", "np.sin(n)", "np.sqrt(n / 2)", "np.floor(n / 2)", "bool(np.isfinite(n))", "np.maximum(n, 7)", "np.add(n, 1)",
    "torch.tensor(np.arange(n)).sum()", "torch.as_tensor(np.arange(n)).sum()", "torch.from_numpy(np.arange(n)).sum()", "torch.tensor(np.array([n]))", "torch.tensor(np.array(x.shape)).sum()", "torch.tensor(np.full(3, n)).sum()",
    "torch.tensor(np.linspace(0, n, 5)).sum()", "int(np.pad([1], n).size)", "int(np.prod(x.shape))", "float(np.float64(n / 2))", "np.float64(0.5) * (n / 2)", "(n / 2) * np.float32(0.5)", "int((np.arange(3) * n).sum())", "float((np.arange(3) + n / 2).sum())",
    "((2 + 0j) / n).real", "(n - (2 + 0j)).real", "((2 + 0j) * (n / 2)).real", "((n / 2) * (2 + 1j)).real", "float(Fraction(1, 3) * (n / 2))", "statistics.mean([n, 5])", "statistics.fmean([n, 4])", "n.from_bytes(b'12', 'big')", "type(n)(n)", "type(n / 2)(n / 2)",
]  # fmt: skip
# C code that takes ints and floats only.
REFUSED = ["json.dumps({'n': n})", "Decimal(n)", "math.ldexp(1.0, n)", "'%*d' % (n, 3)", "int.bit_length(n)", "np.random.default_rng(n)"]


def example(torch, size):
    return torch.arange(1.0, torch.Size(size).numel() + 1).view(*size)


def sizes_of(first, other):
    found = [first, other, *((m, n) for m in (2, 3, 4, 6, 8, 16, 33, 40) for n in (2, 3, 6, 7, 16, 33, 40, 50))]
    return list(dict.fromkeys(found))


def scope_of(torch):
    modules = {"copy": copy, "json": json, "math": math, "np": np, "pickle": pickle, "statistics": statistics}
    return {"torch": torch, "contiguous": torch.contiguous_format, "Decimal": Decimal, "Fraction": Fraction, **modules}


def check(torch, f, first, other) -> None:
    """Compares the graphs of make_fx and torch.export with the function at many sizes, those with another outcome among them."""
    from teletensor.fx.experimental.proxy_tensor import make_fx

    graph = make_fx(f, tracing_mode="symbolic")(example(torch, first))

    class Module(torch.nn.Module):
        def forward(self, x):
            return f(x)

    auto = torch.export.Dim.AUTO
    program = torch.export.export(Module(), (example(torch, first),), dynamic_shapes=({0: auto, 1: auto},)).module()
    for size in sizes_of(first, other):
        x = example(torch, size)
        want = f(x)
        if guards_hold(torch, graph, (x,)):
            torch.testing.assert_close(graph(x), want, msg=f"make_fx at {size}: {graph.shape_env.format_guards()}")
        else:
            assert size != first
        try:
            made = program(x)
        except Exception:  # noqa: BLE001 - refuses the sizes
            assert size != first
            continue
        torch.testing.assert_close(made, want, msg=f"export at {size}")


@pytest.mark.parametrize(("text", "first", "other"), [*LAYOUT, *FUNCTIONS])
def test_conditions(torch, text, first, other):
    condition = eval(f"lambda x: {text}", scope_of(torch))  # noqa: S307
    assert bool(condition(example(torch, first))) is not bool(condition(example(torch, other)))
    check(torch, lambda x: x * 2 if condition(x) else x, first, other)


@pytest.mark.parametrize("text", ["x.stride(0)", "x[1:].storage_offset()", "sum(x.stride())", "x.T.contiguous().stride(0)", "x[:, : n // 2].stride(0)", "x[None].stride(0)"])
def test_numbers_of_the_layout(torch, text):
    """The graph computes them."""
    from teletensor.fx.experimental.proxy_tensor import make_fx

    f = eval(f"lambda x: x * (lambda n: {text})(x.shape[1])", scope_of(torch))  # noqa: S307
    graph = make_fx(f, tracing_mode="symbolic")(example(torch, (5, 6)))
    assert not graph.shape_env.format_guards().strip()
    for size in sizes_of((5, 6), (9, 100)):
        torch.testing.assert_close(graph(example(torch, size)), f(example(torch, size)))


@pytest.mark.parametrize(("text", "first", "other"), FAILING)
def test_errors_that_are_caught(torch, text, first, other):
    call = eval(f"lambda x: {text}", scope_of(torch))  # noqa: S307

    def f(x):
        try:
            return call(x)
        except (RuntimeError, IndexError, ArithmeticError):
            return x

    assert f(example(torch, first)).shape == first
    call(example(torch, other))
    check(torch, f, first, other)


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers(torch, text):
    f = eval(f"lambda x: x * (lambda n: {text})(x.shape[0])", scope_of(torch))  # noqa: S307
    check(torch, f, (5, 6), (33, 6))


@pytest.mark.parametrize("text", ["n & 15", "n & -8", "n & -1", "(n & 0) + 2", "n >> 1", "~n", "n << 2", "torch.Tensor.size(x, 0)", "torch.Tensor.numel(x)"])
def test_bits_and_base_methods_are_computed(torch, text):
    from teletensor.fx.experimental.proxy_tensor import make_fx

    f = eval(f"lambda x: x * (lambda n: {text})(x.shape[0])", scope_of(torch))  # noqa: S307
    graph = make_fx(f, tracing_mode="symbolic")(example(torch, (5, 6)))
    assert not graph.shape_env.format_guards().strip()
    for size in sizes_of((5, 6), (9, 100)):
        torch.testing.assert_close(graph(example(torch, size)), f(example(torch, size)))


def test_reads_in_functions_that_others_call(torch):
    """Also within functions of the package, hooks and modes; views of another class are refused, whose sizes are plain numbers."""
    from teletensor.fx.experimental.proxy_tensor import make_fx

    class Class(torch.Tensor):
        pass

    def distance(a, b):
        return (a - b).sum(1) * (2 if torch.Tensor.size(a, 0) % 16 == 0 else 1)

    check(torch, lambda x: torch.nn.functional.triplet_margin_with_distance_loss(x, x, x + 1, distance_function=distance), (5, 6), (16, 6))
    with pytest.raises(NotImplementedError, match="as_subclass"):
        make_fx(lambda x: x * x.as_subclass(Class).shape[0], tracing_mode="symbolic")(torch.ones(5))


def test_classes_of_recorded_tensors(torch):
    """Others are permitted where sizes are constants; the tensor's own class and Tensor return the tensor."""
    from teletensor.fx.experimental.proxy_tensor import make_fx

    class Class(torch.Tensor):
        pass

    class Module(torch.nn.Module):
        def forward(self, x):
            return x.as_subclass(Class).as_subclass(torch.Tensor) * x.as_subclass(Class).shape[0]

    x = torch.ones(5)
    torch.testing.assert_close(torch.export.export(Module(), (x,)).module()(x), x * 5)
    with pytest.raises(NotImplementedError, match="as_subclass"):
        torch.export.export(Module(), (x,), dynamic_shapes=({0: torch.export.Dim.AUTO},))
    graph = make_fx(lambda x: x.as_subclass(type(x)).as_subclass(torch.Tensor) * x.shape[0], tracing_mode="symbolic")(x)
    torch.testing.assert_close(graph(torch.ones(7)), torch.ones(7) * 7)


@pytest.mark.parametrize("condition", ["torch.Tensor.size(y, 0) % 16 == 0", "y.is_contiguous()", "(y * 2).shape[0] % 16 == 0"])
def test_guards_of_functions_that_operators_receive(torch, condition):
    """They name the operands, whose sizes are constant if a guard is of a size within the function."""
    from teletensor.fx.experimental.proxy_tensor import make_fx

    branch = eval(f"lambda y: y * (2 if {condition} else 1)", scope_of(torch))  # noqa: S307
    f = lambda *a: a[0] + torch.cond(a[1].sum() > 0, branch, lambda y: y.clone(), (a[1],)).sum()  # noqa: E731
    graph = make_fx(f, tracing_mode="symbolic")(torch.ones(5, 6), torch.ones(7, 3))
    texts = graph.shape_env.format_guards()
    assert ("arg1_1" in texts) is ("contiguous" not in condition) and "arg0_1" not in texts and "mul" not in texts
    torch.testing.assert_close(graph(torch.ones(16, 9), torch.ones(7, 3)), f(torch.ones(16, 9), torch.ones(7, 3)))


@pytest.mark.parametrize("is_dynamic", [False, True])
def test_modes_receive_functions_of_the_package(torch, is_dynamic):
    """A mode around the recording receives pad(), and what it does becomes part of the graph."""
    from teletensor.fx.experimental.proxy_tensor import make_fx
    from teletensor.overrides import TorchFunctionMode

    pad = torch.nn.functional.pad

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            return result * 3 if func is pad else result

    class Module(torch.nn.Module):
        def forward(self, x):
            return pad(x, (1, 1))

    dynamic = ({0: torch.export.Dim.AUTO},) if is_dynamic else None
    with Mode():
        symbolic = make_fx(lambda x: pad(x, (1, 1)), tracing_mode="symbolic")(torch.ones(5, 6))
        exported = torch.export.export(Module(), (torch.ones(5, 6),), dynamic_shapes=dynamic).module()
    for graph in (symbolic, exported):
        torch.testing.assert_close(graph(torch.ones(5, 6)), pad(torch.ones(5, 6), (1, 1)) * 3)


def test_a_text_of_a_tensor_has_no_numbers_of_sizes(torch):
    from teletensor.fx.experimental.proxy_tensor import make_fx

    texts = []
    graph = make_fx(lambda x: texts.append(str(x)) or x * 2, tracing_mode="symbolic")(torch.ones(5, 6))
    assert set(texts) == {"RecordedTensor(x_1, size=(x_1.size()[0], x_1.size()[1]), dtype=torch.float32)"}
    assert not graph.shape_env.format_guards().strip()


@pytest.mark.parametrize("text", ["torch.Tensor(n).fill_(1).sum()", "torch.Tensor(x.shape).fill_(1).sum()", "torch.FloatTensor(n, 2).fill_(1).sum()"])
def test_tensors_of_sizes_are_computed(torch, text):
    from teletensor.fx.experimental.proxy_tensor import make_fx

    f = eval(f"lambda x: x * (lambda n: {text})(x.shape[0])", scope_of(torch))  # noqa: S307
    graph = make_fx(f, tracing_mode="symbolic")(example(torch, (5, 6)))
    assert not graph.shape_env.format_guards().strip()
    for size in sizes_of((5, 6), (9, 100)):
        torch.testing.assert_close(graph(example(torch, size)), f(example(torch, size)))


@pytest.mark.parametrize("text", REFUSED)
def test_code_that_takes_only_ints(torch, text):
    """An error says so."""
    from teletensor.fx.experimental.proxy_tensor import make_fx

    f = eval(f"lambda x: (lambda n: {text})(x.shape[0]) and x", scope_of(torch))  # noqa: S307
    f(torch.ones(5))
    with pytest.raises(TypeError):
        make_fx(f, tracing_mode="symbolic")(torch.ones(5))


@pytest.mark.parametrize("text", ["0.9 ** n", "2.0 ** -n", "n ** (0.5 * n / n)", "(n / 2) ** 2", "n ** 0.5", "n ** 3", "(0.5 ** (n + 1)) ** n", "0.5 ** torch.sym_float(n)"])
def test_powers_in_files(torch, text):
    f = eval(f"lambda x: x * (lambda n: {text})(x.shape[0])", scope_of(torch))  # noqa: S307

    class Module(torch.nn.Module):
        def forward(self, x):
            return f(x)

    program = torch.export.export(Module(), (torch.ones(5),), dynamic_shapes=({0: torch.export.Dim.AUTO},))
    file = io.BytesIO()
    torch.export.save(program, file)
    loaded = torch.export.load(io.BytesIO(file.getvalue())).module()
    for n in (5, 2, 9, 30, 333):
        torch.testing.assert_close(loaded(torch.ones(n)), f(torch.ones(n)))


@pytest.mark.parametrize("text", ["(-n) & 7", "(3 - n) % 8 + n", "(n * 3 + 1) % 8"])
def test_remainders_in_files(torch, text):
    """PyTorch's Mod takes no negative numbers: files have quotients rounded down instead."""
    f = eval(f"lambda x: x * (lambda n: {text})(x.shape[0])", scope_of(torch))  # noqa: S307

    class Module(torch.nn.Module):
        def forward(self, x):
            return f(x)

    file = io.BytesIO()
    torch.export.save(torch.export.export(Module(), (torch.ones(5),), dynamic_shapes=({0: torch.export.Dim.AUTO},)), file)
    with zipfile.ZipFile(file) as archive:
        content = next(archive.read(name).decode() for name in archive.namelist() if name.endswith("model.json"))
    assert "FloorDiv" in content and not re.findall(r"\b\w*Mod(?=\()", content)
    loaded = torch.export.load(io.BytesIO(file.getvalue())).module()
    for n in (5, 8, 30):
        torch.testing.assert_close(loaded(torch.ones(n)), f(torch.ones(n)))


STRIDES = [
    "x * x.stride(0)", "x * x[1:].storage_offset()", "x.as_strided(x.shape, x.stride()) * 2", "x.new_ones(x.stride(1)).sum() + x", "x * x.contiguous(memory_format=torch.channels_last).stride(3)",
    "x * x.contiguous(memory_format=torch.channels_last).stride(2)", "x * x.clone()[..., 1:].stride(0)", "x * x[:, 1:, ..., 0].stride(0)", "x * x.clone(memory_format=torch.channels_last).permute(3, 1, 0, 2).stride(2)",
]  # fmt: skip


@pytest.mark.parametrize("text", STRIDES)
def test_strides_are_computed_from_sizes(torch, text):
    """In all forms of a program."""
    from teletensor.fx.experimental.proxy_tensor import make_fx

    f = eval(f"lambda x: {text}", scope_of(torch))  # noqa: S307

    class Module(torch.nn.Module):
        def forward(self, x):
            return f(x)

    first = (2, 3, 4, 5)
    program = torch.export.export(Module(), (example(torch, first),), dynamic_shapes=(dict.fromkeys(range(4), torch.export.Dim.AUTO),))
    file = io.BytesIO()
    torch.export.save(program, file)
    loaded = torch.export.load(io.BytesIO(file.getvalue()))
    graph = make_fx(f, tracing_mode="symbolic")(example(torch, first))
    assert not graph.shape_env.format_guards().strip()
    for size in (first, (3, 4, 5, 6), (7, 5, 2, 3), (4, 4, 4, 4)):
        want = f(example(torch, size))
        for made in (graph, program.module(), loaded.module(), program.run_decompositions().module()):
            torch.testing.assert_close(made(example(torch, size)), want)
