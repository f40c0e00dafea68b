"""node_creation_hook: nodes in the order in which operations record them."""

import pytest

LEAF = "torch::autograd::AccumulateGrad"


def names_of(torch, function):
    names = []
    with torch.autograd.graph.node_creation_hook(lambda node: names.append(node.name())):
        function()
    return names


def test_nodes_are_passed_in_their_order(torch):
    a, b = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    assert names_of(torch, lambda: a * 2) == [LEAF, "MulBackward0"]
    assert names_of(torch, lambda: (a + b).exp().sum()) == [LEAF] * 2 + ["AddBackward0", "ExpBackward0", "SumBackward0"]
    c = a * 3
    assert names_of(torch, lambda: c.clone().mul_(2)) == ["CloneBackward0", "MulBackward0"]
    assert names_of(torch, lambda: a.detach() * 2) == []


def test_modules_and_functions(torch):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g

    layer, x = torch.nn.Linear(3, 2), torch.ones(1, 3)
    assert names_of(torch, lambda: layer(x).relu()) == [LEAF] * 2 + ["LinearBackward0", "ReluBackward0"]
    assert names_of(torch, lambda: Square.apply(x.clone().requires_grad_()) + 1)[1:] == ["SquareBackward", "AddBackward0"]


def test_hooks_can_be_registered_on_new_nodes(torch):
    a, called, nodes = torch.ones(3, requires_grad=True), [], []

    def hook(node):
        node.metadata["region"] = len(nodes)
        node.register_prehook(lambda gradients: called.append(node.name()))
        nodes.append(node)

    with torch.autograd.graph.node_creation_hook(hook):
        loss = (a * a).sum()
        loss.backward()
    assert called == ["SumBackward0", "MulBackward0", LEAF]
    assert loss.grad_fn.metadata == {"region": 2} and nodes[2] == loss.grad_fn
    (a * 2).sum().backward()
    assert len(nodes) == 3


def test_all_hooks_are_called_the_outermost_first(torch):
    a, called = torch.ones(3, requires_grad=True), []
    record = torch.autograd.graph.node_creation_hook
    with record(lambda node: called.append(("outer", node.name()))):
        b = a * 2
        called.clear()
        with record(lambda node: called.append(("inner", node.name()))):
            b.exp()
    assert called == [("outer", "ExpBackward0"), ("inner", "ExpBackward0")]


def test_hooks_return_none(torch):
    a = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="must return None, got int"), torch.autograd.graph.node_creation_hook(lambda node: 1):
        a * 2


def test_backward_passes_that_are_recorded(torch):
    x = torch.ones(3, requires_grad=True)
    y = (x * x).sum()
    assert len(names_of(torch, lambda: torch.autograd.grad(y, x, create_graph=True))) >= 1
    assert len(names_of(torch, lambda: y.backward(create_graph=True))) >= 1
    assert names_of(torch, lambda: torch.autograd.grad(y, x, retain_graph=True)) == []
    assert len(names_of(torch, lambda: y.backward(create_graph=True, inputs=[x]))) >= 1
