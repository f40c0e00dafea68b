"""vmap computes all entries at once: what functions see, gradients, random numbers, writes, and what is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest


@pytest.fixture
def func(torch):
    return torch.func


def close(got, want, tolerance=1e-5) -> None:
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=tolerance, atol=tolerance)


def calls_of(torch, function) -> int:
    """The number of operators that a function calls."""
    from teletensor.utils._python_dispatch import TorchDispatchMode

    class Count(TorchDispatchMode):
        calls = 0
        runs_backward = True

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            Count.calls += 1
            return func(*args, **(kwargs or {}))

    with Count():
        function()
    return Count.calls


def test_operators_are_called_once_for_all_entries(torch):
    def f(x, w):
        return torch.softmax(torch.relu(x @ w), -1).sum()

    w = torch.randn(4, 3)
    counts = [calls_of(torch, lambda n=n: torch.vmap(f, (0, None))(torch.randn(n, 2, 4), w)) for n in (2, 64)]
    assert counts[0] == counts[1]


def test_functions_see_one_entry(torch):
    seen = []

    def f(x, y):
        seen.append((tuple(x.shape), x.dim(), x.stride(), x.is_contiguous(), x.dtype, tuple(y.shape)))
        return x.reshape(-1)[1:3] + y[0]

    x, y = torch.arange(24.0).reshape(2, 3, 4), torch.arange(6.0).reshape(3, 2)
    got = torch.vmap(f, in_dims=(1, 0))(x, y)
    assert seen == [((2, 4), 2, (12, 1), False, torch.float32, (2,))]
    close(got, torch.stack([x[:, i].reshape(-1)[1:3] + y[i, 0] for i in range(3)]))
    torch.vmap(lambda x: seen.append(repr(x)) or x)(x)
    assert seen[-1].startswith("Batched(level=") and "size=2" in seen[-1]


def test_nested(torch):
    x, y = torch.randn(3, 4), torch.randn(5, 4)
    pairs = torch.vmap(lambda a: torch.vmap(lambda b: (a - b).square().sum())(y))(x)
    close(pairs, (x[:, None] - y[None]).square().sum(-1))
    products = torch.vmap(torch.vmap(lambda a, b: a @ b, (0, None)), (None, 0))(x, y)
    close(products, y @ x.T)


@pytest.mark.parametrize("chunk", [1, 2, 5, 7])
def test_chunks(torch, chunk):
    x = torch.randn(5, 3)
    a, b = torch.vmap(lambda r: (r.sum(), r * 2), out_dims=(0, 1), chunk_size=chunk)(x)
    close(a, x.sum(1))
    close(b, (x * 2).T)


class TestIndexing:
    """Indices and values, with either mapped."""

    def test_reads(self, torch):
        x, i, j = torch.arange(120.0).reshape(2, 3, 4, 5), torch.tensor([[0, 2], [1, 1]]), torch.tensor([[1, 3], [2, 0]])
        functions = {
            "x[i]": lambda x, i, j: x[i], "x[:, i]": lambda x, i, j: x[:, i], "x[i, :, j]": lambda x, i, j: x[i, :, j],
            "x[i, j]": lambda x, i, j: x[i, j], "x[:, i, j]": lambda x, i, j: x[:, i, j], "x[..., i]": lambda x, i, j: x[..., i],
            "x[1:, i[:, None], j]": lambda x, i, j: x[1:, i[:, None], j], "x[0, ..., None, -1]": lambda x, i, j: x[0, ..., None, -1],
        }  # fmt: skip
        for name, f in functions.items():
            for dims in ((0, 0, 0), (0, None, None), (None, 0, 0), (0, 0, None), (None, 0, None)):
                if all(d is None for d in dims) or (name.startswith("x[0") and dims[0] is None):
                    continue
                args = [t if d == 0 else t[0] for t, d in zip((x, i, j), dims)]
                got = torch.vmap(f, dims)(*args)
                want = [f(*(a[e] if d == 0 else a for a, d in zip(args, dims))) for e in range(2)]
                if dims[0] is None and got.shape[1:] != want[0].shape:
                    raise AssertionError(name)
                close(got, torch.stack(want))

    def test_writes(self, torch):
        def f(x, i):
            x = x.clone()
            x[i] = 7.0
            x[1:] += 1
            x[0, :2] = x[1, :2] * 2
            return x

        x, i = torch.arange(24.0).reshape(2, 3, 4), torch.tensor([2, 0])
        close(torch.vmap(f)(x, i), torch.stack([f(x[e], i[e]) for e in range(2)]))


def test_writes_reach_the_mapped_argument(torch):
    x, y = torch.zeros(3, 2), torch.arange(3.0)

    def f(x, y):
        x.add_(y)
        x[0].mul_(2)
        return x.sum()

    sums = torch.vmap(f)(x, y)
    assert x.tolist() == [[0, 0], [2, 1], [4, 2]] and sums.tolist() == [0, 3, 6]


def test_refuses_writes_to_what_entries_share(torch):
    shared = torch.zeros(2)
    with pytest.raises(RuntimeError, match="in place to a tensor that is not mapped"):
        torch.vmap(lambda x: shared.add_(x))(torch.ones(3, 2))
    with pytest.raises(RuntimeError, match="in place to a tensor that is not mapped"):
        torch.vmap(lambda x: torch.add(x, 1, out=shared))(torch.ones(3, 2))
    assert shared.tolist() == [0, 0]
    made = torch.vmap(lambda x: torch.zeros_like(x).add_(x))(torch.ones(3, 2))
    assert made.tolist() == [[1, 1]] * 3


@pytest.mark.parametrize("read", ["item", "bool", "tolist", "numpy", "int"])
def test_refuses_to_read_values(torch, read):
    functions = {
        "item": lambda x: x.sum().item(), "bool": lambda x: x if x.sum() > 0 else -x, "tolist": lambda x: x.tolist(),
        "numpy": lambda x: x.numpy(), "int": lambda x: torch.zeros(3)[int(x[0])],
    }  # fmt: skip
    with pytest.raises(RuntimeError, match="needs the values of a tensor that is mapped"):
        torch.vmap(functions[read])(torch.ones(2, 3))
    assert torch.vmap(torch.sin)(torch.zeros(2)).tolist() == [0, 0]  # the transform has ended


def test_numbers_keep_their_part_in_promotion(torch):
    double, vector = torch.ones(3, dtype=torch.float64), torch.ones(2)
    assert torch.vmap(lambda n: n * vector)(double).dtype == torch.float32
    assert torch.vmap(lambda n, v: n * v)(double, torch.ones(3, 2)).dtype == torch.float32
    assert torch.vmap(lambda n: n * torch.ones(2, dtype=torch.int64))(torch.ones(3)).dtype == torch.float32


class TestGradients:
    """Derivatives of one entry."""

    def test_per_sample_gradients_of_a_network(self, torch, func):
        nn = torch.nn
        model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 8),
                              nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3))  # fmt: skip
        params = {k: v.detach() for k, v in model.named_parameters()}
        x, target = torch.randn(5, 1, 8, 8), torch.tensor([0, 2, 1, 1, 0])

        def loss(p, image, label):
            return nn.functional.cross_entropy(func.functional_call(model, p, (image[None],)), label[None])

        with warnings.catch_warnings():
            warnings.simplefilter("error")  # no operator is called entry by entry
            found = torch.vmap(func.grad(loss), (None, 0, 0))(params, x, target)
        for i in range(5):
            for name, g in func.grad(loss)(params, x[i], target[i]).items():
                close(found[name][i], g)

    def test_models_with_their_own_parameters(self, torch, func):
        nn = torch.nn
        models = [nn.Sequential(nn.Conv1d(2, 4, 3, padding=1, groups=2), nn.BatchNorm1d(4), nn.Tanh(), nn.Flatten(), nn.Linear(20, 2))
                  for _ in range(3)]  # fmt: skip
        for model in models:
            model[1].running_mean.normal_()
            model.eval()
        params, buffers = func.stack_module_state(models)
        x = torch.randn(4, 2, 5)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            got = torch.vmap(lambda p, b: func.functional_call(models[0], (p, b), (x,)))(params, buffers)
        close(got, torch.stack([m(x) for m in models]))

    def test_attention_and_embedding(self, torch, func):
        nn = torch.nn
        layer, table = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), nn.Embedding(11, 8)
        params = {k: v.detach() for k, v in layer.named_parameters()}
        tokens = torch.randint(0, 11, (3, 6))

        def loss(p, weight, row):
            x = nn.functional.embedding(row, weight)
            return func.functional_call(layer, p, (x[None],)).square().mean()

        found = torch.vmap(func.grad(loss, (0, 1)), (None, None, 0))(params, table.weight.detach(), tokens)
        for i in range(3):
            want = func.grad(loss, (0, 1))(params, table.weight.detach(), tokens[i])
            close(found[1][i], want[1])
            for name, g in want[0].items():
                close(found[0][name][i], g)

    def test_of_what_the_entries_share(self, torch, func):
        """A graph from outside of the vmap has one backward pass per entry."""
        w = torch.randn(3, requires_grad=True)
        y = torch.sin(w) * 2
        rows = torch.vmap(lambda u: torch.autograd.grad(y, w, u, retain_graph=True)[0])(torch.eye(3))
        close(rows, torch.diag(2 * torch.cos(w.detach())))
        x = torch.randn(4, 3)
        each = torch.vmap(lambda row: torch.autograd.grad((row * w).sum() ** 2, w)[0])(x)
        close(each, torch.stack([2 * (r * w.detach()).sum() * r for r in x]))
        value, product = func.vjp(torch.sin, w.detach())
        close(torch.vmap(product)(torch.eye(3))[0], torch.diag(torch.cos(w.detach())))

    def test_higher_derivatives(self, torch, func):
        def f(x):
            return (torch.sin(x) * x.sum()).sum()

        x = torch.randn(4, 3)
        hessians = torch.vmap(func.hessian(f))(x)
        for i in range(4):
            close(hessians[i], torch.stack([torch.stack([func.grad(lambda z, b=b: func.grad(f)(z)[b])(x[i])[a] for b in range(3)])
                                            for a in range(3)]), 1e-4)  # fmt: skip
        jacobians = torch.vmap(func.jacfwd(lambda z: z[None] * torch.outer(z, z)))(x)
        assert tuple(jacobians.shape) == (4, 3, 3, 3)
        close(jacobians, torch.vmap(func.jacrev(lambda z: z[None] * torch.outer(z, z)))(x))
        value, tangent = torch.vmap(lambda a, t: func.jvp(f, (a,), (t,)))(x, torch.ones(4, 3))
        close(tangent, torch.stack([func.grad(f)(r).sum() for r in x]))

    def test_jacfwd_passes_aux_on(self, torch, func):
        x = torch.randn(3)
        jacobian, (aux, name) = func.jacfwd(lambda z: (z * z, (z.sum(), "text")), has_aux=True)(x)
        close(jacobian, torch.diag(2 * x))
        close(aux, x.sum())
        assert name == "text"

    def test_batched_gradients(self, torch):
        x = torch.randn(3, requires_grad=True)
        y, z = torch.sin(x), x * x
        units = torch.eye(3)
        (found,) = torch.autograd.grad((y, z), x, (units, 2 * units), is_grads_batched=True)
        close(found, torch.diag(torch.cos(x.detach()) + 4 * x.detach()))
        with pytest.raises(RuntimeError, match="already|second time|freed"):
            torch.autograd.grad(y, x, torch.ones(3))
        with pytest.raises(RuntimeError, match="first dimension of gradients"):
            torch.autograd.grad(x.sum(), x, is_grads_batched=True)

    def test_outside_of_vmap(self, torch):
        x, w = torch.randn(4, 3), torch.randn(3, requires_grad=True)
        torch.vmap(lambda r: (r * w).sum() ** 2)(x).sum().backward()
        close(w.grad, (2 * (x @ w.detach())[:, None] * x).sum(0))

    def test_refuses_backward(self, torch):
        w = torch.ones(2, requires_grad=True)
        with pytest.raises(RuntimeError, match="torch.func.grad"):
            torch.vmap(lambda x: (x * w).sum().backward())(torch.ones(3, 2))


class TestFunction:
    """autograd.Function under vmap."""

    def test_runs_once_per_entry(self, torch):
        class Cube(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                assert x.dim() == 1
                return x**3

            @staticmethod
            def backward(ctx, g):
                return 3 * g * ctx.saved_tensors[0] ** 2

        x = torch.randn(4, 2, requires_grad=True)
        out = torch.vmap(Cube.apply)(x)
        out.sum().backward()
        close(out, x.detach() ** 3)
        close(x.grad, 3 * x.detach() ** 2)

    def test_has_its_own_rule(self, torch):
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(x):
                raise AssertionError

            @staticmethod
            def setup_context(ctx, inputs, output):
                pass

            @staticmethod
            def vmap(info, in_dims, x):
                assert info.batch_size == 3 and info.randomness == "error" and in_dims == (0,)
                return x * 2, 0

        assert torch.vmap(Twice.apply)(torch.ones(3, 2)).tolist() == [[2, 2]] * 3


class TestRandomness:
    """randomness= of vmap."""

    DRAWS = {
        "rand": lambda torch, x: torch.rand(2), "randn_like": lambda torch, x: torch.randn_like(x),
        "dropout": lambda torch, x: torch.nn.functional.dropout(x, 0.5), "normal_": lambda torch, x: x.clone().normal_(),
        "randperm": lambda torch, x: torch.randperm(16), "uniform_": lambda torch, x: torch.empty_like(x).uniform_(),
    }  # fmt: skip

    @pytest.mark.parametrize("name", DRAWS)
    def test_modes(self, torch, name):
        x = torch.ones(3, 64)
        rows = torch.vmap(lambda r: r * 0 + self.DRAWS[name](torch, r).sum(), randomness="different")(x)[:, 0].tolist()
        assert len(set(rows)) > 1 or name == "randperm"
        same = torch.vmap(lambda r: r * 0 + self.DRAWS[name](torch, r).sum(), randomness="same")(x)[:, 0].tolist()
        assert len(set(same)) == 1
        with pytest.raises(RuntimeError, match="randomness error mode"):
            torch.vmap(lambda r: r + self.DRAWS[name](torch, r).sum())(x)

    def test_permutations_differ(self, torch):
        rows = torch.vmap(lambda x: torch.randperm(64) + x.long() * 0, randomness="different")(torch.zeros(3))
        assert len({tuple(r) for r in rows.tolist()}) == 3 and all(sorted(r) == list(range(64)) for r in rows.tolist())

    def test_dropout_that_drops_nothing(self, torch):
        x = torch.randn(3, 2)
        close(torch.vmap(lambda r: torch.nn.functional.dropout(r, 0.5, training=False))(x), x)


    @pytest.mark.parametrize("draw", ["rand", "rand_like", "rand_like of the outer", "dropout"])
    @pytest.mark.parametrize("outer", ["same", "different"])
    @pytest.mark.parametrize("inner", ["same", "different"])
    def test_nested_modes(self, torch, outer, inner, draw):
        draws = {
            "rand": lambda a, b: torch.rand(32), "rand_like": lambda a, b: torch.rand_like(b),
            "rand_like of the outer": lambda a, b: torch.rand_like(a), "dropout": lambda a, b: torch.nn.functional.dropout(b + 1, 0.5),
        }  # fmt: skip

        def of_outer(x):
            return torch.vmap(lambda b: draws[draw](x[0], b) + b * 0, randomness=inner)(x)

        numbers = torch.vmap(of_outer, randomness=outer)(torch.zeros(2, 3, 32))
        rows = [[tuple(n) for n in row] for row in numbers.tolist()]
        assert (rows[0] == rows[1]) == (outer == "same")
        assert len(set(rows[0])) == (1 if inner == "same" else 3)

    def test_writes_to_what_entries_share(self, torch):
        shared = torch.zeros(4)

        def f(x):
            shared.normal_()
            return x + shared

        torch.manual_seed(1)
        rows = torch.vmap(f, randomness="same")(torch.zeros(2, 4))
        torch.manual_seed(1)
        assert rows.tolist() == [torch.zeros(4).normal_().tolist()] * 2 and rows[0].tolist() == shared.tolist()
        for mode, match in (("different", "not mapped"), ("error", "randomness error mode")):
            with pytest.raises(RuntimeError, match=match):
                torch.vmap(f, randomness=mode)(torch.zeros(2, 4))

    def test_the_outer_mode_counts(self, torch):
        with pytest.raises(RuntimeError, match="randomness error mode"):
            torch.vmap(lambda a: torch.vmap(lambda b: torch.rand(()) + b, randomness="same")(a))(torch.zeros(2, 3))

    def test_functions_of_one_entry(self, torch):
        a = torch.full((3,), 2.0)
        assert len(set(torch.vmap(torch._standard_gamma, randomness="different")(a).tolist())) == 3
        with pytest.raises(NotImplementedError, match="randomness='same'"):
            torch.vmap(torch._standard_gamma, randomness="same")(a)


def test_numbers_of_several_dtypes(torch):
    big = torch.tensor(2**40)
    got = torch.vmap(lambda a: a + big)(torch.ones(3, dtype=torch.int32))
    assert got.dtype == torch.int64 and got.tolist() == [2**40 + 1] * 3
    assert torch.vmap(lambda a: a + torch.tensor(1.0, dtype=torch.float64))(torch.ones(3)).dtype == torch.float64
    assert not torch.vmap(lambda a: a > torch.tensor(300))(torch.full((3,), 200, dtype=torch.uint8)).any()


def test_running_statistics_that_entries_share(torch):
    norm = torch.nn.BatchNorm1d(3)
    with pytest.raises(RuntimeError, match="writes to a tensor that is not mapped"):
        torch.vmap(norm)(torch.ones(3, 4, 3))
    assert norm.running_mean.tolist() == [0, 0, 0]
    norm.eval()
    close(torch.vmap(norm)(torch.ones(3, 4, 3)), norm(torch.ones(12, 3)).reshape(3, 4, 3))
    mean, var = torch.zeros(2, 3), torch.ones(2, 3)
    x = torch.randn(2, 5, 3)
    got = torch.vmap(lambda x, m, v: torch.nn.functional.batch_norm(x, m, v, training=True))(x, mean, var)
    for i in range(2):
        m, v = torch.zeros(3), torch.ones(3)
        close(got[i], torch.nn.functional.batch_norm(x[i], m, v, training=True))
        close(mean[i], m)
        close(var[i], v)


@pytest.mark.parametrize("write", ["add_", "mul_", "div_", "out"])
def test_in_place_results_must_fit(torch, write):
    functions = {
        "add_": lambda a: a.add_(1.5), "mul_": lambda a: a.mul_(torch.tensor(2.5)), "div_": lambda a: a.div_(2),
        "out": lambda a: torch.add(a, 0.5, out=a),
    }  # fmt: skip
    x = torch.arange(3)
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.vmap(functions[write])(x)
    assert x.tolist() == [0, 1, 2]


def test_writes_through_views(torch):
    x = torch.ones(3, 2)
    torch.vmap(lambda a: a.view(torch.int32).zero_())(x)
    assert x.tolist() == [[0, 0]] * 3
    views = {
        "movedim": lambda b: b.movedim(0, 0), "permute": lambda b: b.permute([]), "transpose": lambda b: b.transpose(0, -1),
        "unfold": lambda b: b.unfold(0, 1, 1), "expand": lambda b: b.expand(1), "reshape": lambda b: b.reshape(1, 1),
    }  # fmt: skip
    for view in views.values():

        def f(a, view=view):
            b = a.clone()
            view(b).fill_(7)
            return b

        assert torch.vmap(f)(torch.zeros(3)).tolist() == [7, 7, 7]
    u = torch.zeros(3)
    torch.vmap(lambda b: (u.view_as(b).add_(1), u.expand_as(b).add_(1), b * 1)[2])(torch.ones(2, 3))
    assert u.tolist() == [2, 2, 2]
    out = torch.vmap(lambda a: torch.sin(torch.ones(2), out=a))(torch.zeros(3, 2))
    close(out, torch.sin(torch.ones(3, 2)))


def test_operators_check_one_entry(torch):
    a, b = torch.ones(3, 3, 3), torch.ones(3, 3, 3)
    for f in (torch.bmm, torch.dot, torch.addmv, torch.mv, torch.addr):
        args = (a, b) if f in (torch.bmm, torch.dot, torch.mv) else (a[0], a, b)
        with pytest.raises(RuntimeError):
            torch.vmap(f, (0,) * len(args))(*args)
    with pytest.raises(IndexError):
        torch.vmap(lambda w: torch.nn.functional.embedding(torch.tensor([-1, 0]), w))(torch.ones(2, 3, 4)).sum().item()
    got = torch.vmap(lambda w: torch.nn.functional.embedding(torch.tensor([2, 0]), w))(torch.arange(24.0).reshape(2, 3, 4))
    assert got[:, :, 0].tolist() == [[8, 0], [20, 12]]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_of_one_sample(torch, reduction):
    scores, labels = torch.randn(4, 3), torch.tensor([0, 2, -100, 1])
    got = torch.vmap(lambda a, t: torch.nn.functional.cross_entropy(a, t, reduction=reduction))(scores, labels)
    want = [torch.nn.functional.cross_entropy(a, t, reduction=reduction) for a, t in zip(scores, labels)]
    close(got, torch.stack(want))


def test_distributions(torch):
    x = torch.randn(4)
    got = torch.vmap(lambda a: torch.distributions.Normal(a, 1.0, validate_args=False).log_prob(a + 1))(x)
    close(got, torch.distributions.Normal(x, 1.0).log_prob(x + 1))


def test_tensors_that_escape(torch):
    import copy

    kept = []
    torch.vmap(lambda a: kept.append(a) or copy.copy(a) + copy.deepcopy(a))(torch.ones(2))
    with pytest.raises(RuntimeError, match="a function which has ended"):
        kept[0] + 1
    with pytest.raises(RuntimeError, match="a function which has ended"):
        torch.vmap(lambda b: b * kept[0])(torch.ones(2))


def test_operators_without_a_rule_say_so_once(torch, monkeypatch):
    from teletensor.func import _batched

    monkeypatch.setattr(_batched, "_warned", set())  # other tests of this process may have called the operator
    x = torch.arange(12.0).reshape(3, 4)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            got = torch.vmap(lambda r: torch.nonzero(r - r[0]))(x)
    assert got.tolist() == [[[1], [2], [3]]] * 3
    (told,) = [w for w in caught if "nonzero has no batching rule" in str(w.message)]
    assert told.filename == __file__


@pytest.mark.filterwarnings("error:vmap")
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_indices_of_entries_to_write(torch, dim):
    x, source, index = torch.randn(3, 4, 4), torch.randn(3, 4, 2), torch.tensor([[0, 2], [3, 1], [2, 0]])
    source = source.transpose(1, 2) if dim == 0 else source

    def check(function, *given, dims=0):
        pick = [g if d is None else None for g, d in zip(given, dims if isinstance(dims, tuple) else (0,) * len(given))]
        wanted = torch.stack([function(*(g[e] if p is None else p for g, p in zip(given, pick))) for e in range(3)])
        torch.testing.assert_close(torch.vmap(function, dims)(*given), wanted)

    check(lambda x, i, s: x.index_add(dim, i, s, alpha=2), x, index, source)
    check(lambda x, i, s: x.index_copy(dim, i, s), x, index, source)
    check(lambda x, i: x.index_fill(dim, i - 4, 7.0), x, index)
    check(lambda x, i, s: x.index_add(dim, i, s), x[0], index, source[0], dims=(None, 0, None))
    slope = lambda s, i, x: torch.func.grad(lambda s: x.index_add(dim, i, s).sin().sum())(s)  # noqa: E731
    check(slope, source, index, x)
    with pytest.raises((IndexError, RuntimeError), match="out of range|out of bounds"):
        torch.vmap(lambda x, i, s: x.index_add(dim, i, s))(x, index + 2, source).tolist()


@pytest.mark.filterwarnings("error:vmap")
@pytest.mark.parametrize("accumulate", [False, True])
def test_numbers_written_where_masks_of_entries_are_true(torch, accumulate):
    x, masks = torch.randn(3, 2, 4), torch.randn(3, 2, 4) > 0
    put = lambda x, m: x.index_put((m,), torch.tensor(5.0), accumulate=accumulate)  # noqa: E731
    torch.testing.assert_close(torch.vmap(put)(x, masks), torch.stack([put(v, m) for v, m in zip(x, masks)]))
    rows = masks[:, :, 0]
    torch.testing.assert_close(torch.vmap(put, (None, 0))(x[0], rows), torch.stack([put(x[0], m) for m in rows]))
    torch.testing.assert_close(torch.vmap(put, (0, None))(x, rows[0]), torch.stack([put(v, rows[0]) for v in x]))


def test_bins_of_all_entries_are_counted_at_once(torch):
    x, w = torch.tensor([[0, 1, 1, 3], [3, 3, 2, 0], [0, 0, 0, 3]]), torch.rand(3, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        counts = torch.vmap(lambda v: torch.bincount(v, minlength=6))(x)
        bins = torch.vmap(torch.bincount)(x)
        weighted = torch.vmap(lambda v, w: torch.bincount(v, w, minlength=5))(x, w)
        shared = torch.vmap(lambda w: torch.bincount(x[1].to(torch.uint8), w.double()))(w)
    assert counts.tolist() == [[1, 2, 0, 1, 0, 0], [1, 0, 1, 2, 0, 0], [3, 0, 0, 1, 0, 0]] and torch.equal(bins, counts[:, :4])
    torch.testing.assert_close(weighted, torch.stack([torch.bincount(v, u, minlength=5) for v, u in zip(x, w)]))
    torch.testing.assert_close(shared, torch.stack([torch.bincount(x[1], u.double()) for u in w]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(RuntimeError, match="depend on values, and differ"):
            torch.vmap(torch.bincount)(torch.tensor([[0, 1], [2, 0]]))
        with pytest.raises(RuntimeError, match="non-negative integral inputs"):
            torch.vmap(lambda v: torch.bincount(v, minlength=4))(torch.tensor([[0, 1], [-2, 0]])).tolist()


def test_sizes_that_depend_on_values(torch):
    x = torch.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0]])
    assert torch.vmap(lambda r: torch.nonzero(r).squeeze(1))(x).tolist() == [[1, 2], [0, 2]]
    with pytest.raises(RuntimeError, match="depend on values, and differ"):
        torch.vmap(torch.nonzero)(torch.tensor([[0.0, 1.0], [1.0, 1.0]]))


def test_errors_name_dimensions_of_an_entry(torch):
    x = torch.ones(2, 3)
    with pytest.raises(IndexError, match=r"range of \[-1, 0\], but got -2"):
        torch.vmap(lambda r: r.sum(-2))(x)
    with pytest.raises(IndexError, match=r"range of \[-1, 0\], but got 1"):
        torch.vmap(lambda r: r.softmax(1))(x)
    with pytest.raises(IndexError):
        torch.vmap(lambda r: r, out_dims=2)(x)
    with pytest.raises((RuntimeError, ValueError)):
        torch.vmap(lambda r: r @ torch.ones(4))(x)


def test_the_older_name_of_vmap_passes_none_through(torch):
    from teletensor._vmap_internals import _vmap, vmap

    x = torch.arange(6.0).view(2, 3)
    assert _vmap(lambda row: row.sum())(x).tolist() == [3, 12]
    none, doubled = _vmap(lambda row: (None, row * 2), allow_none_pass_through=True)(x)
    assert none is None and doubled.tolist() == (2 * x).tolist()
    one, none, two = _vmap(lambda row: (row, None, row * 2), 0, (0, 0, 1), allow_none_pass_through=True)(x)
    assert one.shape == x.shape and none is None and two.shape == x.shape[::-1] and two.tolist() == (x * 2).T.tolist()
    with pytest.raises(ValueError, match="one dim per output"):
        _vmap(lambda row: (row, None), 0, (0, 0, 1), allow_none_pass_through=True)(x)
    assert _vmap(lambda row: (None,), allow_none_pass_through=True)(x) == (None,)
    with pytest.warns(FutureWarning, match="Please use `torch.vmap`"):
        assert vmap(lambda row: row.sum())(x).tolist() == [3, 12]


def _multiplied(x):
    y = x.clone()
    y.mul_(x)
    y += 1
    return y.sum()


def _chained(x):
    y = x * 1
    y.div_(x + 1).pow_(2)
    y.sub_(x).exp_()
    return y.sum()


def _of_parts(x):
    y = x * 2
    y[0] = y[1] * 3
    y[1:].mul_(x[:1])
    return (y * y).sum()


@pytest.mark.parametrize("function", [_multiplied, _chained, _of_parts], ids=lambda f: f.__name__)
def test_gradients_of_writes_in_place(torch, function):
    """The values that a write replaces are kept for the gradient."""
    x = torch.arange(6.0).reshape(2, 3) + 1
    expected = [torch.func.grad(function)(row).tolist() for row in x]
    assert torch.allclose(torch.vmap(torch.func.grad(function))(x), torch.tensor(expected))
    assert torch.allclose(torch.func.grad(lambda x: torch.vmap(function)(x).sum())(x), torch.tensor(expected))
    hessians = torch.stack([torch.func.jacrev(torch.func.grad(function))(row) for row in x])
    assert torch.allclose(torch.vmap(torch.func.jacrev(torch.func.grad(function)))(x), hessians, atol=1e-5)
