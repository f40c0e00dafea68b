# ruff: noqa: E501
"""Floats and bools that a function computes from sizes are values of the graphs of make_fx and torch.export."""

from __future__ import annotations

import math

import pytest

from .test_random_sizes import guards_hold

# Functions of x (4, 6) with the lines of PyTorch's graph, of make_fx with the names of the results' sizes.
TEXTS = {
    "head size": (lambda t, x: (x @ x.t() * x.shape[-1] ** -0.5).softmax(-1), [
        "sym_size_int = torch.ops.aten.sym_size.int(x_1, 1)", "t = torch.ops.aten.t.default(x_1)", "mm = torch.ops.aten.mm.default(x_1, t)",
        "sym_float = torch.sym_float(sym_size_int)", "pow_1 = sym_float ** -0.5", "mul = torch.ops.aten.mul.Tensor(mm, pow_1)",
        "_softmax = torch.ops.aten._softmax.default(mul, -1, False)",
    ]),
    "root": (lambda t, x: x * (x.shape[0] ** 0.5), [
        "sym_size_int = torch.ops.aten.sym_size.int(x_1, 0)", "sym_float = torch.sym_float(sym_size_int)", "pow_1 = sym_float ** 0.5",
        "mul = torch.ops.aten.mul.Tensor(x_1, pow_1)",
    ]),
    "inverse": (lambda t, x: x * (1.0 / x.size(1)), [
        "sym_size_int = torch.ops.aten.sym_size.int(x_1, 1)", "sym_float = torch.sym_float(sym_size_int)", "truediv = 1.0 / sym_float",
        "mul = torch.ops.aten.mul.Tensor(x_1, truediv)",
    ]),
    "mean": (lambda t, x: x.sum(0) / x.size(0), [
        "sym_size_int = torch.ops.aten.sym_size.int(x_1, 0)", "sum_1 = torch.ops.aten.sum.dim_IntList(x_1, [0])",
        "div = torch.ops.aten.div.Tensor(sum_1, sym_size_int)",
    ]),
    "sum": (lambda t, x: x + x.shape[0] * 0.1, [
        "sym_size_int = torch.ops.aten.sym_size.int(x_1, 0)", "sym_float = torch.sym_float(sym_size_int)", "mul = sym_float * 0.1",
        "add = torch.ops.aten.add.Tensor(x_1, mul)",
    ]),
    "label smoothing": (lambda t, x: x * 0.9 + 0.1 / x.shape[-1], [
        "sym_size_int = torch.ops.aten.sym_size.int(x_1, 1)", "mul = torch.ops.aten.mul.Tensor(x_1, 0.9)",
        "sym_float = torch.sym_float(sym_size_int)", "truediv = 0.1 / sym_float", "add = torch.ops.aten.add.Tensor(mul, truediv)",
    ]),
    "arange": (lambda t, x: t.arange(0, x.shape[1] / 2, 0.5), [
        "sym_size_int = torch.ops.aten.sym_size.int(x_1, 1)", "truediv = sym_size_int / 2",
        "arange = torch.ops.aten.arange.start_step(0, truediv, 0.5)",
    ]),
    "full": (lambda t, x: t.full((3,), x.shape[0] / 2), [
        "sym_size_int = torch.ops.aten.sym_size.int(x_1, 0)", "truediv = sym_size_int / 2", "full = torch.ops.aten.full.default([3], truediv)",
    ]),
    "positions": (lambda t, x: x * t.exp(t.arange(0, x.shape[1]) * (-math.log(10000.0) / x.shape[1])), [
        "sym_size_int = torch.ops.aten.sym_size.int(x_1, 1)", "arange = torch.ops.aten.arange.start(0, sym_size_int)",
        "sym_float = torch.sym_float(sym_size_int)", "truediv = -9.210340371976184 / sym_float", "mul = torch.ops.aten.mul.Tensor(arange, truediv)",
        "exp = torch.ops.aten.exp.default(mul)", "mul_1 = torch.ops.aten.mul.Tensor(x_1, exp)",
    ]),
    "root of torch": (lambda t, x: x / t.sym_sqrt(x.shape[-1]), [
        "sym_size_int = torch.ops.aten.sym_size.int(x_1, 1)", "sym_float = torch.sym_float(sym_size_int)",
        "sym_sqrt = torch.sym_sqrt(sym_float)", "div = torch.ops.aten.div.Tensor(x_1, sym_sqrt)",
    ]),
    "clamp": (lambda t, x: x.clamp(max=x.shape[0] * 0.25), [
        "sym_size_int = torch.ops.aten.sym_size.int(x_1, 0)", "sym_float = torch.sym_float(sym_size_int)", "mul = sym_float * 0.25",
        "clamp = torch.ops.aten.clamp.default(x_1, None, mul)",
    ]),
    "ceil": (lambda t, x: x[: math.ceil(x.shape[0] / 2)], [
        "sym_size_int = torch.ops.aten.sym_size.int(x_1, 0)", "truediv = sym_size_int / 2", "ceil = math_ceil(truediv)",
        "slice_1 = torch.ops.aten.slice.Tensor(x_1, 0, 0, ceil)",
    ]),
    "returned": (lambda t, x: x.shape[0] / 2, ["sym_size_int = torch.ops.aten.sym_size.int(x_1, 0)", "truediv = sym_size_int / 2"]),
    # Constants in PyTorch's graphs.
    "linspace": (lambda t, x: x + t.linspace(0, x.shape[1] / 2, x.shape[1]), [
        "sym_size_int = torch.ops.aten.sym_size.int(x_1, 1)", "truediv = sym_size_int / 2",
        "linspace = torch.ops.aten.linspace.default(0, truediv, sym_size_int)", "add = torch.ops.aten.add.Tensor(x_1, linspace)",
    ]),
    "scale of attention": (lambda t, x: t.nn.functional.scaled_dot_product_attention(x, x, x, scale=2.0 / x.shape[-1]), [
        "sym_size_int = torch.ops.aten.sym_size.int(x_1, 1)", "sym_float = torch.sym_float(sym_size_int)", "truediv = 2.0 / sym_float",
        "scaled_dot_product_attention = torch.ops.aten.scaled_dot_product_attention.default(x_1, x_1, x_1, scale = truediv)",
    ]),
    "dropout": (lambda t, x: t.nn.functional.dropout(x, 1.0 / x.shape[0]) * 0, [
        "sym_size_int = torch.ops.aten.sym_size.int(x_1, 0)", "sym_float = torch.sym_float(sym_size_int)", "truediv = 1.0 / sym_float",
        "native_dropout = torch.ops.aten.native_dropout.default(x_1, truediv, True)", "getitem = native_dropout[0]",
        "mul = torch.ops.aten.mul.Tensor(getitem, 0)",
    ]),
    "condition": (lambda t, x: t.cond(x.shape[0] > 4, lambda y: y + 1, lambda y: y - 1, (x,)), [
        "sym_size_int = torch.ops.aten.sym_size.int(x_1, 0)", "true_graph_0 = self.true_graph_0", "false_graph_0 = self.false_graph_0",
        "gt = sym_size_int > 4", "cond = torch.ops.higher_order.cond(gt, true_graph_0, false_graph_0, (x_1,))", "getitem = cond[0]",
    ]),
    "condition of floats": (lambda t, x: t.cond(x.shape[0] * 0.5 > 2.5, lambda y: y + 1, lambda y: y - 1, (x,)), [
        "sym_size_int = torch.ops.aten.sym_size.int(x_1, 0)", "true_graph_0 = self.true_graph_0", "false_graph_0 = self.false_graph_0",
        "sym_float = torch.sym_float(sym_size_int)", "mul = sym_float * 0.5", "gt = mul > 2.5",
        "cond = torch.ops.higher_order.cond(gt, true_graph_0, false_graph_0, (x_1,))", "getitem = cond[0]",
    ]),
}  # fmt: skip
SIZES = [(4, 6), (2, 2), (3, 7), (5, 4), (9, 31), (16, 3), (700, 5), (3, 2049)]


