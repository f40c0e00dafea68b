"""aot_export_module and aot_export_joint_simple: graphs, signatures and values."""

from __future__ import annotations

import pytest


@pytest.fixture
def aot(torch):
    from teletensor._functorch import aot_autograd

    return aot_autograd


def net(torch):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 2)
            self.register_buffer("count", torch.zeros(2))
            self.scale = torch.ones(2)

        def forward(self, x):
            self.count.add_(1)
            y = self.layer(x) + self.count * self.scale
            return y.sum(), y.detach()

    return Net()


def test_graph_of_forward(torch, aot):
    module, x = net(torch), torch.randn(4, 3)
    graph, signature = aot.aot_export_module(module, (x,), trace_joint=False)
    assert signature.parameters == ["layer.weight", "layer.bias"]
    assert signature.buffers == ["count"]
    assert signature.inputs_to_parameters == {"arg0_1": "layer.weight", "arg1_1": "layer.bias"}
    assert signature.inputs_to_buffers == {"arg2_1": "count"}
    assert signature.user_inputs == ["arg3_1"]
    assert signature.user_outputs == ["sum_1", "detach"]
    assert signature.buffers_to_mutate == {"add": "count"}
    assert signature.backward_signature is None
    assert [str(n.target) for n in graph.graph.nodes if n.op == "call_function"][:3] == [
        "aten.add.Tensor", "aten.t.default", "aten.addmm.default",
    ]  # fmt: skip
    count, total, values = graph(*module.parameters(), *module.buffers(), x)
    expected = module(x)
    torch.testing.assert_close(count, module.count)
    torch.testing.assert_close((total, values), expected)


def test_graph_of_forward_for_many_sizes(torch, aot):
    module = net(torch)
    graph, _ = aot.aot_export_module(module, (torch.randn(4, 3),), trace_joint=False, dynamic_shapes=True)
    x = torch.randn(7, 3)
    values = graph(*module.parameters(), *module.buffers(), x)[2]
    torch.testing.assert_close(values, module(x)[1])


def test_graph_of_forward_and_backward(torch, aot):
    module, x = net(torch), torch.randn(4, 3, requires_grad=True)
    graph, signature = aot.aot_export_module(module, (x,), trace_joint=True, output_loss_index=0)
    backward = signature.backward_signature
    assert signature.buffers_to_mutate == {signature_name(graph, 0): "count"}
    assert list(backward.gradients_to_parameters.values()) == ["layer.weight", "layer.bias"]
    assert list(backward.gradients_to_user_inputs.values()) == ["arg3_1"]
    assert backward.loss_output == signature.user_outputs[0]
    found = graph(*module.parameters(), *module.buffers(), x)
    loss, values = module(x)
    loss.backward()
    torch.testing.assert_close(found[1:3], (loss, values))
    torch.testing.assert_close(found[3:], (module.layer.weight.grad, module.layer.bias.grad, x.grad))


def signature_name(graph, place):
    return next(n for n in reversed(graph.graph.nodes) if n.op == "output").args[0][place].name


def test_what_joint_graphs_refuse(torch, aot):
    module, x = net(torch), torch.randn(4, 3)
    with pytest.raises(RuntimeError, match="output_loss_index"):
        aot.aot_export_module(module, (x,), trace_joint=True)
    with pytest.raises(RuntimeError, match="index 1"):
        aot.aot_export_module(module, (x,), trace_joint=True, output_loss_index=1)
    layer = torch.nn.Linear(3, 2)
    with pytest.raises(RuntimeError, match="scalar"):
        aot.aot_export_module(layer, (x,), trace_joint=True, output_loss_index=0)


def test_joint_graph_of_a_function(torch, aot):
    x, y = torch.randn(3, requires_grad=True), torch.randn(3)
    graph = aot.aot_export_joint_simple(lambda a, b: [a * b.sin()], (x, y), trace_joint=True)
    (result, gradient, none) = graph([x, y], [torch.ones(3)])
    torch.testing.assert_close((result, gradient), (x * y.sin(), y.sin()))
    assert none is None
    graph = aot.aot_export_joint_simple(lambda a, b: [a * b.sin()], (x, y), trace_joint=False)
    torch.testing.assert_close(graph(x, y)[0], x * y.sin())
    with pytest.raises(RuntimeError, match="mutations"):
        aot.aot_export_joint_simple(lambda a: [a.add_(1)], (y,), trace_joint=False)


@pytest.mark.parametrize("sizes", [(4, 3), (2, 3, 5), (2, 3, 2, 2)])
def test_joint_graphs_do_not_write_statistics(torch, sizes):
    from teletensor._functorch.aot_autograd import aot_export_module

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = {2: torch.nn.BatchNorm1d, 3: torch.nn.BatchNorm1d, 4: torch.nn.BatchNorm2d}[len(sizes)](3, momentum=0.3)

        def forward(self, x):
            return (self.norm(x).pow(2).mul(x).mean(),)

    module, x = Net(), torch.randn(sizes)
    graph, signature = aot_export_module(module, (x,), trace_joint=True, output_loss_index=0)
    parameters, buffers = dict(module.named_parameters()), dict(module.named_buffers())
    former = {n: b.clone() for n, b in buffers.items()}
    results = graph(*parameters.values(), *buffers.values(), x)
    assert all(torch.equal(b, former[n]) for n, b in buffers.items())
    names = [n.name for n in next(reversed(graph.graph.nodes)).args[0]]
    module(x)[0].backward()
    assert set(signature.buffers_to_mutate.values()) == set(buffers)
    for name, buffer in signature.buffers_to_mutate.items():
        torch.testing.assert_close(results[names.index(name)], buffers[buffer])
    for name, parameter in signature.backward_signature.gradients_to_parameters.items():
        torch.testing.assert_close(results[names.index(name)], parameters[parameter].grad)
