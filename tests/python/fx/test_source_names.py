"""Names that are no identifiers are refused by generated code instead of being written to it."""

from __future__ import annotations

import pytest


def graph_of(torch):
    graph = torch.fx.Graph()
    return graph, graph.placeholder("x")


@pytest.mark.parametrize("name", ['x=print("RUN")', "x):\n    return 0\ndef q(self, x", "lambda", "***x", "", "x y"])
def test_parameters(torch, name):
    graph = torch.fx.Graph()
    graph.output(graph.placeholder(name))
    with pytest.raises(ValueError, match="identifier"):
        torch.fx.GraphModule({}, graph)


@pytest.mark.parametrize("name", ["out=print(1),z", "lambda", "a b", ""])
def test_keywords(torch, name):
    graph, x = graph_of(torch)
    graph.output(graph.call_function(torch.relu, (x,), {name: 1}))
    with pytest.raises(ValueError, match="identifier"):
        torch.fx.GraphModule({}, graph)


@pytest.mark.parametrize("name", ['w") if [print("RUN")] else (self,"w', "w\n", "w\\"])
def test_paths(torch, name):
    graph, x = graph_of(torch)
    graph.output(graph.call_function(torch.add, (x, graph.get_attr(name))))
    with pytest.raises(ValueError, match="path of names"):
        torch.fx.GraphModule({name: torch.ones(2)}, graph)


def test_names_of_nodes(torch):
    graph, x = graph_of(torch)
    node = graph.call_function(torch.relu, (x,))
    node.name = "y = print(3); z"
    graph.output(node)
    with pytest.raises(ValueError, match="identifier"):
        torch.fx.GraphModule({}, graph)


def test_arguments_of_structures(torch):
    make, info = torch.fx.graph._PyTreeCodeGen, torch.fx.graph._PyTreeInfo
    graph, x = graph_of(torch)
    graph.output(x)
    _, spec = torch.utils._pytree.tree_flatten(((), {"':print(1),'": 1}))
    for names in (["x=print(3)"], ["x"]):
        graph.set_codegen(make(info(names, spec, None)))
        if names == ["x"]:
            assert torch.fx.GraphModule({}, graph)(3) == 3
        else:
            with pytest.raises(ValueError, match="identifier"):
                torch.fx.GraphModule({}, graph)


def test_names_that_need_getattr(torch):
    graph, x = graph_of(torch)
    parts = [graph.get_attr(name) for name in ("0", "a b", "class")]
    for part in parts:
        x = graph.call_function(torch.add, (x, part))
    graph.output(x)
    module = torch.fx.GraphModule({n: torch.ones(2) for n in ("0", "a b", "class")}, graph)
    assert module(torch.zeros(2)).tolist() == [3, 3]