def make_fx(function, *args):
    from teletensor.fx.experimental.proxy_tensor import make_fx

    return make_fx(function, tracing_mode="symbolic")(*args)


def exported(torch, function, *args, **kwargs):
    class Module(torch.nn.Module):
        def forward(self, *values):
            return function(*values)

    return torch.export.export(Module(), args, **kwargs)


@pytest.mark.parametrize("name", TEXTS)
def test_one_graph_serves_all_sizes(torch, name):
    function, lines = TEXTS[name]
    module = make_fx(lambda x: function(torch, x), torch.randn(4, 6))
    assert [line.split(";")[0].strip() for line in module.code.splitlines() if "=" in line] == lines
    assert not module.shape_env.format_guards().strip()
    dims = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    program = exported(torch, lambda x: function(torch, x), torch.randn(4, 6), dynamic_shapes=((dims,),))
    for size in SIZES:
        x = torch.randn(size)
        torch.testing.assert_close(module(x), function(torch, x))
        torch.testing.assert_close(program.module()(x), function(torch, x))


@pytest.mark.parametrize("name", ["head size", "root of torch", "label smoothing", "sum", "arange", "returned", "clamp"])
def test_programs_are_stored_and_decomposed(torch, tmp_path, name):
    function, _ = TEXTS[name]
    dims = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    program = exported(torch, lambda x: function(torch, x), torch.randn(4, 6), dynamic_shapes=((dims,),))
    torch.export.save(program, tmp_path / "program.pt2")
    for made in (torch.export.load(tmp_path / "program.pt2"), program.run_decompositions()):
        for size in SIZES:
            x = torch.randn(size)
            torch.testing.assert_close(made.module()(x), function(torch, x))


