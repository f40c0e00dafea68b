"""Graph breaks, exceptions, backends, settings, threads, and memory."""

from __future__ import annotations

import gc
import itertools
import threading
import traceback

import pytest

import teletensor as torch
from teletensor import nn
from teletensor._dynamo.exc import BackendCompilerFailed, InvalidBackend, RecompileError, Unsupported
from teletensor._dynamo.utils import counters


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()


def make_tensors():
    global X
    X = torch.ones(3)


class Counter:
    def __init__(self):
        self.graphs = []

    def __call__(self, module, inputs):
        assert isinstance(module, torch.fx.GraphModule) and all(isinstance(i, (torch.Tensor, int)) for i in inputs)
        self.graphs.append(module)
        return module.forward


def test_a_backends_result_is_what_runs():
    def backend(module, inputs):
        return lambda *tensors: (tensors[0] * 100,)

    assert torch.compile(lambda x: x + 1, backend=backend)(X).tolist() == [100] * 3


def test_a_backend_that_raises():
    def fails(module, inputs):
        raise ValueError("no")

    with pytest.raises(BackendCompilerFailed, match="no"):
        torch.compile(lambda x: x + 1, backend=fails)(X)


def test_registered_backends():
    name = "test_breaks_backend"
    counter = Counter()
    torch._dynamo.register_backend(counter, name)
    torch.compile(lambda x: x + 1, backend=name)(X)
    assert len(counter.graphs) == 1 and name in torch._dynamo.list_backends()
    assert {"inductor", "teletensor"} <= set(torch.compiler.list_backends()) and "eager" not in torch.compiler.list_backends()
    assert "eager" in torch.compiler.list_backends(exclude_tags=())
    with pytest.raises(InvalidBackend):
        torch.compile(lambda x: x, backend="nothing")
    got = []
    torch.compile(lambda x: x + 1, backend=lambda m, i, options=None: got.append(options) or m.forward, options={"a": 1})(X)
    assert got == [{"a": 1}]


def test_the_engine_runs_a_program():
    before = len(torch.compiler.stats())
    f = torch.compile(lambda x: ((x * 2) + 1).relu().sum())
    assert f(X).item() == 9
    assert len(torch.compiler.stats()) == before + 1 and counters["engine"]["programs"] == 1


def test_fullgraph_raises_with_the_users_line():
    def f(x):
        return x + 1 if x.sum().item() > 0 else x

    with pytest.raises(Unsupported, match=r"test_breaks.py:\d+ in f"):
        torch.compile(f, fullgraph=True)(X)
    with torch._dynamo.error_on_graph_break(True), pytest.raises(Unsupported):
        torch.compile(f)(X)
    assert torch.compile(lambda x: x + 1, fullgraph=True)(X)[0] == 2


def test_operators_that_do_not_exist_yet():
    def f(x):
        try:
            return torch.ops.missing_here.one(x)
        except AttributeError:
            return x * 2

    counters.clear()
    compiled = torch.compile(f)
    assert compiled(torch.ones(2)).tolist() == [2, 2]
    assert not counters["internal"]
    library = torch.library.Library("missing_here", "DEF")
    library.define("one(Tensor x) -> Tensor")
    library.impl("one", lambda x: x + 10, "CompositeImplicitAutograd")
    assert compiled(torch.ones(2)).tolist() == [11, 11]


def test_explain():
    def f(x):
        x = x + 1
        print(end="")
        return x * 2

    output = torch._dynamo.explain(f)(X)
    assert (output.graph_count, output.graph_break_count, output.op_count) == (2, 1, 2)
    assert "test_breaks.py" in str(output) and "print()" in str(output)


def test_logs(capfd, monkeypatch):
    from teletensor._dynamo import _logs

    _logs.set_logs("graph_breaks,+guards,recompiles,graph_code")
    try:
        f = torch.compile(lambda x, k: x.sum().item() + x * k, backend="eager")
        f(X, 1), f(X, 2)
    finally:
        _logs.set_logs("")
    text = capfd.readouterr().err
    assert "[graph_breaks] Tensor.item" in text and "[guards]" in text and "[recompiles]" in text and "[graph_code] def forward" in text


def test_results_of_both_sides_of_a_branch():
    def f(x):
        y = x * 2
        if y.sum() > 0:
            z = y + 1
        else:
            z = y - 1
        return z * 3

    g = torch.compile(f)
    for x in (X, -X, X, -X):
        torch.testing.assert_close(g(x), f(x))


