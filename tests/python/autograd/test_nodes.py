"""Nodes of graphs: repeated backward passes, saved values and hooks, compared with what record_nodes.py wrote with PyTorch."""

import json

import pytest

import teletensor

from . import node_cases
from .record_nodes import CASES, NODES, result

EXPECTED = json.loads(NODES.read_text())
# A second backward pass works here and raises in PyTorch.
REPEATABLE = {
    "a * 2": "PyTorch saves the number as a tensor",
    "a / 2": "PyTorch saves the number as a tensor",
    "torch.nn.functional.avg_pool1d(a[None], 2)": "PyTorch saves the input for its sizes",
}
# Expressions for which the engine records other nodes than PyTorch, so that values and gradients differ.
OTHER_NODES = {
    "2 / a": "PyTorch multiplies 2 by the reciprocal", "torch.nn.functional.linear(a, b)": "PyTorch multiplies by a transposed view",
    "torch.nn.functional.cross_entropy(a, i[0])": "one node instead of log_softmax and nll_loss",
    "torch.nn.functional.l1_loss(a, b)": "composed of sub, abs and mean", "torch.outer(a[0], b[0])": "PyTorch reshapes a to a column",
    "torch.einsum('ij,jk->ik', a, b)": "PyTorch reshapes the operands",
}  # fmt: skip
# Nodes whose numbers of gradients differ: PyTorch counts numbers, absent tensors and auxiliary results.
OTHER_COUNTS = {
    "a * 2", "a / 2", "torch.nn.functional.layer_norm(a, (2,))", "torch.inverse(a)",
    "torch.linalg.cholesky(a @ a.t() + torch.eye(2))", "torch.nn.functional.conv1d(a[None], b[None])",
}  # fmt: skip
# Values that have another form here: defaults as numbers, and negative numbers, which PyTorch prints without sign.
OTHER_VALUES = {"_saved_correction", "_saved_ignore_index", "_saved_padding_idx"}
MOST_ABSENT = 75  # of PyTorch's values, for all expressions together


@pytest.mark.parametrize("expression", node_cases.EXPRESSIONS)
def test_second_backward_raises_if_tensors_were_freed(torch, expression):
    expected = EXPECTED["second_backward"][expression] and expression not in REPEATABLE
    assert node_cases.second_backward(torch, expression) == expected


@pytest.mark.parametrize("composed", [False, True])
def test_parts_of_freed_graphs(torch, composed):
    x = torch.ones(3, requires_grad=True)
    y = torch.relu(x) if composed else x.exp()
    z, free = y.sum(), (x * 2).sum()
    root = z + free
    root.backward()
    free.backward()
    free.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        root.backward()
    assert torch.allclose(x.grad, torch.full((3,), 7.0 if composed else 6 + 2.7182817))


def test_saved_values_are_pytorchs(torch):
    absent, wrong = 0, []
    for expression in node_cases.EXPRESSIONS:
        if expression in OTHER_NODES:
            continue
        found, expected = node_cases.saved(torch, expression), EXPECTED["saved"][expression]
        absent += len(expected.keys() - found.keys())
        for name in found.keys() & expected.keys() - OTHER_VALUES:
            if found[name] != expected[name] and "1.845e+19" not in str(expected[name]):
                wrong.append((expression, name, found[name], expected[name]))
    assert not wrong
    assert absent <= MOST_ABSENT


def test_values_that_are_not_kept(torch):
    x = torch.ones(2, requires_grad=True)
    y = (x - 1).sum(0)
    with pytest.raises(
        AttributeError, match="'SumBackward0' object has no attribute '_saved_other': for this operation the engine"
    ):
        _ = y.grad_fn._saved_other
    with pytest.raises(AttributeError, match="it is not a tensor"):
        _ = y.grad_fn._raw_saved_keepdim
    with pytest.raises(NotImplementedError, match="within torch.autograd.graph.saved_tensors_hooks"):
        z = x.exp()
        z.grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: t)
    node = (x * 2).grad_fn
    with pytest.raises(NotImplementedError, match="no longer exists"):
        _ = node._saved_other
    w = torch.nn.functional.mse_loss(x, x.detach())
    with pytest.raises(AttributeError, match="the engine keeps nothing"):
        _ = w.grad_fn._saved_self  # of a part, the difference
    leaf = y.grad_fn.next_functions[0][0].next_functions[0][0]
    with pytest.raises(AttributeError, match="'AccumulateGrad' object has no attribute '_saved_self'"):
        _ = leaf._saved_self


@pytest.mark.parametrize("name", [name for name in CASES if name != "case_hooks_of_operators"])
def test_results_are_pytorchs(torch, name):
    assert result(torch, name) == EXPECTED[name]


def test_hooks_of_operators_receive_pytorchs_gradients(torch):
    found, expected = (
        rows[:] for rows in (result(torch, "case_hooks_of_operators"), EXPECTED["case_hooks_of_operators"])
    )
    for ours, theirs in zip(found, expected, strict=True):
        if ours[0] in OTHER_NODES:
            continue
        if ours[0] in OTHER_COUNTS:  # the gradients that exist are equal
            ours, theirs = (
                [row[0], [[[g for g in group if g] for group in call] for call in row[1]], row[2]]
                for row in (ours, theirs)
            )
        assert ours == theirs


def test_hooks_of_composed_operators_that_share_inputs(torch):
    a = torch.ones(2, 2, requires_grad=True)
    y = torch.addmm(a, a, a)
    with pytest.raises(NotImplementedError, match="addmm is composed of other operators"):
        y.grad_fn.register_hook(print)
    assert isinstance(y.grad_fn, teletensor.autograd.graph.Node)


def test_saved_tensors_are_unpacked(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y, z = x.exp(), x[torch.tensor([1, 0])]
    saved = y.grad_fn._raw_saved_result
    assert torch.equal(saved.unpack(), y) and torch.equal(saved.data, y) and saved.unpack_hook is None
    assert [t.unpack().tolist() for t in z.grad_fn._raw_saved_indices] == [[1, 0]]
    y.sum().backward()
    with pytest.raises(RuntimeError, match="directly access saved tensors after they have already been freed"):
        saved.unpack()


def test_names_of_contexts(torch):
    names = []

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            names.append(ctx.name())
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            names.append(ctx.name())
            return gradient * 2

        @staticmethod
        def jvp(ctx, tangent):
            names.append(ctx.name())
            return tangent * 2

    x = torch.ones(2, requires_grad=True)
    y = Twice.apply(x)
    assert [t.unpack() is x for t in y.grad_fn._raw_saved_tensors] == [True]
    y.sum().backward()
    torch.func.jvp(Twice.apply, (x.detach(),), (x.detach(),))
    assert set(names) == {"TwiceBackward"} and y.grad_fn.name() == "TwiceBackward"
