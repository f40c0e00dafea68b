"""Sizes in Programs: what a traced function computes from sizes is computed in every run, or required of it."""

from __future__ import annotations

import copy
import functools
import math
import pickle
import random
import threading

import numpy as np
import pytest

import teletensor as torch
import teletensor.nn.functional as F

trace = torch.compiler.trace


@functools.cache
def table_of(session):
    """Of a session, because tests may replace it."""
    return torch.arange(4096.0).view(64, 64)


@pytest.fixture(autouse=True)
def _outside_of_traces():
    table_of(torch.connection())


def tail(x):
    return x[:, -1] + x[:, x.shape[1] - 1], x[x.size(0) // 2, 1:] * 1.0


def normalised(x):
    return x.sum() / x.numel(), x.sum(0) / len(x.shape) / x.shape[0], x * x.size(1)


def from_table(x):
    b, n = x.shape
    table = table_of(torch.connection())
    return x + table[:b, :n] + table[1 : b + 1, n : 2 * n].clone()


def created(x):
    b, n = x.size()
    return torch.cat([torch.zeros(b, 2), x, torch.full((b, n + 1), 3.0), torch.ones([b, n]) * n], 1)


def folded(x):
    b, n = x.shape
    x = x.repeat(1, 2).reshape(b * 2, n).view(-1, b, n)
    return x.expand(2, b, n).flatten(1)[:, : torch.sym_max(b, n)].permute(1, 0), x.new_empty(b % 2 + 1, n).fill_(1.0)


def shifted(x):
    return torch.roll(x, x.shape[0] - 1, 0), F.pad(x, (x.shape[1] // 2, 1)), x.narrow(1, x.shape[1] - 2, 2).clone()


@pytest.mark.parametrize("function", [tail, normalised, from_table, created, folded, shifted])
def test_runs_have_their_own_sizes(function):
    program = trace(function, torch.randn(4, 6))
    for sizes in ((4, 6), (5, 6), (4, 3), (3, 31), (17, 2)):
        x = torch.randn(*sizes)
        got, want = program(x), function(x)
        for a, b in zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]:
            assert a.shape == b.shape and a.stride() == b.stride() and torch.equal(a, b), sizes


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.place = torch.nn.Parameter(torch.randn(32, 8))
        self.project = torch.nn.Linear(8, 24)
        self.register_buffer("mask", torch.tril(torch.ones(32, 32)))

    def forward(self, x):
        b, t, c = x.size()
        assert t <= 32, "too long"
        q, k, v = (y.view(b, t, 2, c // 2).transpose(1, 2) for y in self.project(x + self.place[:t]).split(c, 2))
        weights = (q @ k.transpose(-2, -1)).masked_fill(self.mask[:t, :t] == 0, float("-inf")).softmax(-1)
        return (weights @ v).transpose(1, 2).reshape(b, t, c).square().sum() / (b * t)


def test_gradients_at_other_sizes():
    torch.manual_seed(0)
    model = Attention()
    program = trace(model, torch.randn(2, 5, 8))
    for sizes in ((2, 5, 8), (3, 32, 8), (1, 7, 8), (4, 1, 8)):
        results = []
        for call in (model, program):
            model.zero_grad()
            x = torch.randn(*sizes, generator=torch.Generator().manual_seed(1), requires_grad=True)
            loss = call(x)
            loss.backward()
            results.append([loss, x.grad, *(p.grad for p in model.parameters())])
        for got, want in zip(*results):
            torch.testing.assert_close(got, want, rtol=1e-5, atol=5e-6)  # sums of 96 terms near 1


def test_a_training_step_with_other_batches():
    def trained(as_program: bool):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

        def step(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y, reduction="sum") / x.shape[0]
            loss.backward()
            optimizer.step()
            return loss.detach()

        batches = [(torch.randn(n, 6), torch.randint(3, (n,))) for n in (8, 8, 5, 8, 2, 1)]
        run = trace(step, *batches[0]) if as_program else step
        return [run(*batch).item() for batch in batches]

    assert trained(True) == pytest.approx(trained(False), rel=1e-5)


def branch(x):
    return x + 1 if x.shape[0] > 3 else x - 1


def loop(x):
    return sum(x[i] * i for i in range(x.shape[0]))


def formatted(x):
    return x, f"{x.shape[0]} rows"


def square(x):
    return x * (x.shape[0] == x.shape[1])


def strided(x):
    return x * x.stride(0)


def root(x):
    return x * math.sqrt(x.shape[1])


@pytest.mark.parametrize(
    "function, accepted, refused, message",
    [
        (branch, (9, 2), (2, 2), r"size\(input 0, 0\) > 3 \(.*test_program_sizes.py:\d+ in branch\), got 2 and 3"),
        (loop, (4, 9), (5, 3), r"size\(input 0, 0\) == 4"),
        (formatted, (4, 9), (5, 3), r"size\(input 0, 0\) == 4"),
        (square, (7, 3), (5, 5), r"size\(input 0, 0\) != size\(input 0, 1\)"),
        (strided, (9, 3), (4, 5), r"stride\(input 0, 0\) == 3"),
        (root, (9, 3), (4, 5), r"size\(input 0, 1\) == 3"),
    ],
)  # fmt: skip
def test_what_sizes_decide_is_required(function, accepted, refused, message):
    program = trace(function, torch.ones(4, 3))
    results = [f(torch.full(accepted, 2.0)) for f in (program, function)]
    got, want = (r[0] if isinstance(r, tuple) else r for r in results)
    assert torch.equal(got, want)
    with pytest.raises(ValueError, match=message):
        program(torch.ones(refused))
    assert torch.equal(program(torch.ones(4, 3))[0], function(torch.ones(4, 3))[0])


def test_sizes_that_depend_on_an_input_far_from_the_example():
    program = trace(lambda x: x[:3] * x[:3].shape[0], torch.ones(40))
    assert program(torch.ones(9)).tolist() == [3, 3, 3]
    assert program(torch.ones(2)).tolist() == [2, 2]


def test_ranks_are_required():
    """squeeze() drops a dimension of size 1, which the function would see."""
    program = trace(lambda x: x.squeeze().sum(0), torch.ones(4, 3))
    assert program(torch.ones(5, 2)).tolist() == [5, 5]
    with pytest.raises(ValueError, match="expected 2 dimensions of %2"):
        program(torch.ones(1, 3))


def test_marked_sizes_are_constant():
    x = torch.ones(4, 3)
    x._dynamo_static_indices = {1}
    program = trace(lambda x: x * x.shape[0] * x.shape[1], x)
    assert program(torch.ones(2, 3))[0, 0] == 6
    with pytest.raises(ValueError, match=r"size\(input 0, 1\) == 3"):
        program(torch.ones(2, 4))


def test_functions_that_need_ints():
    """A function that raises is called again with ints."""
    calls = []

    def step(x):
        n = x.shape[0]
        calls.append(type(n))
        if not isinstance(n, int):
            raise TypeError("expected an int")
        return x * n

    program = trace(step, torch.ones(4))
    assert calls == [torch.SymInt, int] and program(torch.ones(4)).tolist() == [4] * 4
    with pytest.raises(ValueError, match="== 4"):
        program(torch.ones(5))
    with pytest.raises(KeyError):  # its own error
        trace(lambda x: {}[x.shape[0]], torch.ones(4))
    assert not torch._C.is_tracing()


def test_numbers_are_those_of_python():
    kept = []

    def step(x):
        n = x.shape[0]
        assert isinstance(n, torch.SymInt) and isinstance(x.shape, torch.Size) and not isinstance(n, bool)
        m = n * 3 - 2
        assert (m // 4, m % 4, -m // 4, -m % 4, 7 - m, 2 + m) == (3, 1, -4, 3, -6, 15)
        assert (m / 2, m**2, divmod(m, 4), abs(-m), +m, ~m, m & 4, m | 2, m ^ 1, m << 1, m >> 1) == (
            6.5, 169, (3, 1), 13, 13, -14, 4, 15, 12, 26, 6,
        )  # fmt: skip
        assert (m > 12, m >= 14, 13 == m, m != 13, 12.5 < m, m == 13.0, bool(n - n), m == "13") == (
            True, False, True, False, True, True, False, False,
        )  # fmt: skip
        assert (str(m), f"{m:04d}", hash(m), int(m), float(m), m.bit_length(), [0] * n) == (
            "13", "0013", hash(13), 13, 13.0, 4, [0] * 5,
        )  # fmt: skip
        assert (torch.sym_max(n, 9), torch.sym_min(9, n), torch.sym_max(n, m)) == (9, 5, 13)
        assert x.shape.numel() == 5 and (x.shape + (2,))[1] == 2 and max(n, 2) == 5
        for bad in (lambda: n // 0, lambda: n % (n - n)):
            with pytest.raises(ZeroDivisionError):
                bad()
        with pytest.raises(TypeError):
            n + "a"
        kept.append(m)
        return x * 1.0

    trace(step, torch.ones(5))
    (m,) = kept  # an int after the trace
    assert (m + 1, type(m + 1), m == 13, repr(m), torch.ones(m).shape[0]) == (14, int, True, "13", 13)


def test_another_thread_cannot_use_a_size():
    errors = []

    def step(x):
        n = x.shape[0]

        def use():
            try:
                n + 1
            except RuntimeError as error:
                errors.append(str(error))

        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        return x * n

    trace(step, torch.ones(4))
    assert errors == ["[trace] a size belongs to a trace of another thread"]


def random_function(seed: int):
    """A function of a tensor of three dimensions that mixes sizes with views, slices, factories and sums."""
    steps = [
        lambda x, r: x.reshape(x.shape[0], -1).view(x.shape),
        lambda x, r: x[:, : x.shape[1] // r + 1],
        lambda x, r: x[-r:],
        lambda x, r: x[:, :, r % 2 :: 2] * x.shape[2],
        lambda x, r: x.transpose(0, r % 2 + 1).contiguous(),
        lambda x, r: x + torch.arange(x.size(-1)),
        lambda x, r: x.sum(r % 3, keepdim=True) / x.shape[r % 3] + x,
        lambda x, r: torch.cat([x, x.new_zeros(x.shape[0], x.shape[1], r)], 2),
        lambda x, r: x.flatten(0, 1).unsqueeze(r % 2),
        lambda x, r: x.repeat_interleave(r, 1)[:, : x.shape[1] + 1],
        lambda x, r: x.expand(2, *x.shape).flatten(0, 1) - x.numel(),
        lambda x, r: x * 2 if x.shape[1] > r else x + 1,
    ]
    choice = random.Random(seed)
    chosen = [(choice.choice(steps), choice.randint(1, 3)) for _ in range(choice.randint(2, 7))]

    def function(x):
        for step, number in chosen:
            x = step(x, number)
        return x * 1.0

    return function


@pytest.mark.parametrize("seed", range(60))
def test_random_functions(seed):
    function = random_function(seed)
    choice = random.Random(seed)
    program = trace(function, torch.randn(4, 5, 6))
    ran = 0
    for _ in range(6):
        x = torch.randn(choice.randint(1, 6), choice.randint(1, 9), choice.randint(1, 9), requires_grad=True)
        try:
            want = function(x)
            got = program(x)
        except (ValueError, RuntimeError, IndexError):
            continue  # the function refuses these sizes, or decides otherwise
        ran += 1
        assert got.shape == want.shape and torch.equal(got, want)
        gradients = [torch.autograd.grad(r.square().sum(), x)[0] for r in (got, want)]
        torch.testing.assert_close(*gradients)
    example = torch.randn(4, 5, 6)
    assert torch.equal(program(example), function(example)) and ran > 0


class Doubling(torch.utils._python_dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if "mul" in str(func):
            assert isinstance(args[1], torch.SymInt)
            return func(args[0], args[1] * 2)
        return func(*args, **(kwargs or {}))


def dispatched(x):
    with Doubling():
        return x * x.shape[0]


def test_dispatch_modes_receive_sizes():
    assert trace(dispatched, torch.ones(4))(torch.ones(3)).tolist() == [6, 6, 6]


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda x: (x * 1, x.shape[0]), r"size\(input 0, 0\) == 4"),
        (lambda x: x[:, :2] * x[:, :2].stride(0), r"stride\(%\d, 0\) == 6"),
        (lambda x: x * x[x.shape[0] // 2 :].storage_offset(), r"storage_offset\(%\d\) == 12"),
        (lambda x: x * 2 if x.t().is_contiguous() else x * 3, r"is_contiguous\(%\d\) == 0"),
        (lambda x: x * x.untyped_storage().nbytes(), r"size\(input 0, \d\) == "),
        (lambda x: torch.add(x, 1, out=torch.zeros(3, 6)), r"size\(input 0, \d\) == "),
        (lambda x: x * 2 if x.shape[0] == 4 + 0j else x * 3, r"size\(input 0, 0\) == 4"),
    ],
)  # fmt: skip
def test_what_else_depends_on_sizes_is_required(function, message):
    program = trace(function, torch.ones(4, 6))
    for got, want in zip(program(torch.ones(4, 6)), function(torch.ones(4, 6))):
        assert torch.equal(got, want) if isinstance(want, torch.Tensor) else (type(got), got) == (int, want)
    with pytest.raises(ValueError, match=message):
        program(torch.ones(1, 7))


def test_uses_of_sizes_beside_arithmetic():
    def step(x):
        n = x.shape[0]
        assert not hasattr(n, "foo") and getattr(n, "foo", 3) == 3
        assert (round(n), math.trunc(n), math.floor(n), math.ceil(n), round(n, -1)) == (4, 4, 4, 4, 0)
        assert n * 2**62 == 2**64 and np.asarray(x.shape).tolist() == [4] and np.int64(2) * n == 8
        assert copy.copy(n) == 4 and pickle.loads(pickle.dumps(n)) == 4 and torch.sym_ite(n > 2, n, 3) == 4
        return x * 1.0

    calls = []
    trace(lambda x: (calls.append(0), step(x))[1], torch.ones(4))
    assert len(calls) == 1


def test_an_error_of_the_second_call_shows_the_first():
    def step(x):
        if not isinstance(x.shape[0], int):
            raise TypeError("expected an int")
        raise KeyError("none")

    with pytest.raises(KeyError) as raised:
        trace(step, torch.ones(4))
    assert str(raised.value.__cause__) == "expected an int"


def test_many_requirements():
    def step(x):
        return x * sum(x.shape[0] > 2 * i for i in range(20_000))

    program = trace(step, torch.ones(8))
    assert program(torch.ones(8))[0] == 4
    with pytest.raises(ValueError, match=r"size\(input 0, 0\) > 6"):
        program(torch.ones(6))


def halved(n, bound):
    return lambda x: torch.ones(2) * 2 if n(x.size(0)) * 0.5 > bound else torch.ones(2) * 3


@pytest.mark.parametrize(
    "number, bound", [(lambda n: n % 2, 0.2), (lambda n: n - 5, 0), (lambda n: -n, -2), (lambda n: n // 4, 0.2), (lambda n: n, 0.4)],
    ids=["remainder", "difference", "negative", "quotient", "size"],
)  # fmt: skip
@pytest.mark.parametrize("example", [3, 10])
def test_floats_of_numbers_below_1_are_compared(number, bound, example):
    function = halved(number, bound)
    program = trace(function, torch.ones(example, 2))
    assert torch.equal(program(torch.ones(example, 2)), function(torch.ones(example, 2)))
    for n in range(13):
        x = torch.ones(n, 2)
        try:
            found = program(x)
        except ValueError as e:
            assert "the traced function requires" in str(e)
            continue
        assert torch.equal(found, function(x)), n


def test_floats_of_differences_of_sizes_are_compared():
    program = trace(lambda x, y: x * 2 if (y.size(0) - x.size(0)) / 2 >= 1 else x * 3, torch.ones(3), torch.ones(5))
    assert program(torch.ones(4), torch.ones(9))[0] == 2
    with pytest.raises(ValueError, match=r"requires .*size\(input 1, 0\)"):
        program(torch.ones(3), torch.ones(3))
    absolute = trace(lambda x: x * abs(-x.size(0) / 2), torch.ones(3))
    assert absolute(torch.ones(3)).tolist() == [1.5] * 3


def test_floats_of_large_products_of_sizes_are_compared():
    def function(x):
        n = x.size(0)
        return x * 2 if n * n * n * n * n * 1.0 > 2e12 else x * 3

    program = trace(function, torch.ones(3))
    assert program(torch.ones(280))[0] == 3
    with pytest.raises(ValueError, match="requires"):
        program(torch.ones(300))


@pytest.mark.parametrize(
    "number, refused",
    [
        (lambda n: 1.0 / n, [0]),
        (lambda n: 1.0 / (n - 5), [5, 3]),
        (lambda n: 1.0 / (n * 0.5 - 2.5), [5, 3]),
        (lambda n: (n - 5) ** -0.5, [5, 3]),
        (lambda n: (n - 5) ** -1.0, [5]),
        (lambda n: (n - 5) ** 0.5, [3]),
        (lambda n: torch.sym_sqrt(n - 5), [3]),
        (lambda n: torch.sym_sqrt(n * 1.0 - 5.0), [3]),
    ],
)
def test_floats_without_a_value_are_refused(number, refused):
    def function(x):
        return torch.ones(2) * number(x.size(0))

    program = trace(function, torch.ones(9, 2))
    for n in (9, 7, 30):
        torch.testing.assert_close(program(torch.ones(n, 2)), function(torch.ones(n, 2)))
    for n in refused:
        with pytest.raises(ValueError, match="the traced function requires"):
            program(torch.ones(n, 2))


def test_a_division_by_zero_that_the_function_catches():
    def function(x):
        try:
            return torch.ones(2) * (1.0 / (x.size(0) - 5))
        except ZeroDivisionError:
            return torch.zeros(2)

    program = trace(function, torch.ones(5))
    assert program(torch.ones(5)).tolist() == [0, 0]
    with pytest.raises(ValueError, match="requires"):
        program(torch.ones(6))


def test_quotients_by_floats_of_several_sizes():
    def function(a, b):
        return a / (a.size(0) ** 0.5 * torch.sym_sqrt(b.size(0)) + 0.5)

    program = trace(function, torch.ones(3), torch.ones(5))
    for m, n in ((4, 2), (7, 9), (3, 5)):
        torch.testing.assert_close(program(torch.ones(m), torch.ones(n)), function(torch.ones(m), torch.ones(n)))


def test_long_computations_of_floats():
    def doubled(x):
        n = x.size(0) * 1.0
        for _ in range(60):  # as a tree, 2**60 operations
            n = n + n
        return x * n if n > 3 else x

    def increased(x):
        n = x.size(0) * 1.0
        for _ in range(2000):
            n = n + 1.0
        return x * n if n > 2002.5 else x

    for function in (doubled, increased):
        program = trace(function, torch.ones(3))
        for n in (3, 4):
            assert torch.equal(program(torch.ones(n)), function(torch.ones(n)))


def test_group_norm_in_a_program():
    norm = torch.nn.GroupNorm(2, 4)
    x = torch.randn(3, 4, 5)
    assert torch.equal(trace(norm, torch.randn(2, 4, 7))(x), norm(x))