def test_a_break_in_a_loop():
    def f(x, n):
        out = []
        for i in range(n):
            x = x + i
            print(end="")
            out.append(x * 2)
        while x.sum() < 100:
            x = x * 2
        return x, out

    g = torch.compile(f, backend="eager")
    for n in (0, 3, 12):
        torch.testing.assert_close(g(X, n), f(X, n))


def test_a_break_in_try_and_with():
    log = []

    class Manager:
        def __enter__(self):
            log.append("enter")
            return self

        def __exit__(self, kind, value, trace):
            log.append(kind)
            return kind is KeyError

    def f(x, fails):
        with Manager():
            try:
                x = x + 1
                torch._dynamo.graph_break()
                if fails:
                    raise fails("reason")
                x = x * 2
            except ValueError:
                x = x - 100
            finally:
                x = x + 0.5
        return x

    g = torch.compile(f, backend="eager")
    for fails in (None, ValueError, KeyError, None):
        log.clear()
        want, entries = f(X, fails), list(log)
        log.clear()
        torch.testing.assert_close(g(X, fails), want)
        assert log == entries


def test_an_uncaught_exception_has_the_users_line():
    def f(x, k):
        y = x + 1
        if k > 2:
            raise ValueError(f"k is {k}")
        return y

    g = torch.compile(f)
    with pytest.raises(ValueError, match="k is 3") as info:
        g(X, 3)
    frames = [(s.name, s.line) for s in traceback.extract_tb(info.tb)]
    assert ("f", 'raise ValueError(f"k is {k}")') in frames
    with pytest.raises(TypeError, match=r"f\(\) missing 1 required positional argument: 'k'"):
        g(X)
    with pytest.raises(RuntimeError) as got:
        torch.compile(lambda x: x @ torch.ones(5, 5))(X)
    with pytest.raises(RuntimeError) as want:
        X @ torch.ones(5, 5)
    assert str(got.value) == str(want.value)
    with pytest.raises(KeyError, match="nothing"):
        torch.compile(lambda x, d: x + d["nothing"])(X, {})


def test_effects_before_an_exception_take_place():
    log = []

    def f(x):
        log.append(1)
        raise ValueError("no")

    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            torch.compile(f)(X)
    assert log == [1, 1]


def test_side_effects_are_replayed_in_every_call():
    class Box:
        pass

    box, log, table = Box(), [], {}

    def f(x, i):
        box.last = x + i
        log.append(x * i)
        table[i] = box.last
        return x

    g = torch.compile(f)
    for i in range(3):
        assert g(X, i) is X
    assert [t[0].item() for t in log] == [0, 1, 2] and list(table) == [0, 1, 2] and box.last is table[2]


def test_recompile_limit_and_settings():
    counter = Counter()

    def f(x, k):
        return x + (float(k) if isinstance(k, str) else k)

    g = torch.compile(f, backend=counter, recompile_limit=3)
    with pytest.warns(UserWarning, match="recompile_limit"):
        results = [g(X, str(k / 2))[0].item() for k in range(6)]
    assert results == [1, 1.5, 2, 2.5, 3, 3.5] and len(counter.graphs) == 3
    assert [g(X, str(k / 2))[0].item() for k in range(6)] == results and len(counter.graphs) == 3
    torch._dynamo.reset()
    g(X, 1)
    assert len(counter.graphs) == 4
    with torch._dynamo.config.patch(error_on_recompile=True), pytest.raises(RecompileError, match="args"):
        g(X, 2)
    with torch._dynamo.config.patch(disable=True):
        assert g(X, 9)[0] == 10
    assert len(counter.graphs) == 4


def test_order_of_sets_and_copies_of_modules():
    import copy
    import pickle

    def f(x, words):
        numbers = {32, 1, 19, 2}  # whose hashes have places of their own: else the order depends on the set's history
        numbers.discard(1)
        return x * 2, list(numbers), sorted(numbers | {5}), [w for w in words], len(words)

    g = torch.compile(f)
    for words in ({"b", "a", "c"}, {"a", "c", "b"}, {"z"}):
        got, want = g(X, words), f(X, words)
        assert got[1:] == want[1:] and got[0].tolist() == want[0].tolist()
    net = torch.compile(nn.Linear(3, 2))
    for copied in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):  # noqa: S301
        torch.testing.assert_close(copied(X), net(X))