def test_comparisons_are_guards(torch):
    def f(x):
        return x * 2 if x.shape[0] / 2 > 1.5 else x

    module = make_fx(f, torch.ones(4, 6))
    assert module.shape_env.format_guards() == " - x_1.size()[0] / 2 > 1.5"
    assert module(torch.ones(7, 3)).sum().item() == 42
    dim = torch.export.Dim("rows", min=4)
    torch.testing.assert_close(exported(torch, f, torch.ones(4, 6), dynamic_shapes=(({0: dim},),)).module()(torch.ones(50, 6)), torch.full((50, 6), 2.0))
    for least in (2, 3):
        with pytest.raises(torch.export.UserError if hasattr(torch.export, "UserError") else RuntimeError, match="rows"):
            exported(torch, f, torch.ones(4, 6), dynamic_shapes=(({0: torch.export.Dim("rows", min=least)},),))


@pytest.mark.parametrize("text", [
    "math.sqrt(x.shape[0]) * x", "int(x.shape[0] * 0.5) * x", "x * round(x.shape[0] * 0.3, 1)", "x * float(x.shape[0])", "x * math.log(x.shape[0])",
])  # fmt: skip
def test_numbers_that_python_computes_are_constant(torch, text):
    f = eval(f"lambda x: {text}", {"math": math})  # noqa: S307
    module = make_fx(f, torch.ones(4, 6))
    assert " == " in module.shape_env.format_guards()
    assert not guards_hold(torch, module, (torch.ones(6, 9),))
    torch.testing.assert_close(module(torch.ones(4, 9)), f(torch.ones(4, 9)))


@pytest.mark.parametrize("text", [
    "x * (1.0 / x.shape[0] if 1.0 / x.shape[0] > 0.001 else 0.001)", "x * max(1.0 / x.shape[0], 0.0001)", "x * min(0.5 * x.shape[0], 600.0)",
    "x * (0.25 if 3.0 / x.shape[0] > 0.01 else 0.5)",
])  # fmt: skip
def test_constants_of_floats_limit_sizes(torch, text):
    f = eval(f"lambda x: {text}", {"math": math})  # noqa: S307
    module = make_fx(f, torch.ones(5))
    guards = [line.removeprefix(" - ") for line in module.shape_env.format_guards().splitlines()]
    assert guards
    served = 0
    for n in (2, 5, 30, 99, 101, 299, 301, 999, 1001, 1199, 1201, 9999, 10001, 20000):
        x = torch.ones(n)
        if all(eval(g, {"x_1": x, "sym_float": float}) for g in guards):  # noqa: S307
            torch.testing.assert_close(module(x), f(x))
            served += 1
    assert 1 <= served < 14


@pytest.mark.parametrize("text", ["x * abs(100.0 - x.shape[0])", "x * (2.5 * x.shape[0] % 7)", "x * (0.1 / x.shape[0] * 0.3)", "x * (3.5 * x.shape[0] - 7)"])
def test_floats_that_are_computed_further(torch, text):
    f = eval(f"lambda x: {text}")  # noqa: S307
    module = make_fx(f, torch.ones(5))
    assert not module.shape_env.format_guards().strip()
    program = exported(torch, f, torch.ones(5), dynamic_shapes=(({0: torch.export.Dim.DYNAMIC},),)).module()
    for n in (2, 5, 28, 99, 100, 101, 301, 10001):
        torch.testing.assert_close(module(torch.ones(n)), f(torch.ones(n)))
        torch.testing.assert_close(program(torch.ones(n)), f(torch.ones(n)))


