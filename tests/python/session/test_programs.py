"""Programs: traced functions that the engine runs as one instruction, beside the same calls one by one."""

from __future__ import annotations

import copy
import functools
import gc
import math
import random
import re

import numpy as np
import pytest

import teletensor as torch
import teletensor.nn as nn
import teletensor.nn.functional as F
from tests.conftest import IN_PROCESS
from tests.python.session.test_session import run_script

pytestmark = pytest.mark.slow

trace, explain = torch.compiler.trace, torch.compiler.explain
needs_daemon = pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")


@functools.cache
def weights_of(session):
    """Of a session, because tests may replace it."""
    return torch.ones(4, requires_grad=True), torch.randn(48), torch.randn(48)


def weights():
    return weights_of(torch.connection())


@pytest.fixture(autouse=True)
def _outside_of_traces():
    weights()


def same(got, want):
    """Whether the values are equal, bit by bit."""
    assert got.dtype == want.dtype and got.shape == want.shape and got.stride() == want.stride()
    assert torch.equal(got, want) or torch.equal(got.isnan(), want.isnan())


def chain(x, y):
    z = torch.relu(x * 2 + y)
    return {"sum": (z.exp() - y).sum(1), "both": [z, x.t() @ z]}


@pytest.mark.parametrize("rows", [1, 3, 300])
def test_values_are_those_of_single_calls(rows):
    program = trace(chain, torch.zeros(3, 200), torch.zeros(3, 200))
    x, y = torch.randn(rows, 200), torch.randn(rows, 200)
    got, want = program(x, y), chain(x, y)
    assert list(got) == ["sum", "both"]
    same(got["sum"], want["sum"])
    for a, b in zip(got["both"], want["both"]):
        same(a, b)


def test_gradients_and_captured_parameters():
    model = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 3))
    x, target = torch.randn(5, 6), torch.tensor([0, 2, 1, 1, 0])
    program = trace(lambda x: F.cross_entropy(model(x), target), x)
    assert len(program.captured) == 7  # six parameters and the target
    losses = {}
    for name, loss_of in (("program", program), ("calls", lambda x: F.cross_entropy(model(x), target))):
        torch.manual_seed(3)
        for p in model.parameters():
            nn.init.normal_(p)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        losses[name] = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = loss_of(x)
            loss.backward()
            optimizer.step()
            losses[name].append(loss.item())
    assert losses["program"] == losses["calls"]
    assert losses["calls"][4] < losses["calls"][0]