def test_stances():
    counter = Counter()
    f = torch.compile(lambda x, k: x + k, backend=counter)
    with torch.compiler.set_stance("force_eager"):
        f(X, 1)
    assert not counter.graphs
    f(X, 1)
    with torch.compiler.set_stance("eager_on_recompile"):
        assert f(X, 2)[0] == 3
    with torch.compiler.set_stance("fail_on_recompile"), pytest.raises(RecompileError):
        f(X, 3)
    assert len(counter.graphs) == 1
    other = Counter()
    with torch.compiler.set_stance(force_backend=other):
        f(X, 4)
    assert len(other.graphs) == 1


def test_disable_allow_in_graph_and_constant_results():
    counter = Counter()

    @torch.compiler.disable
    def outside(x):
        return inner(x)

    inner = torch.compile(lambda x: x * 2, backend=counter)
    assert outside(X)[0] == 2 and not counter.graphs

    def opaque(x):
        return x.new_tensor(x.tolist())

    torch.compiler.allow_in_graph(lambda x: x)
    calls = []

    @torch.compiler.assume_constant_result
    def constant():
        calls.append(1)
        return 5

    f = torch.compile(lambda x: x * constant(), backend=counter)
    assert f(X)[0] == 5 and f(X)[0] == 5 and len(calls) == 1
    assert torch.compile(lambda x: x + (1 if torch.compiler.is_compiling() else 0), fullgraph=True)(X)[0] == 2
    assert not torch.compiler.is_compiling()
    assert torch.compile(opaque)(X)[0] == 1