def test_two_equal_floats_of_a_call(torch):
    module = make_fx(lambda x: x.clamp(x.shape[0] * -0.5, x.shape[1] * 0.5), torch.randn(4, 6))
    for size in SIZES:
        x = torch.randn(size) * 9
        torch.testing.assert_close(module(x), x.clamp(size[0] * -0.5, size[1] * 0.5))
    module = make_fx(lambda x: x.clamp(x.shape[0] / 8, x.shape[1] / 12), torch.randn(4, 6))  # 0.5 and 0.5
    for size in SIZES:
        x = torch.randn(size)
        torch.testing.assert_close(module(x), x.clamp(size[0] / 8, size[1] / 12))
    module = make_fx(lambda x: x.clamp(0.5, x.shape[1] / 12), torch.randn(4, 6))
    for size in SIZES:
        x = torch.randn(size)
        torch.testing.assert_close(module(x), x.clamp(0.5, size[1] / 12))


def test_powers_in_files_are_limited(torch):
    import operator

    from teletensor.export._targets import check_arguments

    check_arguments(operator.pow, (2, 8), {})
    check_arguments(operator.pow, (2, 0.5), {})
    graph = torch.fx.Graph()
    number = graph.placeholder("number")
    half, more = graph.call_function(operator.truediv, (number, 2)), graph.call_function(operator.add, (number, 2))
    for node in (number, more):
        node.meta["val"] = 0.5  # a file may state this of an int
    for args in ((0.9, number), (2, half), (number, graph.call_function(operator.sub, (more, half))), (half, number)):
        check_arguments(operator.pow, args, {})
    for args in ((2, 9), (2, True), (2, None), (2,), (2, number), (number, more), (2, graph.call_function(operator.mul, (more, more)))):
        with pytest.raises(RuntimeError, match="expected an exponent"):
            check_arguments(operator.pow, args, {})


def refused_sizes(torch, f, example, sizes) -> list[int]:
    """The sizes that an export for a dynamic size refuses; for the others it computes what the function does."""
    program = exported(torch, f, torch.ones(example), dynamic_shapes=(({0: torch.export.Dim.DYNAMIC},),)).module()
    found = []
    for n in sizes:
        try:
            got = program(torch.ones(n))
        except AssertionError:
            found.append(n)
        else:
            torch.testing.assert_close(got, f(torch.ones(n)))
    return found