def test_second_derivatives_and_unused_inputs():
    x, unused = torch.randn(4, requires_grad=True), torch.randn(4, requires_grad=True)
    program = trace(lambda a, b: (a**3).sum(), x, unused)
    (first,) = torch.autograd.grad(program(x, unused), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert torch.allclose(first, 3 * x**2) and torch.allclose(second, 6 * x)
    program(x, unused).backward()
    assert unused.grad is None and torch.allclose(x.grad, 3 * x**2)


def test_modes_of_the_call_and_of_the_trace():
    w = torch.randn(3, requires_grad=True)

    def half(x):
        with torch.no_grad():
            fixed = x * w
        return fixed, x * w

    program = trace(half, torch.ones(3))
    fixed, free = program(torch.ones(3))
    assert not fixed.requires_grad and free.requires_grad
    with torch.no_grad():
        assert not program(torch.ones(3))[1].requires_grad
    with torch.inference_mode():
        assert not program(torch.ones(3))[1].requires_grad


def test_random_numbers_continue_the_generator():
    def draw(x):
        torch.rand(5)  # unused, but advances the generator
        return F.dropout(x, 0.5), torch.randn_like(x)

    program = trace(draw, torch.ones(1000))
    results = []
    for f in (program, draw):
        torch.manual_seed(7)
        results.append([*f(torch.ones(1000)), torch.rand(3)])
    for a, b in zip(*results):
        same(a, b)


def test_writes_to_inputs_and_buffers():
    def update(x, total):
        with torch.no_grad():
            total.mul_(0.5).add_(x)
            total[0] = 9
        return total * 2

    program = trace(update, torch.ones(3), torch.zeros(3))
    totals = torch.zeros(3), torch.zeros(3)
    version = totals[0]._version
    for _ in range(3):
        x = torch.randn(3)
        same(program(x, totals[0]), update(x, totals[1]))
        same(totals[0], totals[1])
    assert totals[0]._version > version
    norm = nn.BatchNorm1d(4)
    program = trace(norm, torch.zeros(8, 4))
    x = torch.randn(8, 4)
    other = nn.BatchNorm1d(4)
    same(program(x), other(x))
    for a, b in zip(norm.buffers(), other.buffers()):
        same(a, b)


def test_write_to_saved_input_is_noticed():
    x, buffer = torch.randn(3, requires_grad=True), torch.ones(3)

    @torch.no_grad()
    def double(t):
        t.mul_(2)
        return t.sum()

    program = trace(double, buffer)
    y = x * buffer
    program(buffer)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        x.grad.tolist()


def test_identities_of_outputs():
    c = torch.arange(3.0)

    def f(x):
        y = x + c
        return x, y, c, y, 5, "text"

    program = trace(f, torch.zeros(3))
    x = torch.ones(3)
    a, b, d, e, number, text = program(x)
    assert a is x or a.data_ptr() == x.data_ptr()
    assert (number, text) == (5, "text")
    same(d, c)
    b.add_(1)
    same(e, b)  # one tensor, as in the function


@pytest.mark.parametrize(
    "f,error,match",
    [
        (lambda x: x.sum().item(), RuntimeError, "exists only while a Program is traced"),
        (lambda x: torch.nonzero(x), NotImplementedError, "sizes of its results depend on values"),
        (lambda x: x.view(-1), NotImplementedError, "cannot be a view of an input"),
        (lambda x: (x + 1).split(2), NotImplementedError, "views of one tensor"),
        (lambda x: trace(lambda y: y, x)(x), RuntimeError, "tracing a Program already"),
        (lambda x: x.mul_(weights()[0]), NotImplementedError, "while gradients are recorded"),
        (lambda x: x @ torch.ones(3), RuntimeError, "matmul|mv|size"),
    ],
)
def test_what_cannot_be_traced(f, error, match):
    x = torch.ones(4)
    with pytest.raises(error, match=match):
        trace(f, x)
    assert (x + 1).tolist() == [2, 2, 2, 2]  # nothing is traced any more


def test_a_run_under_autocast_is_refused():
    program = trace(lambda x: x @ x, torch.ones(2, 2))
    with torch.autocast("cpu"), pytest.raises(NotImplementedError, match="autocast"):
        program(torch.ones(2, 2))


def test_tensors_of_a_trace_have_no_value_outside():
    kept = []
    trace(lambda x: kept.append(x + 1) or x * 2, torch.ones(2))
    with pytest.raises(RuntimeError, match="exists only while a Program is traced"):
        kept[0] + 1
    with pytest.raises(RuntimeError, match="exists only while a Program is traced"):
        print(kept[0].tolist())
    with pytest.raises(RuntimeError, match="earlier trace"):
        trace(lambda x: x + kept[0], torch.ones(2))


def test_arguments_are_checked():
    program = trace(lambda x, flag: x + 1 if flag else x - 1, torch.ones(2), True)
    assert program(torch.ones(2), True).tolist() == [2, 2]
    with pytest.raises(ValueError, match="expected True, as traced, got False"):
        program(torch.ones(2), False)
    with pytest.raises(TypeError, match="expected a Tensor"):
        program(3, True)
    for constant, other in ((float("nan"), float("inf")), (0.0, -0.0), (np.zeros(3), np.ones(3))):
        program = trace(lambda x, _: x + 1, torch.ones(2), constant)
        assert program(torch.ones(2), copy.copy(constant)).tolist() == [2, 2]
        with pytest.raises(ValueError, match="trace the function again"):
            program(torch.ones(2), other)
    program = trace(lambda x, flag: x + 1 if flag else x - 1, torch.ones(2), True)
    with pytest.raises(TypeError, match="got the arguments"):
        program(torch.ones(2))
    program = trace(lambda x, y: x @ y, torch.ones(2, 3), torch.ones(3, 2))
    with pytest.raises(RuntimeError):
        program(torch.ones(2, 3), torch.ones(4, 2))
    assert program(torch.ones(1, 4), torch.ones(4, 1)).item() == 4


def test_error_names_the_instruction_and_its_line():
    def f(x, i):
        y = x + 1
        return y.index_select(0, i) * 2

    program = trace(f, torch.ones(3), torch.tensor([0]))
    failed = program(torch.ones(3), torch.tensor([7]))
    dependent = failed + 1
    for tensor in (failed, dependent):
        with pytest.raises(IndexError, match=r"instruction 1 of a Program, .*test_programs.py:\d+ in .*f\)"):
            tensor.tolist()
    assert program(torch.ones(3), torch.tensor([2])).tolist() == [4]


def test_failed_input_fails_the_run():
    program = trace(lambda x, t: (x + 1, t.mul_(2))[0], torch.ones(3), torch.ones(3))
    total = torch.ones(3)
    bad = torch.ones(3).index_select(0, torch.tensor([9]))
    with pytest.raises(IndexError):
        program(bad, total).tolist()
    assert program(torch.ones(3), total).tolist() == [2, 2, 2]
    assert total.tolist() == [2, 2, 2]  # the failed run has not written


def test_large_constants_and_definitions():
    table = torch.randn(300, 300)  # uploaded outside the Program

    def f(x):
        for i in range(1500):
            x = x * 1.0001 + float(i)
        return x + table + torch.tensor([float(i) for i in range(300)])

    program = trace(f, torch.ones(300, 300))
    assert program.instructions > 3000
    x = torch.randn(300, 300)
    same(program(x), f(x))


def test_explain_shows_every_pass():
    def f(x):
        x.exp()  # unused
        return (torch.relu(x * 2) + torch.relu(x * 2)).sum()

    text = explain(f, torch.ones(100_000))
    traced, cleaned, rewritten, fused = text.split("# after ")
    assert traced.count("relu") == 2 and "exp" in traced
    assert cleaned.count("relu") == 1 and "exp" not in cleaned
    assert cleaned.splitlines()[1:] == rewritten.splitlines()[1:]
    chain, expression, *_ = fused.splitlines()[1:]
    assert re.fullmatch(r"%\d+ = pointwise_chain\(\[%1\]\)", chain)  # the loop ends with the sum
    assert re.fullmatch(r"    t1 = relu\(mul\(%1, other=2\)\)", expression)
    assert re.search(r"    %\d+ = sum\(add\(t1, t1\)\)\nread", fused)


def test_explain_says_why_calls_are_not_one_loop():
    def f(x, w, count):
        with torch.no_grad():
            count.add_(1)
        y = (x + 1).exp() @ w
        return (y.neg() * y.sigmoid()).softmax(1).sum(), y.double().exp()

    x, w = torch.randn(64, 64), torch.randn(64, 64)
    text = explain(f, x, w, torch.zeros(32))
    assert text.split("# not fused\n")[1].splitlines() == [
        "%4 = loop and %5 = matmul: matmul has a kernel of its own",
        "%5 = matmul and %6 = loop: matmul has a kernel of its own",
        "%6 = loop and %7 = softmax: softmax has a kernel of its own",
        "%9 = to_dtype and %10 = exp: to_dtype has a kernel of its own",
    ]
    text = explain(lambda x: torch.where(x > 0, x.exp(), x).sum(0).exp(), torch.randn(64, 64))
    assert "gt and %" in text and "dtype: loops compute float32 and float64, gt computes bool" in text
    assert "runs after the loop; reduction over a dimension with fewer than 512 neighbouring elements" in text
    result = explain(lambda x: x.exp().neg(), x).split("# after")[-1]
    assert "not fused" not in result and "    %3 = neg(exp(%1))" in result


def test_explain_of_recorded_calls_says_so():
    x = torch.randn(64, 64, requires_grad=True)
    text = explain(lambda x: (x.exp() @ x).neg().exp().sum(), x)
    assert "the tape records" in text.split("# not fused\n")[1]


@needs_daemon
def test_dropped_programs_leave_nothing(daemon):
    script = """
import gc, json, os, teletensor as torch
torch.connection()
admin = torch._C.Admin(os.environ["TELETENSOR_ADDRESS"])
def held():
    gc.collect()
    torch.synchronize()
    status = json.loads(admin.status())
    return [int(each["handles"]) for each in status["sessions"]], [int(d["memory"]["allocated"]) for d in status["devices"]]
x = torch.ones(10)
before = held()
for i in range(300):
    torch.compiler.trace(lambda x, i=i: x + float(i), x)(x)
assert held() == before, (held(), before)
for i in range(5000):  # more than a session may have at a time
    torch.compiler.trace(lambda x: x + 1.0, x)(x)
assert held() == before
"""
    done = run_script(script, daemon)
    assert done.returncode == 0, done.stderr


def test_one_instruction_per_run():
    def f(x):
        for _ in range(50):
            x = x + 1
        return x

    program = trace(f, torch.ones(3))
    x = program(torch.ones(3))
    x.tolist()
    before = torch.connection().counters()["instructions"]
    for _ in range(10):
        x = program(x)
    assert torch.connection().counters()["instructions"] - before == 10
    assert x.tolist() == [551, 551, 551]




def gelu(h):
    return 0.5 * h * (1 + torch.tanh(0.7978845608028654 * (h + 0.044715 * h**3)))


def written_softmax(x):
    e = (x - x.max(-1, keepdim=True)[0]).exp()
    return e / e.sum(-1, keepdim=True)


def written_attention(q):
    return written_softmax(q @ q.transpose(-2, -1) / 7.0) @ q


WRITTEN_OUT = {
    "softmax": [
        written_softmax,
        lambda x: torch.exp(x - x.amax(1, keepdim=True)) / torch.exp(x - x.amax(1, keepdim=True)).sum(1, keepdim=True),
    ],
    "rms_norm": [
        lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weights()[1],
        lambda x: weights()[1] * (x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5)),
        lambda x: x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5),
    ],
    "layer_norm": [
        lambda x: (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-5) * weights()[1] + weights()[2],
        lambda x: (x - x.mean(-1, keepdim=True)) * torch.rsqrt(((x - x.mean(-1, keepdim=True)) ** 2).mean(-1, keepdim=True) + 1e-5),
    ],
    "gelu_tanh": [gelu],
    "gelu_erf": [lambda x: x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2)))],
    "silu": [lambda x: x * torch.sigmoid(x), lambda x: torch.sigmoid(x) * x],
    "softmax_attention": [written_attention],
    "cross_entropy": [
        lambda x: F.nll_loss(F.log_softmax(x, 1), torch.arange(96).reshape(2, 48) % 5),
        lambda x: F.nll_loss(F.log_softmax(x[0], -1), torch.arange(5)),
    ],
}