def test_modules():
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    compiled = torch.compile(net)
    assert isinstance(compiled, torch._dynamo.OptimizedModule) and compiled._orig_mod is net and compiled[0] is net[0]
    assert list(compiled.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    compiled.eval()
    assert not net.training
    compiled.mark = 3
    assert net.mark == 3
    torch.testing.assert_close(compiled(X), net(X))
    net.compile(backend=(counter := Counter()))
    net(X)
    assert len(counter.graphs) == 1


def test_training_equals_plain_training():
    def train(compiles):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2))
        model = torch.compile(net) if compiles else net
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        for _ in range(5):
            loss = model(torch.randn(16, 4)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return [loss, *net.state_dict().values()]

    for a, b in zip(train(True), train(False)):
        torch.testing.assert_close(a, b)


def test_threads():
    f = torch.compile(lambda x, k: (x * k).sum())
    failures = []

    def work(n):
        try:
            for i in range(30):
                if f(torch.ones(n), i % 4).item() != n * (i % 4):
                    failures.append((n, i))
        except Exception as e:  # noqa: BLE001 - reported below
            failures.append(e)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(2, 6)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not failures


def test_many_calls_do_not_need_more_memory():
    import resource

    def f(x, box):
        box.append(x + 1)
        return box.pop() * 2

    g = torch.compile(f)
    box = []
    for _ in range(2000):
        g(X, box)
    torch.synchronize()
    gc.collect()
    before, objects = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, len(gc.get_objects())
    for i in range(100_000):
        g(X, box)
        if i % 1000 == 0:
            torch.synchronize()
    gc.collect()
    assert len(gc.get_objects()) < objects + 500
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 20_000  # KiB


@torch.compiler.disable
def _given(value):
    return value


def _many_elements(x):
    return (x.sum() * 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, _given(10), 11, 12, 13, 14, 15, _given(16), 17, 18, 19, 20, 21, 22, 23, 24,
            25, 26, 27, 28, 29, 30, 31, x + 1)  # fmt: skip


DISPLAYS = {
    "more than 30 elements": _many_elements,
    "a list": lambda x: [x, _given(1), *[2], 3, _given(4), *[5], _given(6), x],
    "a tuple": lambda x: (*[0], _given(1), *(2, 3), _given(4), *[5], _given(6), x * 2),
    "a set": lambda x: sorted({0, _given(1), *[2], 3, _given(4), *[5], _given(6)}),
    "a dict": lambda x: {**{"a": 1}, "b": _given(2), **{"c": 3}, "d": _given(4), **{"e": 5}, "f": x * 2},
    "a call": lambda x: dict(**{"a": 1}, b=_given(2), **{"c": 3}, d=_given(4)),
    "tee": lambda x: [list(q) for q in itertools.tee([1, 2])],
    "values that depend on data": lambda x: [bool(t > 0) for t in torch.unique(x)],
    "a count that depends on data": lambda x: [x[i].item() for i in range(x.argmax().item() + 1)],
    "a set of numbers": lambda x: {int(t) for t in x.unique()},
    "a dict of breaks": lambda x: {q: _given(q) for q in range(_given(2))},
    "nested": lambda x: [[_given(q + p) for q in range(_given(2))] for p in range(2)],
    "two loops": lambda x: [w for v in (1, _given(2)) for w in (v, _given(v + 1))],
    "a condition": lambda x: [q for q in (1, _given(2)) if q != _given(1)],
    "generators": lambda x: (tuple(_given(q) for q in (1, _given(2))), sum(_given(q) for q in (1, _given(2)))),
    "zip": lambda x: [_given(q) for q in zip((1, 2), (3, _given(4)))],
}


@pytest.mark.parametrize("name", DISPLAYS)
def test_breaks_within_displays(name):
    function = DISPLAYS[name]
    compiled = torch.compile(function)
    for _ in range(2):
        assert str(compiled(torch.zeros(1))) == str(function(torch.zeros(1)))


def _reversed_while_written(x):
    out = []
    values = [1, 2, 3]
    for v in reversed(values):
        values[0] = 50
        out.append(v)
    return out, x + 1


def _reversed_over_a_break(x):
    values = [1, 2, 3, 4]
    r = reversed(values)
    first = next(r)
    _given(0)
    values[0] = 9
    values.pop()
    return first, list(r), next(r, None), x + 1


def _reversed_until_its_end(x):
    values = [1, 2]
    r = reversed(values)
    out = list(r)
    values.append(3)
    _given(0)
    return out, list(r), list(reversed((1, _given(2)))), x + 1


def _a_function_that_names_itself(x):
    known = []

    def f(k):
        known.append(f)
        return x if k == 0 else f(k - 1)

    f(1)
    _given(f)
    f(2)
    return len(known), [g is f for g in known]


def _a_function_that_removes_itself(x):
    known = []

    def f(of=known):
        known.remove(f)
        return len(of)

    known.append(f)
    _given(0)
    return f(), x + 1


def _a_default_that_contains_its_function(x):
    known = []

    def f(of=known):
        return of[0] is f

    known.append(f)
    _given(0)
    return f(), x + 1


STATES = [_reversed_while_written, _reversed_over_a_break, _reversed_until_its_end, _a_function_that_names_itself,
          _a_function_that_removes_itself, _a_default_that_contains_its_function]  # fmt: skip


@pytest.mark.parametrize("function", STATES, ids=lambda f: f.__name__)
def test_state_over_breaks(function):
    compiled = torch.compile(function)
    for _ in range(2):
        assert str(compiled(torch.ones(1))) == str(function(torch.ones(1)))


def test_a_reversed_iterator_that_is_returned():
    def function(x, values):
        r = reversed(values)
        values[0] = 7
        return x + 1, r

    for call in (function, torch.compile(function)):
        values = [1, 2, 3]
        _, r = call(torch.ones(1), values)
        values[1] = 9
        assert list(r) == [3, 9, 7]


GLOBAL = 0


def _write_by_key(x, n):
    globals()["GLOBAL"] = n
    return x + GLOBAL


def _write_by_update(x, n):
    globals().update(GLOBAL=n, ANOTHER_GLOBAL=n)
    return x + GLOBAL + ANOTHER_GLOBAL  # noqa: F821


def _write_and_delete(x, n):
    globals().setdefault("ANOTHER_GLOBAL", n)
    found = x + ANOTHER_GLOBAL  # noqa: F821
    del globals()["ANOTHER_GLOBAL"]
    return found


@pytest.mark.parametrize("function", [_write_by_key, _write_by_update, _write_and_delete], ids=lambda f: f.__name__)
def test_writes_to_the_dict_of_globals(function):
    compiled = torch.compile(function)
    for n in (2, 3, 3, 4):
        globals().pop("ANOTHER_GLOBAL", None)
        expected = function(torch.zeros(1), n)
        globals().pop("ANOTHER_GLOBAL", None)
        assert compiled(torch.zeros(1), n).tolist() == expected.tolist()
