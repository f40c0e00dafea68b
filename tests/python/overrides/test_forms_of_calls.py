"""Arguments of functions that are written in Python in PyTorch, as handlers and nodes of graphs receive them."""

import pytest

import teletensor as torch
from teletensor.nn import functional as F
from teletensor.overrides import TorchFunctionMode


class First(TorchFunctionMode):
    """Keeps the arguments of the first call."""

    call = None

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.call = self.call or (len(args), {k: v for k, v in (kwargs or {}).items() if not isinstance(v, torch.Tensor)})
        return func(*args, **(kwargs or {}))


CASES = [
    (lambda x, a, i: F.dropout(x, 0.25), 1, {"p": 0.25, "training": True, "inplace": False}),
    (lambda x, a, i: F.softmax(a, -1), 1, {"dim": -1, "_stacklevel": 3, "dtype": None}),
    (lambda x, a, i: F.softmax(input=a, dim=1), 1, {"dim": 1, "_stacklevel": 3, "dtype": None}),
    (lambda x, a, i: F.relu(x, True), 1, {"inplace": True}),
    (lambda x, a, i: F.gelu(x), 1, {}),
    (lambda x, a, i: F.conv2d(x, x), 2, {}),
    (lambda x, a, i: F.max_pool2d(x, 2), 2, {"stride": None, "padding": 0, "dilation": 1, "ceil_mode": False, "return_indices": False}),
    (lambda x, a, i: F.cross_entropy(a, i), 2, {
        "weight": None, "size_average": None, "ignore_index": -100, "reduce": None, "reduction": "mean", "label_smoothing": 0.0,
    }),
    (lambda x, a, i: F.mse_loss(a, a, reduction="sum"), 2, {
        "size_average": None, "reduce": None, "reduction": "sum", "weight": None,
    }),
    (lambda x, a, i: F.layer_norm(a, (4,)), 2, {"weight": None, "bias": None, "eps": 1e-5}),
    (lambda x, a, i: F.pad(a, (1, 1)), 2, {"mode": "constant", "value": None}),
    (lambda x, a, i: F.lp_pool2d(x, 2, 2), 3, {"stride": None, "ceil_mode": False}),
    (lambda x, a, i: torch.norm(a, 2), 1, {"p": 2, "dim": None, "keepdim": False, "out": None, "dtype": None}),
    (lambda x, a, i: torch.split(a, 1), 2, {"dim": 0}),
    (lambda x, a, i: torch.tensordot(a, a, ([0], [0])), 2, {"dims": ([0], [0]), "out": None}),
    (lambda x, a, i: torch.softmax(a, 1), 2, {}),
]  # fmt: skip


@pytest.mark.parametrize(("call", "positional", "keywords"), CASES)
def test_arguments_that_handlers_receive(call, positional, keywords):
    given = torch.rand(2, 4, 8, 8), torch.rand(3, 4), torch.tensor([0, 1, 2])
    with First() as first:
        call(*given)
    assert first.call == (positional, keywords)


def test_nodes_of_graphs_have_the_same_form():
    traced = torch.fx.symbolic_trace(lambda x: F.dropout(F.softmax(x, 0), 0.3))
    softmax, dropout = (node for node in traced.graph.nodes if node.op == "call_function")
    assert (len(softmax.args), softmax.kwargs["dim"]) == (1, 0)
    assert (len(dropout.args), dropout.kwargs) == (1, {"p": 0.3, "training": True, "inplace": False})
    x = torch.rand(3)
    torch.manual_seed(0)
    expected = F.dropout(F.softmax(x, 0), 0.3)
    torch.manual_seed(0)
    assert torch.equal(traced(x), expected)


def test_calls_with_wrong_arguments():
    x = torch.rand(3)
    with First(), pytest.raises(TypeError, match="softmax"):
        F.softmax(x, no_such_argument=1)
