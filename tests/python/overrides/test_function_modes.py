"""TorchFunctionMode: which calls a mode receives, nesting, and the functions of torch.overrides."""

import threading

import pytest


@pytest.fixture
def overrides(torch):
    from teletensor import overrides

    return overrides


@pytest.fixture
def logging_mode(overrides):
    class Log(overrides.TorchFunctionMode):
        def __init__(self):
            self.names = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.names.append(overrides.resolve_name(func).removeprefix("torch."))
            return func(*args, **(kwargs or {}))

    return Log


# (statement, names of the calls that the mode receives)
CALLS = [
    ("x + 1", ["Tensor.add"]),
    ("1 - x", ["Tensor.__rsub__"]),
    ("x.add_(1)", ["Tensor.add_"]),
    ("x.shape", ["Tensor.shape.__get__"]),
    ("x.grad", ["Tensor.grad.__get__"]),
    ("x[0]", ["Tensor.__getitem__"]),
    ("x.__setitem__(0, 1.0)", ["Tensor.__setitem__"]),
    ("len(x)", ["Tensor.__len__"]),
    ("x.sum().item()", ["Tensor.sum", "Tensor.item"]),
    ("x.tolist()", ["Tensor.tolist"]),
    ("torch.zeros(2)", ["zeros"]),
    ("torch.tensor([1, 2])", ["tensor"]),
    ("torch.arange(3)", ["arange"]),
    ("torch.cat([x, x])", ["cat"]),
    ("torch.einsum('i->', x)", ["einsum"]),
    ("F.dropout(x)", ["nn.functional.dropout"]),
    ("torch.nn.ReLU()(x)", ["nn.functional.relu"]),
    ("torch.linalg.norm(x)", ["linalg.norm"]),
    ("torch.fft.fft(x)", ["fft.fft"]),
    ("torch.nn.init.uniform_(x)", ["nn.init.uniform_"]),
    ("torch.is_tensor(x)", []),
    ("torch.manual_seed(0)", []),
    ("torch.get_default_dtype()", []),
]  # fmt: skip


@pytest.mark.parametrize("call, names", CALLS, ids=[row[0] for row in CALLS])
def test_calls_that_a_mode_receives(torch, logging_mode, call, names):
    x = torch.ones(2)
    with logging_mode() as mode:
        eval(call, {"torch": torch, "F": torch.nn.functional}, {"x": x})
    assert mode.names == names


def test_nested_modes_from_the_innermost(torch, overrides):
    order = []

    class Named(overrides.TorchFunctionMode):
        def __init__(self, name):
            self.name = name

        def __torch_function__(self, func, types, args=(), kwargs=None):
            order.append(self.name)
            return func(*args, **(kwargs or {}))

    with Named("outer") as outer, Named("inner") as inner:
        assert overrides._get_current_function_mode_stack() == [outer, inner]
        assert torch.ones(1).tolist() == [1.0]
        with overrides._pop_mode_temporarily() as popped:
            assert popped is inner and overrides._get_current_function_mode() is outer
    assert order == ["inner", "outer", "inner", "outer"] and overrides._get_current_function_mode() is None


def test_a_mode_replaces_results_and_raises(torch, overrides):
    class Doubling(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func is torch.Tensor.tolist:
                raise ValueError("no lists")
            return func(*args, **(kwargs or {})) * (2 if func is torch.add else 1)

    x = torch.ones(1)
    with Doubling():
        y = torch.add(x, 1)
        with pytest.raises(ValueError, match="no lists"):
            y.tolist()
        with torch._C.DisableTorchFunction():
            assert y.tolist() == [4]
    assert y.tolist() == [4] and torch.add(x, 1).tolist() == [2]


def test_a_mode_is_of_its_thread(torch, logging_mode):
    results = []
    with logging_mode() as mode:
        thread = threading.Thread(target=lambda: results.append((torch.ones(2) + 1).tolist()))
        thread.start()
        thread.join()
    assert results == [[2, 2]] and mode.names == []


def test_messages(torch, overrides):
    class Refusing(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

        def __repr__(self):
            return "refusing"

    x = torch.ones(1)
    with Refusing():
        with pytest.raises(TypeError) as c:
            torch.add(x, 1)
        with pytest.raises(TypeError) as python:
            torch.nn.functional.dropout(x)
    assert str(c.value) == (
        "Multiple dispatch failed for 'torch.add'; all __torch_function__ handlers returned NotImplemented:\n\n"
        "  - mode object refusing\n"
    )
    assert str(python.value) == (
        "no implementation found for 'torch.nn.functional.dropout' on types that implement __torch_function__: [] nor in mode "
        "refusing"
    )


def test_functions_of_the_user(torch, overrides):
    @overrides.wrap_torch_function(lambda a, b=1: (a, b))
    def scaled(a, b=1):
        return a * b + 1

    class Mine(torch.Tensor):
        names = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.names.append(func.__name__)
            return overrides.redispatch_function(func, types, args, kwargs)

    x = torch.ones(1).as_subclass(Mine)
    assert type(scaled(x, 3)) is torch.Tensor and Mine.names == ["scaled", "mul"]  # the result of mul is no Mine
    assert scaled(torch.ones(1), 3).tolist() == [4]
    assert overrides.has_torch_function((x, 1)) and overrides.has_torch_function_unary(x)
    assert not overrides.has_torch_function_variadic(1, torch.ones(1), torch.nn.Parameter(torch.ones(1)))
    assert overrides.is_tensor_like(x) and overrides.is_tensor_like(torch.ones(1)) and not overrides.is_tensor_like(3)
    with overrides.BaseTorchFunctionMode():
        assert overrides.has_torch_function(()) and scaled(torch.ones(1), 2).tolist() == [3]


def test_default_device_within_a_mode(torch, logging_mode):
    with logging_mode() as mode, torch.device("meta"):
        x = torch.empty(2)
    assert x.device.type == "meta" and mode.names == ["empty"] and torch.empty(1).device.type == "cpu"