@pytest.mark.parametrize("op,f", [(op, f) for op, forms in WRITTEN_OUT.items() for f in forms])
def test_written_out_operators(op, f):
    x = torch.randn(2, 5, 48, requires_grad=True)
    program = trace(f, x)
    rewritten = program.explain(x).split("# after rewrite")[1].split("# after fuse")[0]
    assert f"= {op}(" in rewritten and rewritten.count("=") <= 3 + rewritten.count(op) * 8, rewritten
    (want,) = torch.autograd.grad(f(x).sin().sum(), x)
    (got,) = torch.autograd.grad(program(x).sin().sum(), x)
    assert torch.allclose(program(x), f(x), rtol=1e-5, atol=1e-6)
    assert torch.allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("sizes", [(4, 4), (2, 1, 4, 4), (4, 1), (1, 4)])
def test_written_attention_keeps_the_nan_of_masked_rows(sizes):
    f = lambda q, mask: torch.softmax(q @ q.transpose(-2, -1) * 0.5 + mask, -1) @ q  # noqa: E731
    q, mask = torch.randn(2, 3, 4, 8, requires_grad=True), torch.zeros(*sizes)
    mask[..., 0, :] = -math.inf
    program = trace(f, q, mask)
    assert "softmax_attention(" in program.explain(q, mask)
    assert torch.allclose(program(q, mask), f(q, mask), rtol=1e-5, atol=1e-6, equal_nan=True)
    assert program(q, mask)[..., 0, :].isnan().all() and (sizes == (1, 4) or program(q, mask)[..., 1:, :].isfinite().all())


