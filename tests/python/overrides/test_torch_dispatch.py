"""__torch_dispatch__: modes, subclasses with values and wrapper subclasses, and torch.ops.aten."""

import json
from pathlib import Path

import pytest

from tests.python.names.record import plain
from tests.python.names.test_values import check

from .aten_cases import evaluate, rows

VALUES = json.loads(Path(__file__).with_name("overridable.json").read_text())["values"]


@pytest.fixture
def dispatch(torch):
    from teletensor.utils import _python_dispatch

    return _python_dispatch


@pytest.fixture
def logging_mode(dispatch):
    class Log(dispatch.TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.calls = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.calls.append((str(func), len(args), sorted(kwargs or {})))
            return func(*args, **(kwargs or {}))

    return Log


# (statement, the operators that a mode receives, with the number of positional arguments and the names of the others).
# The operators of the first group are PyTorch's for the same statement; those of the second are of the engine.
SAME_AS_PYTORCH = [
    ("x + 1", [("aten.add.Tensor", 2, [])]),
    ("1 - x", [("aten.rsub.Scalar", 2, [])]),
    ("x * x", [("aten.mul.Tensor", 2, [])]),
    ("x / 2", [("aten.div.Tensor", 2, [])]),
    ("x ** 2", [("aten.pow.Tensor_Scalar", 2, [])]),
    ("x == 1", [("aten.eq.Scalar", 2, [])]),
    ("x < x", [("aten.lt.Tensor", 2, [])]),
    ("-x", [("aten.neg.default", 1, [])]),
    ("x.add_(1)", [("aten.add_.Tensor", 2, [])]),
    ("torch.add(x, x, alpha=2)", [("aten.add.Tensor", 2, ["alpha"])]),
    ("torch.add(x, 1, out=y)", [("aten.add.out", 2, ["out"])]),
    ("x.sum()", [("aten.sum.default", 1, [])]),
    ("x.sum(1)", [("aten.sum.dim_IntList", 2, [])]),
    ("x.mean(0)", [("aten.mean.dim", 2, [])]),
    ("x.max()", [("aten.max.default", 1, [])]),
    ("x.max(0)", [("aten.max.dim", 2, [])]),
    ("x.clamp(0, 1)", [("aten.clamp.default", 3, [])]),
    ("torch.cat([x, x])", [("aten.cat.default", 1, [])]),
    ("torch.where(x > 0, x, y)", [("aten.gt.Scalar", 2, []), ("aten.where.self", 3, [])]),
    ("torch.zeros(2, dtype=torch.float64)", [("aten.zeros.default", 1, ["dtype"])]),
    ("torch.arange(4)", [("aten.arange.default", 1, [])]),
    ("torch.relu(x)", [("aten.relu.default", 1, [])]),
    ("x.view(-1)", [("aten.view.default", 2, [])]),
    ("x.transpose(0, 1)", [("aten.transpose.int", 3, [])]),
    ("x.detach()", [("aten.detach.default", 1, [])]),
    ("x.clone()", [("aten.clone.default", 1, [])]),
    ("x.split(1)", [("aten.split.Tensor", 2, [])]),
    ("x.fill_(3)", [("aten.fill_.Scalar", 2, [])]),
    ("x.copy_(y)", [("aten.copy_.default", 2, [])]),
    ("x.to(torch.float64)", [("aten._to_copy.default", 1, ["dtype"])]),
    ("x[0]", [("aten.select.int", 3, [])]),
    ("x[i]", [("aten.index.Tensor", 2, [])]),
    ("x[[1, 0]]", [("aten.index.Tensor", 2, [])]),
    ("x[True]", [("aten.unsqueeze.default", 2, []), ("aten.index.Tensor", 2, [])]),
    ("x.__setitem__(i, 1.0)", [("aten.index_put_.default", 3, [])]),
    ("torch.tensor(x)", [("aten.detach.default", 1, []), ("aten.clone.default", 1, [])]),
]  # fmt: skip
OF_THE_ENGINE = [
    ("x @ x.mT", [("aten.transpose.int", 3, []), ("aten.matmul.default", 2, [])]),
    ("x[:, 1:]", [("aten.slice.Tensor", 4, [])]),
    ("x.T", [("aten.permute.default", 2, [])]),
    ("x.softmax(-1)", [("aten.softmax.int", 2, [])]),
    ("F.linear(x, y)", [("aten.linear.default", 2, [])]),
    ("F.dropout(x, 0.5)", [("aten.dropout.default", 3, [])]),
    ("F.cross_entropy(x, i)", [("teletensor.cross_entropy.default", 3, ["ignore_index", "label_smoothing", "reduction"])]),
    ("x.__setitem__(0, 1.0)", [("aten.select.int", 3, []), ("aten.copy_.default", 2, [])]),
]  # fmt: skip


@pytest.mark.parametrize("call, expected", SAME_AS_PYTORCH + OF_THE_ENGINE, ids=[r[0] for r in SAME_AS_PYTORCH + OF_THE_ENGINE])
def test_operators_that_a_mode_receives(torch, logging_mode, call, expected):
    def run():
        names = {"torch": torch, "F": torch.nn.functional}
        x, y, i = torch.arange(6.0).reshape(2, 3), torch.ones(2, 3), torch.tensor([0, 1])
        torch.manual_seed(0)
        return names, {"x": x, "y": y, "i": i}, x

    names, values, x = run()
    plain = eval(call, names, values)
    before = x.tolist()
    names, values, x = run()
    with logging_mode() as mode:
        result = eval(call, names, values)
    assert mode.calls == expected and x.tolist() == before
    if isinstance(plain, torch.Tensor):
        assert result.tolist() == plain.tolist() and result.dtype == plain.dtype


def test_a_mode_receives_the_callers_objects_and_replaces_results(torch, dispatch):
    class Zero(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            assert args[0] is x
            return torch.zeros(1) if func is torch.ops.aten.add.Tensor else NotImplemented

    x = torch.ones(2)
    with Zero():
        assert (x + 1).tolist() == [0] and dispatch.is_in_torch_dispatch_mode()
        with pytest.raises(TypeError, match="Multiple dispatch failed for 'torch.ops.aten.mul.Tensor'; all __torch_dispatch__"):
            torch.mul(x, 2)
        with dispatch._disable_current_modes() as modes:
            assert (x * 2).tolist() == [2, 2] and len(modes) == 1
    assert dispatch._get_current_dispatch_mode() is None and (x + 1).tolist() == [2, 2]


def test_gradients_with_a_mode(torch, logging_mode):
    x = torch.ones(2, requires_grad=True)
    with logging_mode() as mode:
        y = (x * 3).sum()
        with pytest.raises(NotImplementedError, match="do not reach the active TorchDispatchMode"):
            y.backward()
    y.backward()
    assert x.grad.tolist() == [3, 3] and [c[0] for c in mode.calls] == ["aten.mul.Tensor", "aten.sum.default"]


def test_a_subclass_with_values(torch):
    from teletensor.utils import _pytree as pytree

    class Counting(torch.Tensor):
        seen = []

        __torch_function__ = torch._C._disabled_torch_function_impl

        @staticmethod
        def __new__(cls, data):
            return torch.Tensor._make_subclass(cls, data)

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            cls.seen.append((str(func), types))
            return func(*pytree.tree_map_only(cls, lambda t: t.as_subclass(torch.Tensor), args), **(kwargs or {}))

    x = Counting(torch.ones(2))
    assert type(x) is Counting and type(x + 1) is torch.Tensor and (2 * x).tolist() == [2, 2] and x.tolist() == [1, 1]
    assert torch.stack([x, torch.ones(2)]).shape == (2, 2)
    assert Counting.seen == [(f"aten.{name}", (Counting,)) for name in ("add.Tensor", "mul.Tensor", "stack.default")]


class TestWrapper:
    """A wrapper subclass that scales the values of an inner tensor."""

    @pytest.fixture
    def scaled(self, torch, dispatch):
        class Scaled(torch.Tensor):
            __torch_function__ = torch._C._disabled_torch_function_impl

            @staticmethod
            def __new__(cls, inner, scale):
                return torch.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype, device=inner.device)

            def __init__(self, inner, scale):
                self.inner, self.scale = inner, scale

            def __tensor_flatten__(self):
                return ["inner"], self.scale

            @staticmethod
            def __tensor_unflatten__(inner, scale, size, stride):
                return Scaled(inner["inner"], scale)

            def value(self):
                return self.inner * self.scale

            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                if func is torch.ops.aten.detach.default:
                    return Scaled(args[0].inner.detach(), args[0].scale)
                if func is torch.ops.aten.mul_.Tensor:
                    args[0].scale *= args[1]
                    return dispatch.return_and_correct_aliasing(func, args, kwargs, args[0])
                if func is torch.ops.aten.view.default:
                    return Scaled(args[0].inner.view(*args[1]), args[0].scale)
                if func is torch.ops.aten.tanh.default:
                    return NotImplemented
                plain = [a.value() if isinstance(a, Scaled) else a for a in args]
                return func(*plain, **(kwargs or {}))

        return Scaled

    def test_data_is_detached_by_the_subclass(self, torch, scaled):
        x = scaled(torch.arange(3.0), 2.0)
        assert type(x.data) is scaled and x.data is not x
        assert x.data.value().tolist() == [0.0, 2.0, 4.0]

    def test_operators(self, torch, scaled):
        x = scaled(torch.arange(6.0).reshape(2, 3), 2.0)
        assert x.shape == (2, 3) and x.stride() == (3, 1) and x.dtype is torch.float32 and x.device.type == "cpu"
        assert (x + 1).tolist() == [[1, 3, 5], [7, 9, 11]] and x.sum().item() == 30 and x[1, 2].item() == 10
        assert (x @ torch.ones(3)).tolist() == [6, 24] and torch.nn.functional.linear(torch.ones(1, 3), x).tolist() == [[6, 24]]
        assert x.mul_(2) is x and x.scale == 4 and type(x.view(-1)) is scaled and x.view(-1).shape == (6,)
        assert x.detach() is not x and type(x.detach()) is scaled
        with pytest.raises(TypeError, match="aten.tanh.default'; all __torch_dispatch__ handlers returned NotImplemented"):
            torch.tanh(x)

    def test_results_have_names(self, torch, scaled):
        largest = torch.max(scaled(torch.arange(6.0).reshape(2, 3), 2.0), 1)
        assert largest.values.tolist() == [4, 10] and type(largest) is type(torch.max(torch.ones(2, 3), 1))

    def test_copies(self, torch, scaled):
        copied = torch.tensor(scaled(torch.ones(2), 2.0), dtype=torch.float64)
        assert copied.tolist() == [2, 2] and copied.dtype is torch.float64

    def test_text(self, torch, scaled):
        assert repr(scaled(torch.ones(2, 3), 2.0)) == "Scaled(..., size=(2, 3))"

    def test_gradients_of_inner_tensors(self, torch, scaled):
        inner = torch.ones(3, requires_grad=True)
        (scaled(inner, 3.0) * 2).sum().backward()
        assert inner.grad.tolist() == [6, 6, 6]

    def test_parameters_of_modules(self, torch, scaled):
        linear = torch.nn.Linear(3, 2, bias=False)
        with pytest.raises(NotImplementedError, match="requires_grad"):
            torch.nn.Parameter(scaled(torch.ones(2, 3), 2.0))
        linear.weight = torch.nn.Parameter(scaled(torch.ones(2, 3), 2.0), requires_grad=False)
        assert isinstance(linear.weight, torch.nn.Parameter) and isinstance(linear.weight, scaled)
        assert linear(torch.ones(1, 3)).tolist() == [[6, 6]] and list(dict(linear.named_parameters())) == ["weight"]

    @pytest.mark.parametrize("call", ["x.item()", "x.tolist()", "x.numpy()", "x.requires_grad_()", "bool(x)"])
    def test_what_has_no_values_raises(self, torch, scaled, call):
        with pytest.raises(NotImplementedError, match="no values in the engine"):
            eval(call, {"torch": torch}, {"x": scaled(torch.ones(1), 2.0)})

    def test_helpers(self, torch, scaled, dispatch):
        x = scaled(torch.ones(2), 2.0)
        assert dispatch.is_traceable_wrapper_subclass(x) and not dispatch.is_traceable_wrapper_subclass(torch.ones(1))
        doubled = dispatch.transform_subclass(x, lambda name, inner: inner * 2)
        assert type(doubled) is scaled and doubled.value().tolist() == [4, 4]
        with pytest.raises(NotImplementedError, match="tensors inside"):
            torch.Tensor._make_wrapper_subclass(scaled, (2,), requires_grad=True)
        with pytest.raises(RuntimeError, match="must define __torch_dispatch__"):
            torch.Tensor._make_wrapper_subclass(torch.Tensor, (2,))


def test_parameter_of_a_subclass(torch):
    class Mine(torch.Tensor):
        pass

    p = torch.nn.Parameter(torch.ones(2).as_subclass(Mine))
    assert type(p) is Mine and isinstance(p, torch.nn.Parameter) and p.requires_grad and p.is_leaf
    assert not isinstance(torch.ones(2).as_subclass(Mine), torch.nn.Parameter)
    (p * 2).sum().backward()
    assert p.grad.tolist() == [2, 2] and type(torch.nn.Parameter(torch.ones(1))) is torch.nn.Parameter


TEXTS = [
    ("torch.ones(2).as_subclass(Mine)", "Mine([1., 1.])"),
    ("torch.ones(2, requires_grad=True).as_subclass(Mine)", "Mine([1., 1.], requires_grad=True)"),
    ("torch.nn.Parameter(torch.ones(2).as_subclass(Mine))", "Parameter(Mine([1., 1.], requires_grad=True))"),
    ("MyParameter(torch.ones(1))", "Parameter containing:\nParameter(MyParameter([1.], requires_grad=True))"),
    ("copy.deepcopy(torch.ones(2).as_subclass(Mine))", "Mine([1., 1.])"),
    ("torch.ones(2).as_subclass(Mine)[:1]", "Mine([1.])"),
    ("Mine([1, 2])", "Mine([1., 2.])"),
]  # fmt: skip


@pytest.mark.parametrize("code, text", TEXTS, ids=[row[0] for row in TEXTS])
def test_text_of_subclasses(torch, code, text):
    import copy

    names = {"Mine": type("Mine", (torch.Tensor,), {}), "MyParameter": type("MyParameter", (torch.nn.Parameter,), {})}
    assert repr(eval(code, {"torch": torch, "copy": copy, **names})) == text


@pytest.mark.parametrize("row", rows())
def test_values_of_aten(torch, row):
    check(plain(evaluate(torch, row)), VALUES[row], row)


def test_operators_of_gradients_have_the_gradients_of_the_functions(torch):
    aten, F = torch.ops.aten, torch.nn.functional
    torch.manual_seed(0)
    x, g, w = torch.randn(4, 6, dtype=torch.double), torch.randn(4, 6, dtype=torch.double), torch.rand(6, dtype=torch.double)
    x.requires_grad_()
    results = {
        aten.gelu_backward: (F.gelu(x), (g, x)),
        aten.softplus_backward: (F.softplus(x), (g, x, 1, 20)),
        aten.mish_backward: (F.mish(x), (g, x)),
    }
    for operator, (result, arguments) in results.items():
        expected = torch.autograd.grad(result, x, g, create_graph=True)
        actual = operator(*arguments)
        assert torch.allclose(actual, expected[0])
        second = [torch.autograd.grad(value.square().sum(), x)[0] for value in (actual, *expected)]
        assert torch.allclose(*second)
    w.requires_grad_()
    rstd = aten._fused_rms_norm(x, [6], w, 1e-5)[1]
    assert rstd.shape == (4, 1)
    expected = torch.autograd.grad(F.rms_norm(x, (6,), w, 1e-5), (x, w), g)
    actual = aten._fused_rms_norm_backward(g, x, [6], rstd, w, [True, True])
    assert all(torch.allclose(a, e) for a, e in zip(actual, expected))
    assert aten._fused_rms_norm_backward(g, x, [6], rstd, w, [False, True])[0] is None
    assert not aten.mish_backward(g, x.detach()).requires_grad


def test_errors_of_operators_with_parameters_in_order(torch):
    aten, x = torch.ops.aten, torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="missing value for argument 'reduction'"):
        aten.nll_loss_forward.default(x, torch.tensor([0, 1]), None)
    with pytest.raises(RuntimeError, match="Unknown keyword argument 'eps'"):
        aten.silu_backward.default(x, x, eps=1)
    with pytest.raises(NotImplementedError, match="scales that lead to the output size"):
        aten.upsample_bilinear2d(torch.ones(1, 1, 2, 2), [4, 4], False, 1.5, 2.0)
    with pytest.raises(RuntimeError, match="negative slope"):
        aten.leaky_relu_backward(x, x, -0.5, True)
    with pytest.raises(RuntimeError, match="dtype bool"):
        aten._is_all_true(x)


