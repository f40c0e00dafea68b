"""torch._dynamo.export: one graph with the signature of the function."""

from __future__ import annotations

import pytest

import teletensor as torch
from teletensor._dynamo.exc import Unsupported


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.register_buffer("shift", torch.ones(3))

    def forward(self, x, d, scale=2):
        return {"a": self.linear(x).relu() * d["k"] + self.shift, "n": x.shape[0], "rest": [x * scale, None]}


def test_a_module():
    net, args = Net(), (torch.randn(2, 4), {"k": torch.ones(3)})
    made = torch._dynamo.export(net)(*args)
    other = torch.randn(5, 4), {"k": torch.arange(3.0)}
    for given in (args, other):
        got, want = made.graph_module(*given), net(*given)
        assert got["n"] == want["n"] and got["rest"][1] is None
        assert torch.equal(got["a"], want["a"]) and torch.equal(got["rest"][0], want["rest"][0])
    assert sorted(n.rpartition("_")[2] for n, _ in made.graph_module.named_parameters()) == ["bias", "weight"]
    assert made.guards and next(made.graph_module.parameters()) is next(net.parameters())


def test_a_function_with_keywords():
    made = torch._dynamo.export(lambda x, *, y: (x.view(x.shape[0] * x.shape[1]) + y,))(torch.ones(2, 3), y=torch.ones(6))
    assert torch.equal(made.graph_module(torch.ones(4, 3), y=torch.ones(12))[0], torch.full((12,), 2.0))
    static = torch._dynamo.export(lambda x: x.view(x.shape[0] * x.shape[1]), assume_static_by_default=True)(torch.ones(2, 3))
    assert all(n.target != "size" for n in static.graph_module.graph.nodes)


def test_what_is_refused():
    with pytest.raises(Unsupported):
        torch._dynamo.export(lambda x: x + 1 if x.sum() > 0 else x)(torch.ones(2))
    log = []
    with pytest.raises(Unsupported):
        torch._dynamo.export(lambda x: log.append(x) or x + 1)(torch.ones(2))
    assert not log
    with pytest.raises(NotImplementedError):
        torch._dynamo.export(lambda x: x, aten_graph=True)