def test_remainders_decide_small_sizes(torch):
    """A guard such as 2 % size == 0 has another outcome for the smallest size alone."""
    assert refused_sizes(torch, lambda x: x if 2 % x.shape[0] else x.sum(), 6, (0, 1, 2, 3, 4, 100)) == [0, 1, 2]
    assert refused_sizes(torch, lambda x: x.sum() if x.shape[0] // 60 == 7 else x, 6, (2, 419, 420, 479, 480)) == [420, 479]


def test_constants_above_a_billion(torch):
    """Sizes that no test allocates: graphs for them are recorded without values."""
    f = lambda x: [c.sum() for c in x.split(1 << 30)]  # noqa: E731
    program = exported(torch, f, torch.ones(6), dynamic_shapes=(({0: torch.export.Dim.DYNAMIC},),))
    assert repr(program.range_constraints["s0"]) == "VR[1, 1073741824]"


DIVISIONS = [  # of which eager calls raise errors for some sizes, and whose results are the same for all others, or unused
    ("x * (2 % (x.shape[0] % 3))", 7, 9, "x_1.size()[0] % 3 != 0"),
    ("(2 % (x.shape[0] % 3), x + 1)[1]", 7, 9, "x_1.size()[0] % 3 != 0"),
    ("(1 // (x.shape[0] - 100), x + 1)[1]", 6, 100, "x_1.size()[0] - 100 != 0"),
    ("(1.0 / (x.shape[0] - 9), x + 1)[1]", 6, 9, "x_1.size()[0] - 9 != 0"),
    ("(1.0 / (x.shape[0] * 0.5 - 50), x + 1)[1]", 6, 100, "(sym_float(x_1.size()[0]) * 0.5) - 50.0 != 0"),
    ("((x.shape[0] * 0.5 - 50) ** -2.0, x + 1)[1]", 6, 100, "(sym_float(x_1.size()[0]) * 0.5) - 50.0 != 0"),
]


@pytest.mark.parametrize(("text", "example", "size", "guard"), DIVISIONS)
def test_divisors_that_the_graph_lacks_are_not_0(torch, text, example, size, guard):
    f = eval(f"lambda x: {text}")  # noqa: S307
    with pytest.raises(ZeroDivisionError):
        f(torch.ones(size))
    module = make_fx(f, torch.ones(example))
    assert f" - {guard}" in module.shape_env.format_guards().splitlines()
    if "0.5" in text:  # a comparison of floats, which a program does not check
        with pytest.raises(RuntimeError, match="!= 0"):
            exported(torch, f, torch.ones(example), dynamic_shapes=(({0: torch.export.Dim.DYNAMIC},),))
    else:
        assert size in refused_sizes(torch, f, example, (example, size, size + 1))


@pytest.mark.parametrize("text", [
    "torch.where(x > 2, x, n > 8)", "x.masked_fill(x > 2, n > 8)", "x.masked_fill(x > 2, 0.5 * n > 4)", "x.sum(0, keepdim=n > 8)", "x.clone().fill_(n > 8)",
    "torch.sort(x, descending=n > 8).values", "torch.full((2,), n > 8)", "torch.ops.aten.sum.dim_IntList(x, [0], n > 8)", "x.sum(0, keepdim=n - 4)", "x * (n > 8)",
])  # fmt: skip
def test_comparisons_as_arguments(torch, text):
    """They are guards, or computed by the graph."""
    f = eval(f"lambda x: (lambda n: {text})(x.shape[0])", {"torch": torch})  # noqa: S307
    for example in (6, 9):
        module, served = make_fx(f, torch.arange(float(example))), 0
        for n in (2, 4, 5, 6, 8, 9, 12, 30):
            x = torch.arange(float(n))
            if guards_hold(torch, module, (x,)):
                torch.testing.assert_close(module(x), f(x))
                served += 1
        assert served


def test_divisors_of_the_graph_need_no_guard(torch):
    for f in (lambda x: x * (7 % x.shape[0]), lambda x: x * (7.5 / (x.shape[0] * 0.5)), lambda x: (7 % x.shape[0], x + 1)[1]):
        module = make_fx(f, torch.ones(6))
        assert not module.shape_env.format_guards().strip()
        torch.testing.assert_close(module(torch.ones(9)), f(torch.ones(9)))


TEXTS_OF_NUMBERS = [
    'x * {"100": 2.0}.get(f"{x.shape[0]}", 1.0)', 'x * {"50.0": 2.0}.get(str(x.shape[0] * 0.5), 1.0)',
    'x * 2 if repr(x.shape) == "torch.Size([100])" else x', 'x * {"50.00": 2.0}.get(f"{x.shape[0] * 0.5:.2f}", 1.0)',
    'x * {"100": 2.0}.get("{}".format(x.shape[0]), 1.0)', 'x * {"100": 2.0}.get("%s" % x.shape[0], 1.0)',
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS_OF_NUMBERS)
def test_texts_of_sizes_are_guards(torch, text):
    f = eval(f"lambda x: {text}")  # noqa: S307
    assert f(torch.ones(100))[0].item() == 2
    assert " == " in make_fx(f, torch.ones(6)).shape_env.format_guards()
    with pytest.raises(RuntimeError, match="s0|x"):
        exported(torch, f, torch.ones(6), dynamic_shapes=(({0: torch.export.Dim.DYNAMIC},),))


CONDITIONS_OF_CODE_IN_C = [  # that hold for x of 100 elements
    "0.5 * x.shape[0] == 50", "1.0 / x.shape[0] == 0.01", "100.0 == x.shape[0]", "400.0 // x.shape[0] == 4", "math.isqrt(x.shape[0]) == 10",
    "math.gcd(x.shape[0], 100) == 100", "True * x.shape[0] == 100", "1j * x.shape[0] == 100j", "x.shape[0].numerator == 100",
    "x.shape[0].real == 100", "hex(x.shape[0]) == '0x64'", "chr(x.shape[0]) == 'd'", "'%d' % x.shape[0] == '100'", "3.5 * x.shape[0] + 2.0 == 352.0",
    "0.5 * x.shape[0] == LIMIT",
]  # fmt: skip


@pytest.mark.parametrize("text", CONDITIONS_OF_CODE_IN_C)
def test_conditions_of_code_in_c_are_noticed(torch, text):
    f = eval(f"lambda x: x * 2 if {text} else x", {"math": math, "LIMIT": 50})  # noqa: S307
    assert f(torch.ones(100))[0].item() == 2
    module = make_fx(f, torch.ones(6))
    assert guards_hold(torch, module, (torch.ones(6),)) and not guards_hold(torch, module, (torch.ones(100),))
    try:
        assert 100 in refused_sizes(torch, f, 6, (6, 99, 100, 101))
    except RuntimeError as e:
        assert "s0" in str(e)


def test_comparisons_with_attributes_are_noticed(torch):
    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.limit = 350.0

        def forward(self, x):
            return x * 2 if 3.5 * x.shape[0] == self.limit else x

    with pytest.raises(RuntimeError, match="x"):
        torch.export.export(Module(), (torch.ones(6),), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))


