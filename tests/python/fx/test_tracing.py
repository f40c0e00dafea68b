"""Traced programs compute what the programs compute: directly, interpreted, transformed, copied and imported again."""

from __future__ import annotations

import copy
import importlib.util
import itertools
import operator
import pickle
import sys

import numpy as np
import pytest

import teletensor as torch
from teletensor import fx, nn
from teletensor.fx.experimental import rewriter
from teletensor.utils import _pytree as pytree
from tests.conftest import DEVICES

from . import programs

PROGRAMS = programs.PLAIN + programs.CALLING
numbers = itertools.count()


def reimported(traced, folder):
    """The module that to_folder() wrote, imported."""
    path = folder / f"package{next(numbers)}"
    traced.to_folder(path, "Written")
    spec = importlib.util.spec_from_file_location(path.name, path / "__init__.py", submodule_search_locations=[str(path)])
    package = importlib.util.module_from_spec(spec)
    sys.modules[path.name] = package
    spec.loader.exec_module(package)
    return package.Written()


# What is made of a traced module.
FORMS = {
    "traced": lambda traced, _: traced,
    "interpreted": lambda traced, _: fx.Interpreter(traced).run,
    "transformed": lambda traced, _: fx.Transformer(traced).transform(),
    "copied": lambda traced, _: copy.deepcopy(traced),
    "copied shallowly": lambda traced, _: copy.copy(traced),
    "replicated": lambda traced, _: traced._replicate_for_data_parallel(),
    "traced again": lambda traced, _: fx.symbolic_trace(traced),
    "from its graph": lambda traced, _: fx.GraphModule(traced, copy.deepcopy(traced.graph)),
    "pickled": lambda traced, _: pickle.loads(pickle.dumps(traced)),
    "to_folder": reimported,
}


def compiled(source):
    """The function that a source defines, outside of this module."""
    namespace = {}
    exec(source, namespace)
    return namespace[source.split("(")[0][4:]]


def inputs_of(sizes):
    torch.manual_seed(7)
    return [torch.randn(*size).requires_grad_() for size in sizes]


def results_and_gradients(program, root, inputs):
    """The numbers that a program returns, and the gradients of their sum by the inputs and parameters."""
    leaves = pytree.tree_leaves(program(*inputs))
    differentiable = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    sources = [*inputs, *(root.parameters() if isinstance(root, nn.Module) else ())]
    gradients = torch.autograd.grad(sum(leaf.sum() for leaf in differentiable), sources, allow_unused=True)
    return [np.asarray(leaf.detach()) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves], gradients


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.filterwarnings("ignore:Was not able to save")
def test_results_and_gradients_are_the_programs(program, form, tmp_path):
    torch.manual_seed(3)
    root, sizes = program(torch)
    inputs = inputs_of(sizes)
    expected, expected_gradients = results_and_gradients(root, root, inputs)
    traced = fx.symbolic_trace(root)
    traced.graph.lint()
    made = FORMS[form](traced, tmp_path)
    found, gradients = results_and_gradients(made, made if isinstance(made, nn.Module) else traced, inputs)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    # Parameters that are not used are no part of the traced module.
    for a, b in zip(gradients[: len(inputs)], expected_gradients, strict=False):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_array_equal(a.numpy(), b.numpy())
    total = sum(float(g.abs().sum()) for g in gradients if g is not None)
    assert total == pytest.approx(sum(float(g.abs().sum()) for g in expected_gradients if g is not None), rel=1e-6)


