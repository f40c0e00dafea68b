"""Functions that call the standard library: results, output and states of generators in every call, compared with plain Python."""

from __future__ import annotations

import operator
import random
import warnings

import pytest

from . import library_functions

FUNCTIONS = {name: f for name, f in vars(library_functions).items() if name[:2] in ("g_", "b_", "n_") and callable(f)}


def calls(torch, capsys, function, inputs):
    random.seed(3)
    library_functions.RNG.seed(7)
    library_functions.holder.rng.seed(5)
    library_functions.n_calls = 0
    library_functions.STREAM.seek(0)
    library_functions.STREAM.truncate()
    found = []
    for x in inputs:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = function(x)
        streams = capsys.readouterr()
        states = random.getstate(), library_functions.RNG.getstate(), library_functions.holder.rng.getstate()
        messages = [str(w.message) for w in caught if "recompile_limit" not in str(w.message)]
        found.append((result, states, streams.out, streams.err, library_functions.STREAM.getvalue(), messages))
    return found


def same(torch, got, want):
    assert type(got) is type(want)
    if isinstance(want, torch.Tensor):
        torch.testing.assert_close(got, want)
    elif isinstance(want, (list, tuple)):
        assert len(got) == len(want)
        for a, b in zip(got, want):
            same(torch, a, b)
    elif hasattr(want, "items"):
        same(torch, list(got.items()), list(want.items()))
    else:
        assert got == want


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_call_is_that_of_plain_python(torch, capsys, monkeypatch, name):
    torch._dynamo.reset()
    function = FUNCTIONS[name]
    x = torch.arange(12.0).reshape(3, 4) / 4 + 1
    inputs = [x, x * 2, x - 3, torch.ones(5, 4), torch.ones(7, 4)]
    want = calls(torch, capsys, function, inputs)
    if name.startswith("g_print"):
        monkeypatch.setattr(torch._dynamo.config, "reorderable_logging_functions", {print})
    compiled = torch.compile(function, fullgraph=name.startswith("g_"))
    same(torch, calls(torch, capsys, compiled, inputs), want)
    same(torch, calls(torch, capsys, compiled, inputs), want)
    if name.startswith("b_"):
        torch._dynamo.reset()
        with pytest.raises(torch._dynamo.exc.Unsupported):
            torch.compile(function, fullgraph=True)(x)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name.startswith("g_print")])
def test_print_ends_the_graph(torch, capsys, name):
    torch._dynamo.reset()
    function, inputs = FUNCTIONS[name], [torch.ones(3, 4), torch.ones(3, 4) * 2, torch.ones(5, 4)]
    want = calls(torch, capsys, function, inputs)
    same(torch, calls(torch, capsys, torch.compile(function), inputs), want)
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(function, fullgraph=True)(inputs[0])


def test_gradients_and_matches(torch):
    torch._dynamo.reset()

    def f(x):
        return (x * random.random()).sum() * 1.0 + 0 * x.sum(), random.random()

    compiled = torch.compile(f, fullgraph=True)
    found = []
    for function in (f, compiled):
        random.seed(1)
        for _ in range(3):
            x = torch.ones(3, requires_grad=True)
            function(x)[0].backward()
            found.append(x.grad[0].item())
    assert found[:3] == found[3:]
    assert len(set(found)) == 3

    def g(x):
        return x, library_functions.P.search("..a=1"), [m for m in library_functions.P.finditer("a=1 b=2")][1]

    x = torch.ones(2)
    first, second = torch.compile(g, fullgraph=True)(x), torch.compile(g, fullgraph=True)(x)
    assert [m.span() for m in first[1:]] == [m.span() for m in second[1:]] == [m.span() for m in g(x)[1:]]
    assert first[1] is not second[1]


def test_export_refuses_draws_and_prints(torch, capsys, monkeypatch):
    monkeypatch.setattr(torch._dynamo.config, "reorderable_logging_functions", {print})
    for function in (FUNCTIONS["g_random"], FUNCTIONS["g_print"], FUNCTIONS["g_unused"]):
        with pytest.raises(torch._dynamo.exc.Unsupported):
            torch._dynamo.export(function)(torch.ones(3, 4))


def test_a_pattern_or_generator_that_is_replaced(torch, capsys, monkeypatch):
    torch._dynamo.reset()
    x = torch.ones(3, 4)
    search = torch.compile(FUNCTIONS["g_pattern"], fullgraph=True)
    want = FUNCTIONS["g_pattern"](x)
    torch.testing.assert_close(search(x), want)
    monkeypatch.setattr(library_functions, "P", library_functions.re.compile("(a)=(1)"))
    torch.testing.assert_close(search(x), FUNCTIONS["g_pattern"](x))
    assert not torch.equal(search(x), want)
    own = torch.compile(FUNCTIONS["g_global_rng"], fullgraph=True)
    own(x)
    monkeypatch.setattr(library_functions, "RNG", random.Random(11))
    got = own(x)
    library_functions.RNG.seed(11)
    torch.testing.assert_close(got, FUNCTIONS["g_global_rng"](x))

    class Fixed(random.Random):
        def random(self):
            return 0.25

        def randint(self, a, b):
            return 4

    monkeypatch.setattr(library_functions, "RNG", Fixed())
    torch.testing.assert_close(torch.compile(FUNCTIONS["g_global_rng"])(x), x + 4.25)


def test_print_is_that_of_the_call(torch, capsys, monkeypatch):
    torch._dynamo.reset()
    monkeypatch.setattr(torch._dynamo.config, "reorderable_logging_functions", {print})
    compiled = torch.compile(FUNCTIONS["g_print"], fullgraph=True)
    compiled(torch.ones(2))
    assert capsys.readouterr().out == "a-1-2.5-None-True!\n"
    stream = library_functions.io.StringIO()
    monkeypatch.setattr("sys.stdout", stream)
    compiled(torch.ones(2))
    assert stream.getvalue() == "a-1-2.5-None-True!\n"
    printed = []
    monkeypatch.setattr("builtins.print", lambda *args, **_: printed.append(args))
    torch.compile(FUNCTIONS["g_print"])(torch.ones(2))
    compiled(torch.ones(2))
    assert len(printed) == 2


def test_length_hint(torch):
    compiled = torch.compile(lambda x: x * sum(map(operator.length_hint, ([1, 2], (3,), {}))), fullgraph=True)
    assert compiled(torch.ones(2)).tolist() == [3, 3]
