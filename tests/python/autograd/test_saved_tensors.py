"""saved_tensors_hooks, save_on_cpu and allow_mutation_on_saved_tensors: which tensors they store, values, errors."""

import gc
import weakref
from contextlib import nullcontext

import numpy as np
import pytest

GRAPHS = {  # name: computes from x (3, 4) and w (4, 3)
    "mul": lambda torch, x, w: x * x * w.t(),
    "exp of a result": lambda torch, x, w: (x.exp() + 1).sigmoid(),
    "matmul": lambda torch, x, w: (x @ w).tanh(),
    "layer_norm": lambda torch, x, w: torch.nn.functional.layer_norm(x, (4,)) * w.t(),
    "in place": lambda torch, x, w: (x * 2).mul_(w.t()).exp_().sum(1),
    "view and write": lambda torch, x, w: (lambda y: (y[0].mul_(y[1].detach().clone()), y.square())[1])(x * w.t()),
    "cat": lambda torch, x, w: torch.cat([x, w.t(), x * x]).prod(0),
    "softmax": lambda torch, x, w: torch.softmax(x @ w, -1).pow(3),
    "branch that needs no gradient": lambda torch, x, w: (x * w.detach().t()).cos() + x.detach().exp(),
    "no saved tensors": lambda torch, x, w: x + w.t(),
}


def inputs(torch):
    values = np.random.default_rng(0).standard_normal((2, 12)).astype(np.float32)
    return torch.tensor(values[0].reshape(3, 4)).requires_grad_(), torch.tensor(values[1].reshape(4, 3)).requires_grad_()


def gradients(torch, graph, context=None, **options):
    x, w = inputs(torch)
    if context is None:
        y = graph(torch, x, w)
    else:
        with context:
            y = graph(torch, x, w)
    found = torch.autograd.grad(y.sum(), [x, w], allow_unused=True, **options)
    return [None if g is None else g for g in found]


def contexts(torch, log):
    graph = torch.autograd.graph

    def pack(t):
        log.append(("pack", tuple(t.shape)))
        return t.detach().numpy().copy()

    def unpack(array):
        log.append(("unpack", array.shape))
        return torch.from_numpy(array)

    return {
        "hooks": graph.saved_tensors_hooks(pack, unpack),
        "cpu": graph.save_on_cpu(pin_memory=True),
        "copies": graph.allow_mutation_on_saved_tensors(),
    }


@pytest.mark.parametrize("name", GRAPHS)
def test_gradients_are_those_without_hooks(torch, name):
    expected, log = gradients(torch, GRAPHS[name]), []
    for context in contexts(torch, log).values():
        for g, e in zip(gradients(torch, GRAPHS[name], context), expected):
            assert (g is None) == (e is None) and (g is None or torch.equal(g, e))
    shapes = {kind: sorted(shape for k, shape in log if k == kind) for kind in ("pack", "unpack")}
    assert shapes["pack"] == shapes["unpack"] and bool(log) == (name != "no saved tensors")


@pytest.mark.parametrize("kind", ["hooks", "cpu", "copies"])
def test_second_derivatives_and_second_passes(torch, kind):
    x, _ = inputs(torch)
    with contexts(torch, [])[kind]:
        y = (x**3).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(g.sum(), x, retain_graph=True)
    assert torch.allclose(second, 6 * x)
    y.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()


def test_order_and_nesting_are_pytorchs(torch):
    graph, rows = torch.autograd.graph, []
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True) * 2

    def hooks(name):
        return graph.saved_tensors_hooks(
            lambda t: (rows.append(f"{name} {t.requires_grad}"), t.detach())[1], lambda t: (rows.append("unpack " + name), t)[1]
        )

    with hooks("outer"):
        y = a * b
        with hooks("inner"):
            z = y.exp()
        with torch.no_grad():
            a * b
        (b.detach() * 2).exp()  # not recorded
    z.sum().backward()
    assert rows == ["outer True"] * 2 + ["inner True", "unpack inner", "unpack outer", "unpack outer"]


def test_a_saved_tensor_may_change_after_it_was_copied(torch):
    for kind in ("hooks", "cpu", "copies"):
        x = torch.ones(2, requires_grad=True)
        w = x.clone()
        with contexts(torch, [])[kind]:
            y = w**2
            w.sin_()
        y.sum().backward()
        assert x.grad.tolist() == [2, 2]