def test_programs_with_conditions_are_decomposed(torch):
    for name in ("condition", "condition of floats"):
        function, _ = TEXTS[name]
        program = exported(torch, lambda x: function(torch, x), torch.randn(7, 6), dynamic_shapes=(({0: torch.export.Dim.DYNAMIC},),))
        decomposed = program.run_decompositions().module()
        for n in (2, 4, 5, 6, 9):
            x = torch.randn(n, 6)
            torch.testing.assert_close(decomposed(x), function(torch, x))


def test_negative_numbers_of_sizes_are_stored(torch, tmp_path):
    def f(x):
        return x * (-x.shape[0] % 7.5)

    program = exported(torch, f, torch.ones(6), dynamic_shapes=(({0: torch.export.Dim.DYNAMIC},),))
    torch.export.save(program, tmp_path / "program.pt2")
    loaded = torch.export.load(tmp_path / "program.pt2").module()
    for n in (2, 6, 9, 31):
        torch.testing.assert_close(loaded(torch.ones(n)), f(torch.ones(n)))


STORED = {
    "floor": lambda t, x: t.zeros(math.floor(0.7 * x.shape[0])) + 1, "ceil": lambda t, x: x * math.ceil(x.shape[0] / 3),
    "trunc": lambda t, x: t.ones(math.trunc(0.7 * x.shape[0]) + 1), "round": lambda t, x: x * round(0.7 * x.shape[0]),
    "abs": lambda t, x: x * abs(0.5 * x.shape[0] - 3), "step": lambda t, x: t.arange(0, x.shape[0] * 0.5, 0.7) * 2,
    "size of steps": lambda t, x: t.arange(0, x.shape[0] * 0.5, 0.7).shape[0] * 0.5 * x,
    "two": lambda t, x: (t.arange(0, x.shape[0] * 0.5, 0.7), t.arange(0, x.shape[0] * 0.5, 0.3)),
}  # fmt: skip


@pytest.mark.parametrize("name", STORED)
def test_rounded_numbers_are_stored(torch, tmp_path, name):
    function = STORED[name]
    program = exported(torch, lambda x: function(torch, x), torch.arange(6.0), dynamic_shapes=(({0: torch.export.Dim("n", min=4)},),))
    torch.export.save(program, tmp_path / "program.pt2")
    loaded = torch.export.load(tmp_path / "program.pt2")
    torch.export.save(loaded, tmp_path / "again.pt2")
    for made in (program, loaded, torch.export.load(tmp_path / "again.pt2")):
        for n in (4, 5, 6, 11, 40):
            x = torch.arange(float(n))
            torch.testing.assert_close(made.module()(x), function(torch, x))


def test_rounding_in_files_has_one_argument(torch):
    from teletensor.export._targets import check_arguments, target_of

    assert target_of("builtins.round") is round and target_of("math.ceil") is math.ceil
    check_arguments(round, (2.5,), {})
    for args, keywords in (((2.5, 10**9), {}), ((), {}), ((2.5,), {"ndigits": 3})):
        with pytest.raises(RuntimeError, match="expected"):
            check_arguments(round, args, keywords)
    for name in ("builtins.pow", "builtins.eval", "math.factorial", "math.comb"):
        with pytest.raises(NotImplementedError, match="does not exist here"):
            target_of(name)


@pytest.mark.parametrize("kind", ["AUTO", "DYNAMIC", "named"])
def test_rounded_floats_have_the_bounds_of_declared_sizes(torch, kind):
    """interpolate() requires a result that is not empty, which it is for all sizes from 1 on."""
    dim = torch.export.Dim

    class Double(torch.nn.Module):
        def forward(self, x):
            return torch.nn.functional.interpolate(x, scale_factor=1.5)

    declared = dim("n") if kind == "named" else getattr(dim, kind)
    program = torch.export.export(Double(), (torch.randn(2, 3, 8),), dynamic_shapes=({2: declared},))
    x = torch.randn(2, 3, 21)
    assert torch.equal(program.module()(x), Double()(x))
