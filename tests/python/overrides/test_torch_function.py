"""__torch_function__ of arguments: which function, types and arguments a handler receives, and what its result does."""

import operator

import pytest


class Foreign:
    """An object that is not a tensor and handles every call."""

    def __init__(self):
        self.calls = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls.append((func, types, args, kwargs))
        return "handled"


# (expression, name of the function that the handler receives, number of positional arguments)
CALLS = [
    ("torch.add(f, 1)", "torch.add", 2),
    ("torch.add(t, f)", "torch.add", 2),
    ("torch.add(t, other=f)", "torch.add", 1),
    ("torch.cat([f, t])", "torch.cat", 1),
    ("torch.stack((t, f), dim=0)", "torch.stack", 1),
    ("torch.sum(t, f)", "torch.sum", 2),
    ("torch.zeros(2, f)", "torch.zeros", 2),
    ("torch.zeros(2, dtype=f)", "torch.zeros", 1),
    ("torch.zeros(2, device=f)", "torch.zeros", 1),
    ("torch.einsum('ij->i', f)", "torch.einsum", 2),
    ("torch.linalg.inv(f)", "torch.linalg.inv", 1),
    ("torch.fft.fft(f)", "torch.fft.fft", 1),
    ("torch.special.erf(f)", "torch.special.erf", 1),
    ("F.relu(f)", "F.relu", 1),
    ("F.dropout(f, 0.5)", "F.dropout", 1),  # the others by name
    ("F.linear(t, f)", "F.linear", 2),
    ("F.linear(t, t, bias=f)", "F.linear", 2),
    ("torch.nn.init.uniform_(f)", "torch.nn.init.uniform_", 1),
    ("t.add(f)", "T.add", 2),
    ("t.add_(f)", "T.add_", 2),
    ("t.view(f, -1)", "T.view", 3),
    ("t.to(f)", "T.to", 2),
    ("t.copy_(f)", "T.copy_", 2),
    ("t[f]", "T.__getitem__", 2),
    ("t[f:]", "T.__getitem__", 2),
    ("t[0, f]", "T.__getitem__", 2),
    ("operator.setitem(t, 0, f) or 'handled'", "T.__setitem__", 3),
    ("t + f", "T.add", 2),
    ("f + t", "T.add", 2),
    ("t - f", "T.sub", 2),
    ("f - t", "T.__rsub__", 2),
    ("f / t", "T.__rdiv__", 2),
    ("t @ f", "T.matmul", 2),
    ("f ** t", "T.__rpow__", 2),
    ("t < f", "T.lt", 2),
    ("f < t", "T.gt", 2),
    ("t & f", "T.__and__", 2),
    ("operator.iadd(t, f)", "T.add_", 2),
]  # fmt: skip


@pytest.mark.parametrize("call, name, count", CALLS, ids=[row[0] for row in CALLS])
def test_handler_of_a_foreign_object(torch, call, name, count):
    f, names = Foreign(), {"torch": torch, "F": torch.nn.functional, "T": torch.Tensor, "operator": operator}
    assert eval(call, names, {"f": f, "t": torch.ones(2, 2)}) == "handled"
    ((func, types, args, _),) = f.calls
    assert func == eval(name, names) and types == (Foreign,) and len(args) == count
    assert func.__name__ == name.rpartition(".")[2]


class Refusing:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


REFUSED = [
    ("torch.add(t, r)", "Multiple dispatch failed for 'torch.add'; all __torch_function__ handlers returned NotImplemented:\n\n"
     "  - tensor subclass <class '{name}'>\n"),
    ("t.add(r)", "Multiple dispatch failed for 'torch.Tensor.add'; all __torch_function__ handlers returned NotImplemented:\n\n"
     "  - tensor subclass <class '{name}'>\n"),
    ("torch.nn.functional.dropout(r)", "no implementation found for 'torch.nn.functional.dropout' on types that implement "
     "__torch_function__: [<class '{name}'>]"),
    ("t + r", "unsupported operand type(s) for +: 'teletensor.Tensor' and 'Refusing'"),
]  # fmt: skip


@pytest.mark.parametrize("call, message", REFUSED, ids=[row[0] for row in REFUSED])
def test_all_handlers_refuse(torch, call, message):
    with pytest.raises(TypeError) as error:
        eval(call, {"torch": torch}, {"r": Refusing(), "t": torch.ones(2)})
    assert str(error.value) == message.format(name=f"{Refusing.__module__}.Refusing")


def test_subclasses_come_first_then_the_order_of_arguments(torch):
    seen = []

    def handler(cls, func, types, args=(), kwargs=None):
        seen.append(cls.__name__)
        return NotImplemented

    a, b = (type(name, (), {"__torch_function__": classmethod(handler)}) for name in "AB")
    sub = type("SubA", (a,), {})
    with pytest.raises(TypeError, match="Multiple dispatch failed"):
        torch.cat([a(), b(), sub(), a()])
    assert seen == ["SubA", "A", "B"]


def test_results_of_subclasses(torch):
    class Mine(torch.Tensor):
        pass

    x = torch.ones(2, 3).as_subclass(Mine)
    for result in (x + 1, 1 - x, torch.add(x, 1), x.sum(), x[0], x.T, -x, torch.nn.functional.relu(x), x.to(torch.float64)):
        assert type(result) is Mine
    assert all(type(row) is Mine for row in torch.split(x, 1)) and type(torch.max(x, 0).values) is Mine
    assert type(x.shape) is torch.Size and x.tolist() == [[1, 1, 1], [1, 1, 1]]
    with torch._C.DisableTorchFunctionSubclass():
        assert type(x + 1) is torch.Tensor
    assert type(torch.nn.Parameter(torch.ones(2)) + 1) is torch.Tensor
    x.requires_grad_()
    (x * 3).sum().backward()
    assert type(x.grad) is torch.Tensor and x.grad.tolist() == [[3, 3, 3], [3, 3, 3]]
