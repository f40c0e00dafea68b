"""Nodes of graphs: names, next functions, hooks; values are those of PyTorch 2.15."""

import pytest


def test_next_functions_lead_to_the_leaves(torch):
    x, w = torch.ones(2, requires_grad=True), torch.ones(2)
    y = (x * w + 1).exp()
    names, node = [], y.grad_fn
    while node is not None:
        names.append((node.name(), [output for _, output in node.next_functions]))
        node = node.next_functions[0][0] if node.next_functions else None
    assert names == [("ExpBackward0", [0]), ("AddBackward0", [0]), ("MulBackward0", [0, 0]), ("torch::autograd::AccumulateGrad", [])]
    mul = y.grad_fn.next_functions[0][0].next_functions[0][0]
    assert mul.next_functions[1] == (None, 0) and mul.next_functions[0][0].variable is not None
    assert mul.next_functions[0][0].variable.grad is None and torch.equal(mul.next_functions[0][0].variable, x)
    with pytest.raises(AttributeError, match="'MulBackward0' object has no attribute 'variable'"):
        _ = mul.variable


def test_nodes_are_equal_and_keep_their_metadata(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    node = y.grad_fn
    node.metadata["name"] = "first"
    z = y + 1
    assert y.grad_fn == node and hash(y.grad_fn) == hash(node) and len({node, y.grad_fn}) == 1 and node != z.grad_fn
    assert z.grad_fn.next_functions[0][0].metadata == {"name": "first"} and z.grad_fn.metadata == {}
    assert node._sequence_nr() < z.grad_fn._sequence_nr() < node.next_functions[0][0]._sequence_nr()
    a, b = torch.split((x * 1).repeat(2), 2)
    edge = torch.autograd.graph.get_gradient_edge(b)
    assert (edge.node, edge.output_nr) == (b.grad_fn, 1) and edge.node == a.grad_fn
    assert torch.autograd.graph.get_gradient_edge(x).node == node.next_functions[0][0]
    y.mul_(3)
    assert y.grad_fn != node and y.grad_fn.metadata == {} and x.grad_fn is None


def test_hooks_of_nodes(torch):
    x, rows = torch.ones(2, requires_grad=True), []
    y = x * 3
    z = y * 2
    leaf = y.grad_fn.next_functions[0][0]
    handles = [
        y.grad_fn.register_prehook(lambda grads: (rows.append(grads[0].tolist()), (grads[0] * 10,))[1]),
        leaf.register_prehook(lambda grads: rows.append(grads[0].tolist())),
        leaf.register_hook(lambda inputs, outputs: rows.append((inputs, outputs[0].tolist(), x.grad.tolist()))),
    ]
    z.sum().backward(retain_graph=True)
    assert rows == [[2, 2], [60, 60], ((), [60, 60], [60, 60])] and x.grad.tolist() == [60, 60]
    for handle in handles:
        handle.remove()
    x.grad = None
    z.sum().backward()
    assert len(rows) == 3 and x.grad.tolist() == [6, 6]
    node = (z * 2).grad_fn
    with pytest.raises(NotImplementedError, match="no longer exists"):
        node.register_prehook(print)
    part = torch.split(x * 1, 1)[0]
    part.grad_fn.register_prehook(lambda grads: rows.append([g if g is None else g.tolist() for g in grads]))
    part.sum().backward()
    assert rows[3] == [[1], None]


def test_output_numbers(torch):
    x = torch.ones(3, requires_grad=True)
    assert [t.output_nr for t in (x, torch.ones(1), *torch.unbind(x * 1))] == [0, 0, 0, 1, 2]


def test_the_class_of_a_node_has_the_name_of_the_operation(torch):
    x = torch.ones(3, requires_grad=True)
    node = (x * 2).grad_fn
    assert type(node).__name__ == "MulBackward0" and type(node) is type((x * 3).grad_fn)
    assert isinstance(node, torch.autograd.graph.Node) and type(node.next_functions[0][0]).__name__ == "AccumulateGrad"


def test_views_of_tensors(torch):
    x = torch.ones(3, 2)
    assert [t._is_view() for t in (x, x[0], x.t().reshape(2, 3), x.detach(), x * 2)] == [False, True, True, False, False]


def test_an_edge_stays_where_it_was_taken(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    edge = torch.autograd.graph.get_gradient_edge(y)
    part = torch.autograd.graph.get_gradient_edge(y[1:])
    y.mul_(5)
    (below,) = torch.autograd.grad(edge, x, torch.ones(2), retain_graph=True)
    (above,) = torch.autograd.grad(y.sum(), edge, retain_graph=True)
    (of_part,) = torch.autograd.grad(part, x, torch.ones(1), retain_graph=True)
    assert (below.tolist(), above.tolist(), of_part.tolist()) == ([3, 3], [5, 5], [0, 3])
    torch.autograd.backward(edge, torch.ones(2))
    assert x.grad.tolist() == [3, 3] and edge.node.name() == "MulBackward0" and y.tolist() == [15, 30]
    leaf = torch.autograd.graph.get_gradient_edge(x)
    z = x * 2
    with torch.no_grad():
        x.mul_(2)
    assert torch.autograd.grad(z.sum(), leaf)[0].tolist() == [2, 2]


def test_an_edge_of_a_grad_fn(torch):
    edge_of = torch.autograd.graph.GradientEdge
    x = torch.ones(4, requires_grad=True)
    first, second = (x * 2).split(2)
    edge = edge_of(second.grad_fn, second.output_nr)
    total = (first * 3 + second * 5).sum()
    assert torch.autograd.grad(total, (edge, x), retain_graph=True)[0].tolist() == [5, 5]
    for wrong in (edge_of(second.grad_fn, 0), edge_of((x * 2).grad_fn, 0)):
        with pytest.raises(RuntimeError, match="of a tensor that exists"):
            torch.autograd.grad(total, wrong)


def test_the_node_of_a_function_has_the_attributes_of_its_context(torch):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.power = 2
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    node = Square.apply(x).sum().grad_fn.next_functions[0][0]
    assert node.saved_tensors[0] is x and node.power == 2 and node.needs_input_grad == (True,)
    with pytest.raises(AttributeError, match="other"):
        _ = node.other


def test_anomalies_of_functions_and_hooks(torch):
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * float("nan")

    x = torch.ones(2, requires_grad=True)
    with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="returned nan values in its 0th output"):
        Wrong.apply(x).sum().backward()
        x.grad.tolist()
    x.grad = None
    with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="'MulBackward0' returned nan values in its 0th output"):
        y = x * 2
        y.grad_fn.register_hook(lambda inputs, _: tuple(g * float("nan") for g in inputs if g is not None))
        y.sum().backward()
        x.grad.tolist()


def test_anomaly_mode_in_transforms(torch):
    x, f = torch.tensor([-1.0, 4.0]), torch.func

    def root(x):
        return x.sqrt().sum()

    calls = (lambda: f.grad(root)(x), lambda: f.vmap(f.grad(root))(x), lambda: f.jacrev(root)(x), lambda: f.hessian(root)(x))
    for call in calls:
        with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th"):
            call()
        with torch.autograd.detect_anomaly(check_nan=False):
            assert call().isnan().any()


def test_hooks_keep_dtype_and_size(torch):
    x = torch.ones(2, requires_grad=True)
    for change, error, message in (
        (lambda g: g.double(), RuntimeError, "has changed the type of value"),
        (lambda g: g[:1], RuntimeError, "has changed the size of value"),
        (lambda g: 3, TypeError, "expected Variable, but hook returned 'int'"),
    ):  # fmt: skip
        with x.register_hook(change), pytest.raises(error, match=message):
            (x * 2).sum().backward()
    assert x.grad is None
    with pytest.raises(ValueError, match="Expected allow_unused to be True or not passed when materialize_grads=True"):
        torch.autograd.grad(x.sum(), x, allow_unused=False, materialize_grads=True)
