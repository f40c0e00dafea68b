"""The breaks of short functions that use Python's features, compared with PyTorch 2.15's, and their results."""

from __future__ import annotations

import random

import pytest

from . import typical_functions

FUNCTIONS = {name[2:]: f for name, f in vars(typical_functions).items() if name.startswith("t_")}
# Functions with graph breaks; the others compile with fullgraph=True. PyTorch ends the graph at these as well, and in "bisect_left",
# "bisect_key", "json" and "meta", among others: with fullgraph=True it raises Unsupported. Its explain() counts graphs with operators,
# less one, and so no break before the first operator.
BREAKS = {"print": 1, "warn": 1, "time": 1, "perf": 1}


def begin(torch):
    torch._dynamo.reset()
    random.seed(0)
    module = typical_functions.mod
    module.count = 0
    module.seen.clear()
    module.reg.clear()
    return torch.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore")
def test_typical_functions(torch, name):
    function = FUNCTIONS[name]
    want = function(begin(torch))
    explained = torch._dynamo.explain(function)(begin(torch))
    assert max(explained.graph_break_count, 0) <= BREAKS.get(name, 0)
    x = begin(torch)
    compiled = torch.compile(function, fullgraph=name not in BREAKS)
    for _ in range(2):
        got = compiled(x)
        if name != "modattr":  # counts its calls
            torch.testing.assert_close(torch.as_tensor(got), torch.as_tensor(want))
    x = torch.randn(5, 4)
    want = function(x) if name != "modattr" else x * 3
    torch.testing.assert_close(torch.as_tensor(compiled(x)), torch.as_tensor(want))
