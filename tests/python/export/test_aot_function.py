"""aot_function and its relatives: values and gradients of compiled graphs are those of the function."""

from __future__ import annotations

import copy

import pytest


@pytest.fixture(params=["default_partition", "min_cut_rematerialization_partition"])
def partition(request, torch):
    from teletensor._functorch import partitioners

    return getattr(partitioners, request.param)


@pytest.fixture
def aot(torch):
    from teletensor._functorch import aot_autograd

    return aot_autograd


class Collector:
    """A compiler that keeps the graphs."""

    def __init__(self) -> None:
        self.graphs, self.calls = [], 0

    def __call__(self, module, inputs):
        assert len(inputs) == sum(n.op == "placeholder" for n in module.graph.nodes)
        self.graphs.append(module)

        def run(*args):
            self.calls += 1
            return module(*args)

        return run


def test_function(torch, aot, partition):
    def f(a, b, options):
        return torch.sin(a @ b).relu(), {"s": (a * options["factor"]).sum(), "n": 3}

    forward, backward = Collector(), Collector()
    compiled = aot.aot_function(f, forward, backward, partition)
    a, b = torch.randn(3, 4, requires_grad=True), torch.randn(4, 2)
    for _ in range(2):
        found, expected = compiled(a, b, {"factor": 2}), f(a, b, {"factor": 2})
        torch.testing.assert_close(found[0], expected[0])
        torch.testing.assert_close(found[1]["s"], expected[1]["s"])
        assert found[1]["n"] == 3
        gradients = [torch.autograd.grad(r[0].sum() * 2 + r[1]["s"], a)[0] for r in (found, expected)]
        torch.testing.assert_close(*gradients)
    assert len(forward.graphs) == len(backward.graphs) == 1
    assert forward.calls == backward.calls == 2
    assert not compiled(a.detach(), b, {"factor": 2})[0].requires_grad  # another signature
    compiled(torch.randn(5, 4), b, {"factor": 2})
    assert len(forward.graphs) == 3


def test_min_cut_saves_less(torch, aot):
    from teletensor._functorch import partitioners

    def f(x):
        for _ in range(6):
            x = x.sin().cos()
        return x

    saved = {}
    for name in ("default_partition", "min_cut_rematerialization_partition"):
        graphs = Collector()
        x = torch.randn(7, requires_grad=True)
        result = aot.aot_function(f, graphs, partition_fn=getattr(partitioners, name))(x)
        torch.testing.assert_close(torch.autograd.grad(result.sum(), x), torch.autograd.grad(f(x).sum(), x))
        saved[name] = len(next(n for n in graphs.graphs[0].graph.nodes if n.op == "output").args[0]) - 1
    assert saved["default_partition"] == 12
    assert saved["min_cut_rematerialization_partition"] == 1


def test_module_with_buffers(torch, aot, partition):
    nn, F = torch.nn, torch.nn.functional

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4)
            self.out, self.last = nn.Linear(64, 5), nn.LayerNorm(5)
            self.attention = nn.MultiheadAttention(5, 1, batch_first=True)

        def forward(self, x, target):
            h = F.max_pool2d(F.gelu(self.norm(self.conv(x))), 2).flatten(1)
            h = self.last(self.out(h))[None]
            return F.cross_entropy(self.attention(h, h, h, need_weights=False)[0][0], target)

    net = Net()
    reference = copy.deepcopy(net)
    compiled = aot.aot_module(net, Collector(), partition_fn=partition)
    x, target = torch.randn(6, 1, 8, 8), torch.randint(0, 5, (6,))
    for _ in range(2):
        net.zero_grad()
        reference.zero_grad()
        found, expected = compiled(x, target), reference(x, target)
        found.backward()
        expected.backward()
        torch.testing.assert_close(found, expected)
        for a, b in zip(net.parameters(), reference.parameters()):
            torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-5)
        for a, b in zip(net.buffers(), reference.buffers()):
            torch.testing.assert_close(a, b)
    net.eval()
    reference.eval()
    with torch.no_grad():
        torch.testing.assert_close(compiled(x, target), reference(x, target))


def test_module_simplified(torch, aot):
    net = torch.nn.Linear(3, 2)
    graphs = Collector()
    x = torch.randn(4, 3)
    compiled = aot.aot_module_simplified(net, (x,), aot.make_boxed_compiler(graphs))
    compiled(x).sum().backward()
    torch.testing.assert_close(net.weight.grad, x.sum(0).expand(2, 3))
    with pytest.raises(RuntimeError, match="sizes, strides and dtypes"):
        compiled(torch.randn(5, 3))


def test_random_numbers_are_saved_for_backward(torch, aot, partition):
    x = torch.ones(1000, requires_grad=True)
    compiled = aot.aot_function(lambda x: torch.nn.functional.dropout(x.exp(), 0.5, True), Collector(), partition_fn=partition)
    first, second = compiled(x), compiled(x)
    assert not torch.equal(first, second)
    for result in (first, second):
        (gradient,) = torch.autograd.grad(result.sum(), x)
        torch.testing.assert_close(gradient, result.detach())


def test_second_derivatives_raise(torch, aot):
    x = torch.randn(3, requires_grad=True)
    result = aot.aot_function(lambda x: x.sin(), Collector())(x)
    with pytest.raises(RuntimeError, match="double backward"):
        torch.autograd.grad(result.sum(), x, create_graph=True)


def test_what_is_refused(torch, aot):
    with pytest.raises(NotImplementedError, match="disable_functionalization"):
        aot.aot_function(lambda x: x, Collector(), disable_functionalization=True)
    layer = torch.nn.Linear(3, 2)
    with pytest.raises(NotImplementedError, match="without receiving it"):
        aot.aot_function(lambda x: layer(x), Collector())(torch.randn(2, 3))
    with pytest.raises(RuntimeError):
        aot.aot_function(lambda x: x if x.sum() > 0 else -x, Collector())(torch.randn(3, requires_grad=True))


def test_written_inputs_that_share_memory_only_in_a_later_call(torch):
    from teletensor._functorch.aot_autograd import aot_function

    def add(x, y):
        x.add_(1)
        return y * 2

    compiled, a = aot_function(add, lambda graph, _: graph), torch.arange(4.0)
    assert compiled(torch.ones(4), torch.ones(4)).tolist() == [2] * 4
    with pytest.raises(NotImplementedError, match="share memory"):
        compiled(a, a)


@pytest.mark.parametrize("text", ["len(x.unbind()) % 16", "torch.Tensor.size(x, 0) % 16", "x.shape[0] & 15", "len(x) - 16"])
def test_other_outcomes_give_other_graphs(torch, text):
    from teletensor._functorch.aot_autograd import aot_function

    f, graphs = eval(f"lambda x: x * 2 if {text} else x * 3", {"torch": torch}), Collector()  # noqa: S307
    compiled = aot_function(f, graphs, dynamic=True)
    for n in (5, 6, 16, 17, 32, 48):
        torch.testing.assert_close(compiled(torch.ones(n)), f(torch.ones(n)))


def test_constants_of_the_engine_are_bytes(torch):
    """interpolate() computes weights in the client; their bytes are no text."""
    from teletensor.fx.experimental.proxy_tensor import make_fx

    def f(x):
        y = torch.nn.functional.interpolate(x[None, None], scale_factor=2.0, mode="linear")[0, 0]
        return y, torch.autograd.grad((y * y).sum(), [x])[0]

    x = torch.arange(5.0, requires_grad=True)
    for got, want in zip(make_fx(f)(x)(x), f(x)):
        torch.testing.assert_close(got, want)