ERRORS = [  # (pack, unpack, exception, text)
    (lambda t: t, lambda p: 1, TypeError, "expected to be a Tensor but got result of type int"),
    (lambda t: t.add_(1), lambda p: p, RuntimeError, "pack hook is modifying its input in place"),
    (lambda t: t, lambda p: p[:1], RuntimeError, r"unpack_hook to return a tensor like .*float32\[2\].*, got .*float32\[1\]"),
    (lambda t: t, lambda p: p.double(), RuntimeError, "unpack_hook to return a tensor like"),
    (lambda t: 1 / 0, lambda p: p, ZeroDivisionError, "division"),
    (lambda t: t, lambda p: 1 / 0, ZeroDivisionError, "division"),
    (1, 2, TypeError, "expected a callable pack_hook, got int"),
]


@pytest.mark.parametrize("pack, unpack, kind, text", ERRORS)
def test_errors(torch, pack, unpack, kind, text):
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(kind, match=text):  # noqa: PT012
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            y = (x * torch.ones(2)).exp()
        y.sum().backward()
        x.grad.tolist()
    x.grad = None
    (x * 2).exp().sum().backward()  # the session goes on
    assert torch.allclose(x.grad, 2 * torch.full((2,), np.e**2))


def test_a_returned_tensor_that_was_changed_is_an_error(torch):
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x.clone()
        z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation.*version 1; expected version 0"):
        z.sum().backward()


def test_disabled_hooks(torch):
    graph = torch.autograd.graph
    with graph.disable_saved_tensors_hooks("none here"), pytest.raises(RuntimeError, match="none here"):
        graph.save_on_cpu().__enter__()
    with contexts(torch, [])["hooks"], pytest.raises(RuntimeError, match="none here"):
        graph.disable_saved_tensors_hooks("none here").__enter__()
    with pytest.raises(NotImplementedError, match="'xpu'"):
        graph.save_on_cpu(device_type="xpu")


def test_tensors_of_custom_functions(torch):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, none):
            ctx.save_for_backward(x, none)
            return x**3

        @staticmethod
        def backward(ctx, g):
            x, none = ctx.saved_tensors
            assert none is None
            return 3 * x * x * g, None

    for kind, log in (("hooks", []), ("cpu", []), ("copies", [])):
        x = torch.ones(2, requires_grad=True)
        w = x.clone()
        with contexts(torch, log)[kind]:
            y = Cube.apply(w, None)
        w.zero_()
        y.sum().backward()
        assert x.grad.tolist() == [3, 3] and (kind != "hooks" or log == [("pack", (2,)), ("unpack", (2,))])


def test_second_derivatives_of_functions(torch):
    """Tensors that unpack_hook returns have the history of the inputs and results that a Function has saved."""

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w, keeps_other):
            y = (x * w).exp()
            ctx.save_for_backward(x, w, y, x + w if keeps_other else None)
            return y

        @staticmethod
        def backward(ctx, g):
            x, w, y, other = ctx.saved_tensors
            return g * w * y, g * x * y, None

    for kind in ("hooks", "cpu", "copies"):
        results = []
        for context in (nullcontext(), contexts(torch, [])[kind]):
            x, w = torch.ones(2, requires_grad=True), torch.full((2,), 0.5, requires_grad=True)
            with context:
                y = Product.apply(x, w * 2, False).sum()
            first = torch.autograd.grad(y, [x, w], create_graph=True)
            results.append((*first, *torch.autograd.grad((first[0] * first[1]).sum(), [x, w])))
        torch.testing.assert_close(results[1], results[0])


def test_packed_objects_are_freed(torch):
    class Packed:
        def __init__(self, tensor):
            self.tensor = tensor.detach()

    for end in ("backward", "delete", "retain"):
        kept = []

        def pack(tensor, kept=kept):
            packed = Packed(tensor)
            kept.append(weakref.ref(packed))
            return packed

        x = torch.ones(4, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda p: p.tensor):
            y = (x * x).exp().sum()
        if end != "delete":
            y.backward(retain_graph=end == "retain")
        alive = end == "retain"
        if end == "delete":
            del y
        gc.collect()
        assert len(kept) == 3 and all((ref() is not None) == alive for ref in kept)


def test_hooks_run_beside_hooks_of_gradients(torch):
    x, rows = torch.ones(2, requires_grad=True), []
    with contexts(torch, rows)["hooks"]:
        y = x.exp()
        y.register_hook(lambda g: (rows.append("gradient"), g * 2)[1])
        z = y.square().sum()
    torch.autograd.graph.register_multi_grad_hook((x, y), lambda grads: rows.append("both"))
    rows.clear()
    z.backward()
    assert [r if isinstance(r, str) else r[0] for r in rows] == ["unpack", "gradient", "unpack", "both"]
    assert torch.allclose(x.grad, 4 * torch.full((2,), np.e**2))