@pytest.mark.parametrize("f", [f for forms in WRITTEN_OUT.values() for f in forms])
def test_exact_programs_keep_the_bits(f, monkeypatch):
    monkeypatch.setenv("TELETENSOR_EXACT_PROGRAMS", "1")
    program = trace(f, torch.zeros(2, 5, 48))
    x = torch.randn(2, 5, 48)
    same(program(x), f(x))
    assert "# after rewrite" not in program.explain(x)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: torch.exp(x - x.amax(1, keepdim=True)) / torch.exp(x - x.amax(1, keepdim=True)).sum(0, keepdim=True),
        lambda x: x * torch.rsqrt(x.pow(2).mean(0, keepdim=True) + 1e-6),  # another dimension than the last
        lambda x: x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + 1e-6),
        lambda x: 0.5 * x * (1 + torch.tanh(0.8 * (x + 0.044715 * x**3))),  # another constant
        lambda x: (torch.exp(x - x.amax(1, keepdim=True)).sum(), written_softmax(x))[1] * 2,
        lambda x: x * torch.sigmoid(x + 1),
        lambda x: F.nll_loss(F.log_softmax(x, 0), torch.arange(6)),  # not over the classes
        lambda x: F.nll_loss(F.log_softmax(x, 1), torch.arange(6), reduction="sum"),
    ],
)
def test_similar_expressions_are_kept(f):
    x = torch.randn(6, 48)
    got, want = trace(f, x)(x), f(x)
    assert torch.allclose(got, want, rtol=1e-6, atol=1e-7)