def test_overloads_of_aten(torch):
    aten = torch.ops.aten
    assert str(aten.add.Tensor) == "aten.add.Tensor" and aten.add.Tensor.name() == "aten::add.Tensor"
    assert aten.add.Tensor.__name__ == "add.Tensor" and aten.add.overloads()[:2] == ["Tensor", "Scalar"]
    assert str(aten.add.Tensor._schema) == "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    assert aten.relu.default.overloadpacket is aten.relu and "relu" in dir(aten) and not hasattr(aten, "no_such_operator")
    for name in dir(aten):  # every declaration is well-formed
        packet = getattr(aten, name)
        assert all(getattr(packet, overload)._overloadname == overload for overload in packet.overloads())
    with pytest.raises(AttributeError, match="no overload name 'Nothing'"):
        aten.add.Nothing  # noqa: B018
    with pytest.raises(RuntimeError, match="no overload for these arguments"):
        aten.add("text", 1)


@pytest.mark.parametrize("call", ["torch.sum(p)", "torch.nn.functional.linear(x, p)", "torch.cat([x, p])", "p.sum()", "p + 1"])
def test_uninitialized_parameters_refuse_functions(torch, call):
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
        eval(call, {"torch": torch}, {"x": torch.ones(2), "p": torch.nn.parameter.UninitializedParameter()})


def test_custom_operators_reach_modes(torch):
    received = []

    class Functions(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            received.append(str(func))
            return func(*args, **(kwargs or {}))

    class Operators(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            received.append((str(func), args[1:], kwargs))
            return func(*args, **(kwargs or {}))

    library = torch.library.Library("handlers_test", "DEF")
    library.define("scaled(Tensor x, int by=2, *, bool negate=False) -> Tensor")
    library.impl("scaled", lambda x, by=2, negate=False: x * (-by if negate else by), "CompositeExplicitAutograd")
    scaled, x = torch.ops.handlers_test.scaled, torch.ones(2)
    with Functions():
        assert scaled(x).tolist() == [2, 2]
    assert received[0] == "handlers_test.scaled"
    received.clear()
    with Operators():
        assert scaled.default(x, by=3, negate=True).tolist() == [-3, -3]
        assert scaled(x, 2).tolist() == [2, 2]
    operators = [call for call in received if call[0].startswith("handlers_test")]
    assert operators == [("handlers_test.scaled.default", (3,), {"negate": True}), ("handlers_test.scaled.default", (), {})]