def test_a_traced_module_trains_as_the_module():
    torch.manual_seed(0)
    module, (size,) = programs.perceptron(torch)
    x, losses = torch.randn(*size), []
    for root in (copy.deepcopy(module), fx.symbolic_trace(copy.deepcopy(module))):
        optimizer = torch.optim.SGD(root.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            loss = root(x).square().mean()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    assert losses[0] == losses[1]


def f_flag(x, flag, many=(1, 2)):
    return x + many[0] if flag else x - many[1]


def f_dict(d, y):
    return {"sum": d["a"] + d["b"][0], "y": y}


def f_pair(pair, table):
    return {"sum": pair[0] + table["b"], "rest": [pair[1], (table["a"],)]}


PH = fx.PH
# (function, concrete arguments, arguments of the call, the call's arguments with a value other than the traced one)
CONCRETE = [
    (f_flag, {"flag": True}, (1.0, True), (1.0, False)),
    (f_flag, {"flag": False, "many": (PH, PH)}, (1.0, False, (5, 6)), (1.0, True, (5, 6))),
    (f_flag, {"flag": None}, (1.0, None), (1.0, 3)),
    (f_pair, {"pair": (PH, PH), "table": {"a": PH, "b": PH}}, ((1, 2), {"a": 3, "b": 4}), None),
    (f_pair, {"pair": (PH, 5), "table": {"a": PH, "b": PH}}, ((1, 5), {"a": 3, "b": 4}), ((1, 6), {"a": 3, "b": 4})),
    (f_dict, {"d": {"a": PH, "b": [PH, 7]}}, ({"a": 1, "b": [2, 7]}, 3), ({"a": 1, "b": [2, 8]}, 3)),
]


@pytest.mark.parametrize(("function", "concrete", "args", "other"), CONCRETE)
def test_concrete_arguments(function, concrete, args, other, tmp_path):
    traced = fx.symbolic_trace(function, concrete_args=concrete)
    for form in (traced, copy.deepcopy(traced), fx.Interpreter(traced).run, reimported(traced, tmp_path)):
        assert form(*args) == function(*args)
        if other is None:
            continue
        with pytest.raises(AssertionError, match="has been specialized to have value"):
            form(*other)


def test_leaf_modules_are_chosen_by_the_tracer():
    class Everything(fx.Tracer):
        def is_leaf_module(self, m, qualified_name):
            return qualified_name == "0"

    root = nn.Sequential(nn.Sequential(nn.ReLU()), nn.Sequential(nn.Flatten()))
    names = [(n.op, n.target) for n in fx.Tracer().trace(root).nodes if n.op.startswith("call")]
    assert names == [("call_module", "0.0"), ("call_module", "1.0")]
    names = [(n.op, n.target) for n in Everything().trace(root).nodes if n.op.startswith("call")]
    assert names == [("call_module", "0"), ("call_method", "flatten")]


def test_nodes_record_modules_and_lines():
    class Recording(fx.Tracer):
        record_stack_traces = True

    root, _ = programs.residual(torch)
    nodes = {node.name: node for node in Recording().trace(root).nodes}
    stack = list(nodes["blocks_1_conv"].meta["nn_module_stack"].values())
    assert [path for path, _ in stack] == ["", "blocks.1", "blocks.1.conv"][1:]
    assert "self.act(x + self.norm(self.conv(x)))" in nodes["blocks_1_conv"].stack_trace
    assert "fx/proxy.py" not in nodes["blocks_1_conv"].stack_trace


@fx.wrap
def leaf(x, n):
    return x + (1 if x > n else 2)


fx.wrap("len")


def test_wrapped_functions_become_nodes(tmp_path):
    def f(x):
        return leaf(x, 3) + len(x.shape)

    traced = fx.symbolic_trace(f)
    targets = [node.target for node in traced.graph.nodes if node.op == "call_function"]
    assert targets[0] is leaf
    assert leaf(5, 3) == 6
    for form in FORMS.values():
        made = form(traced, tmp_path)
        assert made(torch.tensor(5.0)).item() == 6
        assert made(torch.tensor(1.0)).item() == 3


def test_autowrapped_functions_become_nodes():
    import math

    def f(x):
        return math.sqrt(x)

    traced = fx.GraphModule({}, fx.Tracer().trace(f))
    assert [n.target for n in traced.graph.find_nodes(op="call_function", target=math.sqrt)] == [math.sqrt]
    assert traced(4.0) == 2.0


def test_a_class_of_proxyable_instances_becomes_a_node():
    class Point(metaclass=fx.ProxyableClassMeta):
        def __init__(self, x, y):
            self.x, self.y = x, y

    def f(x, y):
        point = Point(x + y, y)
        return point.x * point.y

    assert fx.symbolic_trace(f)(2, 3) == 15


def test_assertions_are_traced_if_wanted():
    class Asserting(fx.Tracer):
        trace_asserts = True

    f = compiled("def f(x):\n    assert x.sum() > 0\n    return x")  # pytest rewrites the assertions of this file
    traced = fx.GraphModule({}, Asserting().trace(f))
    assert traced(torch.ones(2)).tolist() == [1, 1]
    with pytest.raises(AssertionError):
        traced(-torch.ones(2))


def branch(x):
    return x if x.sum() > 0 else -x


def loop(x):
    return [y for y in x]


def iterate(*xs):
    return xs[0](*xs[1])


def foreign(x):
    return x + torch.nn.Parameter(torch.ones(2))


def unknown(x):
    return x.f(object())


def keys(x):
    return x.f({x: 1})


# what raises, and the error that PyTorch raises
ERRORS = [
    (lambda: fx.symbolic_trace(branch), fx.proxy.TraceError, "symbolically traced variables cannot be used as inputs to"),
    (lambda: fx.symbolic_trace(loop), fx.proxy.TraceError, "Proxy object cannot be iterated"),
    (lambda: fx.symbolic_trace(iterate), fx.proxy.TraceError, "Proxy object cannot be iterated"),
    (lambda: fx.symbolic_trace(compiled("def length(x):\n    return len(x)")), RuntimeError, "'len' is not supported"),
    (lambda: fx.symbolic_trace(foreign), NameError, "parameter is not a member of this module"),
    (lambda: fx.symbolic_trace(unknown), NotImplementedError, "argument of type: <class 'object'>"),
    (lambda: fx.symbolic_trace(keys), RuntimeError, "Keys for dictionaries used as an argument cannot contain a Node"),
    (lambda: fx.symbolic_trace(branch, concrete_args=(1, 2)), RuntimeError, "Tracing expected 1 arguments but got 2"),
    (lambda: fx.wrap(3), RuntimeError, "Unsupported type for global function"),
    (lambda: fx.wrap("len"), NotImplementedError, "wrap must be called at the top level of a module"),
    (lambda: fx.GraphModule({}, fx.Tracer().trace(programs.shared(torch)[0])), RuntimeError, "was not provided in ``root``"),
    (lambda: fx.GraphModule(3, fx.Graph()), RuntimeError, "Unsupported type 3 passed for root!"),
    (lambda: fx.Interpreter(fx.symbolic_trace(abs_of)).run(), RuntimeError, "Expected positional argument for parameter x"),
    (lambda: fx.Interpreter(fx.symbolic_trace(abs_of)).boxed_run([1, 2]), RuntimeError, "received 2 .extra arguments"),
]  # fmt: skip


def abs_of(x):
    return abs(x)


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS, ids=lambda value: value if isinstance(value, str) else "")
def test_errors_of_tracing(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_an_error_in_generated_code_shows_its_line(capsys):
    traced = fx.symbolic_trace(abs_of)
    with pytest.raises(TypeError):
        traced("text")
    assert "Call using an FX-traced Module, line 5" in capsys.readouterr().err


def test_an_error_of_the_interpreter_names_the_node():
    with pytest.raises(TypeError, match="While executing %abs_1"):
        fx.Interpreter(fx.symbolic_trace(abs_of)).run("text")


def test_a_module_is_pickled_by_its_source():
    traced = fx.symbolic_trace(abs_of)
    traced.graph.find_nodes(op="call_function", target=operator.abs)[0].stack_trace = "a line"
    read = pickle.loads(pickle.dumps(traced))
    assert read(-3) == 3
    assert read.code == traced.code
    assert [n.stack_trace for n in read.graph.nodes if n.op == "call_function"] == ["a line"]


@pytest.mark.skipif("cuda" not in DEVICES, reason="needs two GPUs")
def test_a_traced_module_is_replicated_on_gpus():
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(4, 4), nn.ReLU()).to("cuda"))
    x = torch.randn(6, 4, device="cuda")
    result = nn.DataParallel(traced, device_ids=[0, 1])(x)
    np.testing.assert_allclose(result.detach().cpu().numpy(), traced(x).detach().cpu().numpy(), rtol=1e-5)
    result.sum().backward()
    assert traced.get_parameter("0.weight").grad is not None


class Checked(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)

    def forward(self, x, limit=0.0):
        y: torch.Tensor = self.lin(x)
        assert x.sum() > limit, "too small"
        return y


def test_assertions_and_annotations_are_rewritten():
    root, text = nn.Sequential(Checked(), nn.ReLU()), "of the enclosing function"

    def f(x):
        assert x > 0, text
        return leaf(x, 1)

    traced = fx.GraphModule(root, rewriter.RewritingTracer().trace(root))
    x = torch.ones(1, 2)
    np.testing.assert_array_equal(traced(x).detach().numpy(), root(x).detach().numpy())
    assert [node.type for node in traced.graph.find_nodes(op="call_module")] == [torch.Tensor, None]
    with pytest.raises(AssertionError, match="too small"):
        traced(-x)
    function = fx.GraphModule({}, rewriter.RewritingTracer().trace(f))
    assert function(5) == 6
    with pytest.raises(AssertionError, match=text):
        function(-5)
    with pytest.raises(NotImplementedError, match="expected a function without decorators"):
        rewriter.AST_Rewriter().rewrite(lambda x: x)