def test_narrow_types_are_not_rewritten():
    x = torch.randn(6, 48, dtype=torch.bfloat16)
    same(trace(written_softmax, x)(x), written_softmax(x))


def test_other_arguments_are_refused_by_their_structure():
    program = trace(lambda x, parts, scale: x * parts[0] * scale, torch.ones(2), [torch.ones(2)], scale=3)
    with pytest.raises(TypeError, match=re.escape("expected the arguments (*, [*], scale=*), got the arguments (*, {'a': *}, scale=*)")):
        program(torch.ones(2), {"a": torch.ones(2)}, scale=3)


UNARY = ["relu", "exp", "sin", "neg", "abs", "sigmoid", "tanh", "square", "gelu", "silu"]
BINARY = ["add", "sub", "mul", "maximum", "minimum"]


def random_function(draw, size):
    """A function of three tensors that calls up to 60 operators."""
    steps = [draw.choice(["unary", "binary", "number", "rows", "columns", "softmax", "view", "matmul", "masked",
                          "write"])
             for _ in range(draw.randint(5, 60))]  # fmt: skip
    picks = [(draw.random(), draw.random(), draw.choice(UNARY), draw.choice(BINARY)) for _ in steps]

    def f(a, b, c):
        values = [a, b, c]
        for step, (i, j, unary, binary) in zip(steps, picks):
            x, y = values[int(i * len(values))], values[int(j * len(values))]
            if step == "unary":
                z = getattr(F if unary in ("gelu", "silu") else torch, unary)(x.clamp(-3, 3))
            elif step == "binary":
                z = getattr(torch, binary)(x, y)
            elif step == "number":
                z = x * 0.5 + i
            elif step == "rows":
                z = x - x.mean(1, keepdim=True) + y.amax(1, keepdim=True)
            elif step == "columns":
                z = x + y.sum(0)
            elif step == "softmax":
                z = F.softmax(x, -1)
            elif step == "view":
                z = x.t().contiguous().reshape(x.shape) + y
            elif step == "matmul":
                z = (x @ y.t() / size) @ x
            elif step == "masked":
                z = (x @ y.t() / size).masked_fill(a > 0, -1e9).softmax(-1) @ y
            else:
                z = torch.zeros_like(x)
                z += x
                z[0] = 1
            values.append(z.clamp(-100, 100))
        return values[-1], sum(v.mean() for v in values[3:])

    return f


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed, monkeypatch):
    draw = random.Random(seed)
    size = draw.choice([4, 4, 200])
    f = random_function(draw, size)
    inputs = [torch.randn(size, size, generator=torch.Generator().manual_seed(seed)) for _ in range(3)]
    monkeypatch.setenv("TELETENSOR_EXACT_PROGRAMS", "1")
    program = trace(f, *inputs)
    for grad in (False, True):
        leaves = [x.clone().requires_grad_(grad) for x in inputs], [x.clone().requires_grad_(grad) for x in inputs]
        got, want = program(*leaves[0]), f(*leaves[1])
        for a, b in zip(got, want):
            same(a, b)
        if grad:
            got[1].backward()
            want[1].backward()
            for a, b in zip(*leaves):
                assert (a.grad is None) == (b.grad is None)
                if a.grad is not None:
                    same(a.grad, b.grad)

    def differentiated(*leaves):
        values, loss = f(*leaves)[:2]
        return values.detach() * 1, *torch.autograd.grad(loss, leaves, allow_unused=True)

    leaves = [x.clone().requires_grad_() for x in inputs]
    program = trace(differentiated, *leaves)
    for got, want in zip(program(*leaves), differentiated(*leaves)):
        assert (got is None) == (want is None)
        if got is not None:
            same(got, want)


def test_log_has_an_explanation_per_signature():
    script = """if True:
        import teletensor as torch
        program = torch.compiler.trace(lambda x: torch.relu(x) + 1, torch.ones(3))
        for n in (3, 3, 4):
            program(torch.ones(n))
    """
    result = run_script(script, TELETENSOR_LOG="other,programs")
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("# <lambda>(float32[3])\n# as traced\n") == 1
    assert result.stderr.count("# <lambda>(float32[") == 2 and "# after merge_equal" in result.stderr
    assert result.stderr.count("# not fused\n%2 = relu and %3 = add: size: relu has 3 elements, loops are for at least 16") == 1
    assert run_script(script).stderr == ""


def test_stats():
    def counted(x):
        x = x * 2
        return (torch.relu(x) + torch.relu(x)).sum()

    gc.collect()  # Programs of other tests
    known = len(torch.compiler.stats())
    program = trace(counted, torch.ones(10_000))
    assert len(torch.compiler.stats()) == known  # not defined yet
    for size in (10_000, 10_000, 20_000):
        program(torch.ones(size))
    row = torch.compiler.stats()[-1]
    assert row.name == "counted" and row.instructions == 5 and row.compiled_instructions == 1
    assert row.runs == 3 and row.signatures == 2 and row.compile_seconds > 0
    assert row.peak_bytes == 4  # one loop, of which only the sum is stored
    table = str(torch.compiler.stats()).splitlines()
    assert table[0].split() == ["program", "instructions", "compiled", "runs", "signatures", "compiling", "memory"]
    assert ["counted", "5", "1", "3", "2"] in [line.split()[:5] for line in table]  # windows may follow
    del program
    assert len(torch.compiler.stats()) == known


def test_loops_do_not_take_more_memory():
    """A loop for the product and the sum would keep both factors while the products of matrices are computed."""
    w = [torch.randn(64, 64) for _ in range(4)]

    def function(x):
        y = (x @ w[0]) * (x @ w[1])
        return y + (x @ w[2]) @ w[3]

    x = torch.randn(64, 64)
    text = explain(function, x)
    peaks = [int(n) for n in re.findall(r"values of at most (\d+) bytes", text)]
    assert peaks[-1] == peaks[0] == 3 * x.nbytes and "not fuse_regions, which would take more memory" in text
    assert torch.equal(trace(function, x)(x), function(x))


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers_that_drop_values_are_two_draws(kind):
    layer, x = getattr(nn, kind)(8, 16, num_layers=2, dropout=0.5), torch.randn(5, 2, 8)

    def function(x):
        return layer(x)[0] - layer(x)[0]

    with torch.no_grad():
        program = trace(function, x)
        torch.manual_seed(0)
        expected, following = function(x), torch.rand(3)
        torch.manual_seed(0)
        torch.testing.assert_close(program(x), expected)
        assert expected.abs().sum() > 0 and torch.equal(torch.rand(3), following)
        layer.eval()
        assert trace(function, x)(x).abs().sum() == 0


def test_inputs_have_the_traced_dtype():
    program = trace(lambda x: x.float() * 2, torch.ones(3))
    with pytest.raises(ValueError, match=r"expected an input of float32 on cpu, as traced, got float64 on cpu; trace the function"):
        program(torch.ones(3, dtype=torch.float64))
    assert program(torch.ones(5)).dtype == torch.float32


def test_an_input_is_written_beside_integers_made_from_it():
    def write(x):
        y = x.detach()
        y.add_(1)
        x.to(torch.int32).zero_()
        return y * 2

    x = torch.full((2,), 0.5, requires_grad=True)
    assert torch.compile(write)(x).tolist() == [3.0, 3.0] and x.tolist() == [1.5, 1.5]
